//! From what the registrar said to what the caller is told.

use tenure_api::Code;
use tenure_core::kernel::{Answer, End, Holder, Refusal, Tick};
use tenure_core::rules::time::remaining;
use tenure_registrar::Reply;

use super::answer::Failure;

/// The kernel's answer and the request's stamp, or why there is none.
pub(crate) fn answered(reply: Reply, now: impl FnOnce() -> Tick) -> Result<(Answer, Tick), Failure> {
    match reply {
        Reply::Answered { answer: Answer::Refused(_), .. } => Err(failure_of(reply, now)),
        Reply::Answered { answer, stamp } => Ok((answer, stamp)),
        _ => Err(failure_of(reply, now)),
    }
}

/// Why a caller does not get what it asked for. An answer that is no refusal is none that was expected.
pub(crate) fn failure_of(reply: Reply, now: impl FnOnce() -> Tick) -> Failure {
    match reply {
        Reply::Answered { answer: Answer::Refused(refusal), .. } => refused(refusal, now),
        Reply::Answered { .. } => unexpected(),
        Reply::Busy => Failure::new(Code::Busy, "too much waits to be decided; nothing happened, ask again"),
        Reply::TooLate => Failure::new(
            Code::TooLate,
            "the write took so long that the lease is over; look at the disk, and ask for a new one",
        ),
        Reply::Unavailable => Failure::new(
            Code::Unavailable,
            "the server is stopping, or its ledger cannot be written; nothing happened, ask again later",
        ),
        Reply::OutcomeUnknown => Failure::new(
            Code::OutcomeUnknown,
            "the disk failed while this was written; ask again with the same Idempotency-Key when the server is back",
        ),
    }
}

/// What a waiter is told when nobody can tell it any more how its wait ended.
pub(super) fn cut_off() -> Failure {
    Failure::new(
        Code::OutcomeUnknown,
        "the server's ledger failed while this waited; ask again with the same Idempotency-Key when the server is back",
    )
}

/// What an answer means that does not belong to the question.
pub(crate) fn unexpected() -> Failure {
    Failure::new(Code::Internal, "the registrar gave an answer to another question; please report this")
}

