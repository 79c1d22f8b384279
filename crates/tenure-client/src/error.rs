//! Why a request failed: the variants differ by what a caller does next.

use std::error::Error as StdError;
use std::io;

use tenure_api::{Code, Problem};
use thiserror::Error;

/// What went wrong. No secret is in it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The server said no. [`Problem::code`] says why.
    #[error("{}", problem_text(.0))]
    Problem(Box<Problem>),
    /// The server was not reached. Nothing happened.
    #[error(
        "no Tenure server answers at {address}: {source}; nothing happened. Is `tenure serve` running? \
         TENURE_URL names another server, TENURE_SOCKET another socket"
    )]
    Unreachable {
        /// Where it was looked for.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The request was sent, and its answer was lost: it may have happened. With the same idempotency key it may be
    /// sent again.
    #[error("the answer of {address} was lost: {source}; the request may have been carried out")]
    OutcomeUnknown {
        /// Who was asked.
        address: String,
        /// How the answer was lost.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// Something answers there, but not as Tenure does.
    #[error("{address} does not answer as Tenure does: {detail}; look at what TENURE_URL names")]
    Protocol {
        /// Who was asked.
        address: String,
        /// What is wrong with the answer.
        detail: String,
    },
}

impl Error {
    /// The problem's code, if the server said no.
    pub fn code(&self) -> Option<Code> {
        match self {
            Error::Problem(problem) => Some(problem.code),
            _ => None,
        }
    }

    /// Whether the same request may well succeed a moment later, by itself. It must be one that may be repeated.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            // What another session has, it has for as long as somebody watches: that does not pass by itself.
            Error::Problem(problem) if problem.code == Code::LeaseBusy => false,
            Error::Problem(problem) => problem.code.retry_after_seconds() == Some(1),
            Error::Unreachable { .. } | Error::OutcomeUnknown { .. } => true,
            // A proxy whose server is away for a moment answers with a page of its own.
            Error::Protocol { .. } => true,
        }
    }
}

fn problem_text(problem: &Problem) -> String {
    let Problem { title, detail, code, .. } = problem;
    if detail.is_empty() {
        format!("{title} ({})", code.as_str())
    } else {
        format!("{detail} ({})", code.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // O-13
    #[test]
    fn lease_busy_is_not_transient() {
        let passes = |code| Error::Problem(Box::new(Problem::new(code, "no"))).is_transient();
        assert!(passes(Code::Busy) && passes(Code::Unavailable));
        assert!(!passes(Code::LeaseBusy) && !passes(Code::Held) && !passes(Code::GuardLost));
    }
}
