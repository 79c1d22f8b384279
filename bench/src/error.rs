//! The one error of the load generator.

use std::io;

use thiserror::Error;

#[derive(Debug, Error)]
pub enum BenchError {
    #[error("{what}: {source}")]
    Io {
        what: String,
        #[source]
        source: io::Error,
    },
    /// The resource is held. Expected when mutual exclusion is probed, an error everywhere else.
    #[error("the lease was denied: {0}")]
    Denied(String),
    /// The response is not what a correct server sends here, so the figure is worthless.
    #[error("unexpected response to {step}: {received}")]
    UnexpectedResponse { step: &'static str, received: String },
    /// Something outside of the load generator is missing or failed.
    #[error("{problem}\nhint: {hint}")]
    Environment { problem: String, hint: &'static str },
}

/// How many bytes of a response an error repeats.
const MAX_QUOTED_BYTES: usize = 300;

impl BenchError {
    pub fn unexpected(step: &'static str, received: impl AsRef<[u8]>) -> Self {
        let received = received.as_ref();
        let received = &received[..received.len().min(MAX_QUOTED_BYTES)];
        Self::UnexpectedResponse { step, received: String::from_utf8_lossy(received).into_owned() }
    }

    pub fn environment(problem: impl Into<String>, hint: &'static str) -> Self {
        Self::Environment { problem: problem.into(), hint }
    }
}

/// Adds what was attempted to an error of the system.
pub trait IoContext<T> {
    fn while_trying(self, what: impl Into<String>) -> Result<T, BenchError>;
}

impl<T, E: Into<io::Error>> IoContext<T> for Result<T, E> {
    fn while_trying(self, what: impl Into<String>) -> Result<T, BenchError> {
        self.map_err(|error| BenchError::Io { what: what.into(), source: error.into() })
    }
}
