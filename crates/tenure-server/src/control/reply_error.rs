//! What a client of the device is told when the registrar did not answer its question.

use tenure_control::ownership::expired_rejection;
use tenure_control::{Problem, ProblemCode};
use tenure_core::kernel::Tick;
use tenure_registrar::Reply;

use super::message::CommandError;

/// What it means that the registrar did not answer the question.
pub(super) fn command_error(reply: Reply) -> CommandError {
    if reply == Reply::TooLate {
        // It was written, and was over by then.
        return expired_rejection().into();
    }
    let failure = crate::http::reply_error::error_from_reply(reply, Tick::default);
    let code = match failure.0.code {
        tenure_api::Code::Busy => ProblemCode::Busy,
        tenure_api::Code::OutcomeUnknown => ProblemCode::OutcomeUnknown,
        _ => ProblemCode::Unavailable,
    };
    Problem::new(code, failure.0.detail).into()
}

/// An answer that does not belong to the question.
pub(super) fn unexpected() -> Problem {
    Problem::new(
        ProblemCode::Unavailable,
        "the registrar gave an answer to another question; please report this",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    // S0-49
    #[test]
    fn a_lease_that_expired_before_it_was_durable_is_reported_as_expired() {
        assert_eq!(command_error(Reply::TooLate), CommandError::Rejected(expired_rejection()));
        let CommandError::Problem(problem) = command_error(Reply::Busy) else {
            panic!("the lease has nothing to do with it")
        };
        assert_eq!(problem.code, ProblemCode::Busy);
    }
}
