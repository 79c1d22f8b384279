//! How a lease is not had, and how it is lost.

use tenure_api::Problem;
use thiserror::Error;

use crate::error::Error;

/// Why there is no guard.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HoldError {
    /// Somebody else has it, and the wait, if any, is over.
    #[error("{}", .0.detail)]
    Held(Box<Problem>),
    /// It could not be asked for, or was refused for another reason.
    #[error(transparent)]
    Failed(#[from] Error),
}

/// The lease is not held any more: stop what it protects. It does not come back.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LeaseLost {
    /// No renewal got through in time, or this process did not run: from now on somebody else may hold it.
    #[error("the lease was not renewed in time; stop, and acquire it again")]
    DeadlinePassed,
    /// The server says that it is over.
    #[error("the lease is over ({end}); stop, and acquire it again")]
    Ended {
        /// How it ended, in the server's word: `REVOKED`, `EXPIRED`, …
        end: String,
    },
}