fn refused(refusal: Refusal, now: impl FnOnce() -> Tick) -> Failure {
    let detail = refusal.to_string();
    match refusal {
        Refusal::Invalid(invalid) => invalid.into(),
        Refusal::TtlOutOfRange { .. } => Failure::new(Code::TtlOutOfRange, detail),
        Refusal::Held { resource, holder, until, waiting } => {
            let mut failure = Failure::new(Code::Held, format!("{detail}; ask again later"));
            failure.0.resource = Some(resource.as_str().to_owned());
            failure.0.holder = Some(holder.as_str().to_owned());
            failure.0.remaining_ms = Some(remaining(now().0, until.0) / 1_000);
            failure.0.waiting = Some(waiting);
            failure
        }
        Refusal::QueueFull { .. } => Failure::new(Code::QueueFull, detail),
        Refusal::Deadlock { cycle } => {
            let remedy = "release something and ask again, or ask for everything at once";
            Failure::new(Code::Deadlock, format!("{detail}: {}; {remedy}", circle(&cycle)))
        }
        Refusal::QuotaExceeded { .. } => Failure::new(Code::QuotaExceeded, detail),
        Refusal::KeyReused => Failure::new(Code::KeyReused, format!("{detail}; use a new key")),
        Refusal::HolderTaken { holder } => {
            let mut failure = Failure::new(Code::HolderTaken, format!("{detail}; choose another name"));
            failure.0.holder = Some(holder.as_str().to_owned());
            failure
        }
        Refusal::WrongDirection { .. } => Failure::invalid("mode", &detail),
        Refusal::NotFound | Refusal::NoSuchTicket => not_found(),
        Refusal::NoSuchSession => no_such_session(),
        Refusal::NotIdle => Failure::new(Code::Invalid, detail),
        Refusal::TooManySessions { .. } => {
            Failure::new(Code::TooManySessions, format!("{detail}; ask again when some are over"))
        }
        Refusal::PriorityFixed { has } => {
            let remedy = "use that one, or report ABORTED and begin anew with a larger one";
            let mut failure = Failure::new(Code::PriorityFixed, format!("{detail}; {remedy}"));
            failure.0.priority_timestamp = Some(has);
            failure
        }
        Refusal::LeaseTimeUsed { has } => {
            let mut failure = Failure::new(Code::LeaseTimeUsed, detail);
            failure.0.priority_timestamp = Some(has);
            failure
        }
        Refusal::MemoryStale { epoch } => {
            let remedy = "forget it, ask what is true with /v1/leases/reconcile, and declare anew";
            let said = format!("{detail}; the latest life known here is {epoch}; {remedy}");
            Failure::new(Code::DigestStale, said)
        }
        Refusal::NoAuthority => no_authority(),
        Refusal::AuthorityBound => {
            let remedy = "derive a lease for the other holder, or release this one and claim the work anew";
            Failure::new(Code::AuthorityBound, format!("{detail}; {remedy}"))
        }
        Refusal::OutOfScope { .. } => {
            Failure::new(Code::OutOfScope, format!("{detail}; ask whoever gave the lease for a wider one"))
        }
        Refusal::BudgetExceeded { left } => {
            let [episodes, tool_calls, tokens, duration_ms] = left.amounts();
            let said = format!(
                "{detail}: {episodes} episodes, {tool_calls} tool calls, {tokens} tokens and {duration_ms} ms; \
                 nothing was taken; ask for less"
            );
            let mut failure = Failure::new(Code::BudgetExceeded, said);
            failure.0.remaining = Some(tenure_api::Budget { episodes, tool_calls, tokens, duration_ms });
            failure
        }
        Refusal::OutlivesParent { remaining } => {
            let said = format!("{detail}; ask for less, or have that one renewed first");
            let mut failure = Failure::new(Code::OutlivesParent, said);
            failure.0.remaining_ms = Some(remaining.as_millis());
            failure
        }
        Refusal::TreeFull { .. } => {
            Failure::new(Code::TreeFull, format!("{detail}; end some of them, or derive from another lease"))
        }
        Refusal::NoSuchAgent => no_such_agent(),
        Refusal::GuardLost => guard_lost(),
        Refusal::NotHolder => token_invalid(),
        Refusal::Over { end, .. } => {
            let mut failure = Failure::new(Code::Expired, "the lease is over; acquire the resource anew");
            failure.0.end = Some(end_name(end).to_owned());
            failure
        }
        Refusal::NoSpace => Failure::new(Code::NoSpace, detail),
        Refusal::HeldBack { remaining, .. } => {
            let mut failure = Failure::new(Code::HeldBack, detail);
            failure.0.remaining_ms = Some(remaining.as_millis());
            failure
        }
        Refusal::Exhausted => Failure::new(Code::Exhausted, detail),
        // Nothing that can be asked here leads to any other.
        _ => unexpected(),
    }
}

/// Who waits for whom, all the way round.
fn circle(holders: &[Holder]) -> String {
    let next = holders.iter().cycle().skip(1);
    let pairs = holders.iter().zip(next).map(|(one, other)| format!("{one} waits for {other}"));
    pairs.collect::<Vec<_>>().join(", ")
}

pub(super) fn not_found() -> Failure {
    Failure::new(Code::NotFound, "there is no such lease, or it ended too long ago to be remembered")
}

/// A lease that was acquired as any other.
pub(super) fn no_authority() -> Failure {
    let detail = "the lease says nothing about what its holder may do; claim the work with /v1/work/claim";
    Failure::new(Code::NoAuthority, detail)
}

pub(crate) fn no_such_session() -> Failure {
    Failure::new(Code::NotFound, "there is no such session, or it ended too long ago to be remembered")
}

pub(crate) fn no_such_agent() -> Failure {
    let detail = "nobody of this name has declared or reported anything within the last day";
    Failure::new(Code::NotFound, detail)
}

/// Somebody who was the worker, or never was.
pub(crate) fn guard_lost() -> Failure {
    let detail = "this guard does not live, or the session was taken under another one; end the pipelines and this \
                  worker, and start anew";
    Failure::new(Code::GuardLost, detail)
}

pub(super) fn token_invalid() -> Failure {
    Failure::new(Code::TokenInvalid, "the token is not the one that was given out with this lease")
}

/// How a lease ended, in one word.
pub(crate) fn end_name(end: End) -> &'static str {
    match end {
        End::Expired => "EXPIRED",
        End::Released(reason) => reason.as_str(),
        End::Revoked(cause) => cause.as_str(),
    }
}
