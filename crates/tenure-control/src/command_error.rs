//! Why a command was not carried out: the lease kept it out, or it makes no sense.

use crate::problem::Problem;
use crate::rejection::ControlRejection;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandError {
    Rejected(ControlRejection),
    /// It makes no sense, or the device cannot do it.
    Problem(Problem),
}

impl From<ControlRejection> for CommandError {
    fn from(rejection: ControlRejection) -> Self {
        Self::Rejected(rejection)
    }
}

impl From<Problem> for CommandError {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl CommandError {
    pub fn status(&self) -> u16 {
        match self {
            Self::Rejected(rejection) => rejection.code.status(),
            Self::Problem(problem) => problem.code.status(),
        }
    }
}
