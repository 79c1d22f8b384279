//! How a command ends when it does not end well, and with which code.

use std::error::Error;
use std::io;
use std::process::ExitCode;

use tenure_host::stderr::{format_error, print_stderr};
use tenure_ledger::{CopyError, OpenError};
use tenure_registrar::runtime::{LedgerVerificationError, ReplayError, RestoreFailure, ServiceError};

use crate::exit;

/// What is said on standard error, and the exit code.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    text: String,
}

impl Failure {
    /// `what` could not be done, for this reason.
    pub fn new(code: u8, what: &str, error: &dyn Error) -> Self {
        Self { code, text: format_error(what, error) }
    }

    pub fn negative_result(what: &str) -> Self {
        Self::from_message(exit::NO, what)
    }

    /// What is said says it all.
    pub fn from_message(code: u8, what: &str) -> Self {
        Self { code, text: format!("tenure: {what}\n") }
    }

    /// An exit code, and not a word: what there is to say was said.
    pub fn silent(code: u8) -> Self {
        Self { code, text: String::new() }
    }

    #[cfg(test)]
    pub fn code(&self) -> u8 {
        self.code
    }

    /// The same, with a line about what to do.
    #[must_use]
    pub fn with_hint(mut self, hint: &str) -> Self {
        self.text.push_str(hint);
        self.text.push('\n');
        self
    }

    /// Says it. The exit code is what is left.
    pub fn report(self) -> ExitCode {
        print_stderr(&self.text);
        self.code.into()
    }
}

/// Standard output cannot be written. Who reads no further has what was wanted: that is no failure.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::silent(0);
        }
        Self::new(exit::DISK, "standard output cannot be written", &error)
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let failure = Self::new(code_of_open(&error), "the ledger is not as it should be", &error);
        match error {
            OpenError::NoLedger(_) => {
                failure.with_hint("Say where the ledger is with --data, or make one with `tenure serve`.")
            }
            _ => failure,
        }
    }
}

impl From<ReplayError> for Failure {
    fn from(error: ReplayError) -> Self {
        Self::new(exit::NO, "the ledger does not add up", &error)
    }
}

impl From<LedgerVerificationError> for Failure {
    fn from(error: LedgerVerificationError) -> Self {
        match error {
            LedgerVerificationError::Open(error) => error.into(),
            error => Self::new(exit::NO, "the ledger is not as it should be", &error),
        }
    }
}

impl From<CopyError> for Failure {
    fn from(error: CopyError) -> Self {
        let code = match &error {
            CopyError::Exists(_) => exit::NO,
            CopyError::Ledger(error) => code_of_open(error),
            _ => exit::UNAVAILABLE,
        };
        Self::new(code, "there is no copy", &error)
    }
}

impl From<RestoreFailure> for Failure {
    fn from(error: RestoreFailure) -> Self {
        let code = match &error {
            RestoreFailure::Open(ServiceError::Open(error)) => code_of_open(error),
            RestoreFailure::Open(_) | RestoreFailure::FencesExhausted(_) => exit::NO,
            _ => exit::DISK,
        };
        Self::new(code, "the copy did not take its original's place", &error)
    }
}

fn code_of_open(error: &OpenError) -> u8 {
    match error {
        // What was asked was answered: no.
        OpenError::Damaged(_)
        | OpenError::NoIdentity(_)
        | OpenError::Copy(_)
        | OpenError::OtherMachine
        | OpenError::OutdatedCopy { .. } => exit::NO,
        OpenError::SegmentSize(_) => exit::CONFIGURATION,
        _ => exit::UNAVAILABLE,
    }
}
