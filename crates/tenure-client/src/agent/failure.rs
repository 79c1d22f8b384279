//! How a claim is not had, and how it comes into doubt.

use tenure_api::{Code, Wanted};
use thiserror::Error;

use crate::error::Error;
use crate::hold::Lost;

/// Why there is no claim.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DeclareError {
    /// Others were in the way for as long as the agent would wait. It waits no more.
    #[error(
        "{} had what the agent wants for as long as it would wait; wait longer, or want something else",
        shown(blocked_by)
    )]
    InTheWay {
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
            Self::InTheWay { .. } => None,
        }
    }
}

/// The agent may not go on: what it holds is in doubt, or lost.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Doubt {
    /// A heartbeat did not get through. Pause; when one does in time, work goes on.
    #[error(
        "no heartbeat gets through; pause until one does, or until the leases are lost (`Claim::resumed`)"
    )]
    Paused,
    /// A lease is over, or may be. Stop; `Claim::reacquire` declares everything anew.
    #[error("{0}")]
    Lost(#[from] Lost),
}

/// Why something may not be touched.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TouchError {
    /// The agent has no lease for it.
    #[error("the agent has no lease for {}; declare it first", shown_all(.0))]
    Outside(Vec<Wanted>),
    /// What the agent holds is in doubt, or lost.
    #[error(transparent)]
    Doubt(#[from] Doubt),
    /// It could not be asked.
    #[error(transparent)]
    Failed(Error),
}

impl TouchError {
    pub(super) fn of(error: Error) -> Self {
        match error {
            Error::Problem(problem) if problem.code == Code::ScopeViolation && problem.outside.is_some() => {
                Self::Outside(problem.outside.unwrap_or_default())
            }
            other => Self::Failed(other),
        }
    }
}

fn shown(names: &[String]) -> String {
    if names.is_empty() { "others".into() } else { names.join(", ") }
}

fn shown_all(outside: &[Wanted]) -> String {
    let shown: Vec<_> = outside.iter().map(|want| format!("{} {}", want.predicate, want.resource)).collect();
    shown.join(", ")
}
