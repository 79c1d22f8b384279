//! Agents: declare a manifest, hold all of its leases or none, and pause when heartbeats fail.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use tenure_client::Client;
//! use tenure_client::agent::{Agent, AgentIntent, CheckError};
//!
//! let client = Client::from_environment()?;
//! let agent = Agent::new(&client, "agent-1");
//! let wanted = [AgentIntent::mutates("FILE:src/lib.rs"), AgentIntent::consumes("FILE:src/api/")];
//! let mut claim = agent.declare(wanted).await?;
//! for step in ["read", "write", "test"] {
//!     while let Err(error) = claim.check() { // right before each effect
//!         match error {
//!             CheckError::Lost(_) => claim = claim.reacquire().await?,
//!             _ => drop(claim.wait_until_resumed().await),
//!         }
//!     }
//!     println!("{step}");
//! }
//! claim.release().await?;
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//! identity              `Agent`: id, session, and the priority that it keeps between attempts
//! manifest_acquisition  from a manifest to its leases; a dropped one withdraws its wait
//! retry                 what to do about each verdict, as a step function
//! held_manifest         `HeldManifest`: the leases that an agent holds
//! heartbeat             when to send heartbeats, and when to pause, as a step function
//! heartbeat_task        the task that sends them, one for each held manifest
//! restart               what an agent remembers over a restart, and how it continues
//! ```

mod heartbeat;
mod heartbeat_task;
#[cfg(test)]
mod heartbeat_tests;
mod held_manifest;
mod identity;
mod manifest_acquisition;
mod restart;
mod retry;

pub use held_manifest::HeldManifest;
pub use identity::Agent;
pub use manifest_acquisition::{AgentIntent, ManifestAcquisition};
pub use restart::{AgentIdentity, AgentProgress, PersistedAgentState, RESTART_EXIT_CODE};
use tenure_api::{Code, ResourceAccess};
use thiserror::Error;

use crate::error::Error;
use crate::hold::LeaseLost;

/// Why there is no claim.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DeclareError {
    /// Others were in the way for as long as the agent would wait. It waits no more.
    #[error(
        "{} had what the agent wants for as long as it would wait; wait longer, or want something else",
        join_holders(blocked_by)
    )]
    Blocked {
        /// Who.
        blocked_by: Vec<String>,
    },
    /// It could not be asked for, or was refused for another reason.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl DeclareError {
    /// The problem's code, if the server said no.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Failed(error) => error.code(),
            Self::Blocked { .. } => None,
        }
    }
}

/// The agent may not go on: what it holds is in doubt, or lost.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CheckError {
    /// A heartbeat did not get through. Pause; when one does in time, work goes on.
    #[error(
        "no heartbeat gets through; pause until one does, or until the leases are lost (`wait_until_resumed`)"
    )]
    Paused,
    /// A lease is over, or may be. Stop; `HeldManifest::reacquire` declares everything anew.
    #[error("{0}")]
    Lost(#[from] LeaseLost),
}

/// Why something may not be touched.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TouchError {
    /// The agent has no lease for it.
    #[error("the agent has no lease for {}; declare it first", join_accesses(.0))]
    ScopeViolation(Vec<ResourceAccess>),
    /// What the agent holds is in doubt, or lost.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// It could not be asked.
    #[error(transparent)]
    Failed(Error),
}

impl TouchError {
    fn from_error(error: Error) -> Self {
        match error {
            Error::Problem(problem) if problem.code == Code::ScopeViolation && problem.outside.is_some() => {
                Self::ScopeViolation(problem.outside.unwrap_or_default())
            }
            other => Self::Failed(other),
        }
    }
}

fn join_holders(names: &[String]) -> String {
    if names.is_empty() { "others".into() } else { names.join(", ") }
}

fn join_accesses(outside: &[ResourceAccess]) -> String {
    let shown: Vec<_> =
        outside.iter().map(|access| format!("{} {}", access.predicate, access.resource)).collect();
    shown.join(", ")
}
