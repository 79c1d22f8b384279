//! What a client of the device is told when the registrar did not answer its question.

use tenure_control::hand::expired;
use tenure_control::{Problem, ProblemCode};
use tenure_core::kernel::Tick;
use tenure_registrar::Reply;

use super::message::Blocked;

/// What it means that the registrar did not answer the question.
pub(super) fn failed(reply: Reply) -> Blocked {
    if reply == Reply::TooLate {
        // It was written, and was over by then.
        return expired().into();
    }
    let failure = crate::http::refusal::failure_of(reply, Tick::default);
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
        assert_eq!(failed(Reply::TooLate), Blocked::Refused(expired()));
        let Blocked::Problem(problem) = failed(Reply::Busy) else {
            panic!("the lease has nothing to do with it")
        };
        assert_eq!(problem.code, ProblemCode::Busy);
    }
}
