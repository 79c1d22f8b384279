//! Agents: they declare everything that they are about to touch, get all of it or nothing, and pause when they cannot be sure.
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
//! identity.rs         who declares
//! attempt.rs          its priority, and for how long that stays
//! intent.rs           what it is about to touch
//! declaring.rs        from a manifest to its leases; course.rs decides what each verdict means
//! keeping.rs          a task per claim that sends heartbeats; pulse.rs decides when, and what may be believed
//! claim.rs            what a program holds
//! persisted_state.rs  what it remembers over a restart; restart.rs how it goes on
//! ```

mod error;
mod heartbeat;
mod heartbeat_task;
#[cfg(test)]
mod heartbeat_tests;
mod held_manifest;
mod identity;
mod intent;
mod manifest_acquisition;
mod persisted_state;
mod priority;
mod restart;
mod retry;

pub use error::{CheckError, DeclareError, TouchError};
pub use held_manifest::HeldManifest;
pub use identity::Agent;
pub use intent::AgentIntent;
pub use manifest_acquisition::ManifestAcquisition;
pub use persisted_state::{AgentIdentity, AgentProgress, PersistedAgentState, RESTART_EXIT_CODE};
