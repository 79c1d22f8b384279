//! What goes back: JSON, or a problem.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tenure_api::strict::ReadError;
use tenure_api::{Code, Problem};
use tenure_core::kernel::{CommandOutcome, Holder, LeaseEnd, Rejection, Tick};
use tenure_core::rules::{InvalidInput, remaining};
use tenure_registrar::Reply;

/// A request that did not get what it wanted.
#[derive(Debug)]
pub(crate) struct HttpError(pub(crate) Box<Problem>);

impl HttpError {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self(Box::new(Problem::new(code, detail)))
    }

    /// A value that cannot be accepted. The value itself is not repeated: it may be a secret in the wrong place.
    pub(crate) fn invalid(field: &str, reason: &str) -> Self {
        Self::new(Code::Invalid, format!("{field}: {reason}"))
    }

    /// The same, where the field is part of something else.
    pub(crate) fn in_field(mut self, place: &str) -> Self {
        if self.0.code == Code::Invalid {
            self.0.detail = format!("{place}.{}", self.0.detail);
        }
        self
    }
}

impl From<ReadError> for HttpError {
    fn from(error: ReadError) -> Self {
        match error.field() {
            "" => Self::new(Code::Invalid, format!("the body {}", error.reason())),
            field => Self::invalid(field, error.reason()),
        }
    }
}

impl From<InvalidInput> for HttpError {
    fn from(invalid: InvalidInput) -> Self {
        Self::invalid(invalid.field, &invalid.reason)
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let code = self.0.code;
        let status = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = with_type(status, &self.0, Problem::MEDIA_TYPE);
        // For whoever counts.
        response.extensions_mut().insert(code);
        let headers = response.headers_mut();
        if let Some(seconds) = code.retry_after_seconds() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if code == Code::Unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"tenure\""));
        }
        response
    }
}

pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    with_type(status, body, "application/json")
}

fn with_type(status: StatusCode, body: &impl Serialize, media_type: &'static str) -> Response {
    let bytes = serde_json::to_vec(body).expect("text, numbers and maps of text can be written as JSON");
    // What is true now may be wrong in a moment, and some of it is a token.
    let headers = [(header::CONTENT_TYPE, media_type), (header::CACHE_CONTROL, "no-store")];
    (status, headers, bytes).into_response()
}

/// The kernel's answer and the request's stamp, or why there is none.
pub(crate) fn answer_from_reply(
    reply: Reply,
    now: impl FnOnce() -> Tick,
) -> Result<(CommandOutcome, Tick), HttpError> {
    match reply {
        Reply::Answered { answer: CommandOutcome::Rejected(_), .. } => Err(error_from_reply(reply, now)),
        Reply::Answered { answer, stamp } => Ok((answer, stamp)),
        _ => Err(error_from_reply(reply, now)),
    }
}

/// Why a caller does not get what it asked for. An answer that is no refusal is none that was expected.
pub(crate) fn error_from_reply(reply: Reply, now: impl FnOnce() -> Tick) -> HttpError {
    match reply {
        Reply::Answered { answer: CommandOutcome::Rejected(rejection), .. } => refused(rejection, now),
        Reply::Answered { .. } => unexpected(),
        Reply::Busy => {
            HttpError::new(Code::Busy, "too much waits to be decided; nothing happened, ask again")
        }
        Reply::TooLate => HttpError::new(
            Code::TooLate,
            "the write took so long that the lease is over; look at the disk, and ask for a new one",
        ),
        Reply::Unavailable => HttpError::new(
            Code::Unavailable,
            "the server is stopping, or its ledger cannot be written; nothing happened, ask again later",
        ),
        Reply::OutcomeUnknown => HttpError::new(
            Code::OutcomeUnknown,
            "the disk failed while this was written; ask again with the same Idempotency-Key when the server is back",
        ),
    }
}

/// What a waiter is told when nobody can tell it any more how its wait ended.
pub(crate) fn outcome_unknown() -> HttpError {
    HttpError::new(
        Code::OutcomeUnknown,
        "the server's ledger failed while this waited; ask again with the same Idempotency-Key when the server is back",
    )
}

/// What an answer means that does not belong to the question.
pub(crate) fn unexpected() -> HttpError {
    HttpError::new(Code::Internal, "the registrar gave an answer to another question; please report this")
}

fn refused(rejection: Rejection, now: impl FnOnce() -> Tick) -> HttpError {
    let detail = rejection.to_string();
    match rejection {
        Rejection::Invalid(invalid) => invalid.into(),
        Rejection::TtlOutOfRange { .. } => HttpError::new(Code::TtlOutOfRange, detail),
        Rejection::Held { resource, holder, until, waiting } => {
            let mut failure = HttpError::new(Code::Held, format!("{detail}; ask again later"));
            failure.0.resource = Some(resource.as_str().to_owned());
            failure.0.holder = Some(holder.as_str().to_owned());
            failure.0.remaining_ms = Some(remaining(now().0, until.0) / 1_000);
            failure.0.waiting = Some(waiting);
            failure
        }
        Rejection::QueueFull { .. } => HttpError::new(Code::QueueFull, detail),
        Rejection::Deadlock { cycle } => {
            let remedy = "release something and ask again, or ask for everything at once";
            HttpError::new(Code::Deadlock, format!("{detail}: {}; {remedy}", format_cycle(&cycle)))
        }
        Rejection::QuotaExceeded { .. } => HttpError::new(Code::QuotaExceeded, detail),
        Rejection::KeyReused => HttpError::new(Code::KeyReused, format!("{detail}; use a new key")),
        Rejection::HolderTaken { holder } => {
            let mut failure = HttpError::new(Code::HolderTaken, format!("{detail}; choose another name"));
            failure.0.holder = Some(holder.as_str().to_owned());
            failure
        }
        Rejection::WrongDirection { .. } => HttpError::invalid("mode", &detail),
        Rejection::NotFound | Rejection::NoSuchTicket => not_found(),
        Rejection::NoSuchSession => no_such_session(),
        Rejection::NotIdle => HttpError::new(Code::Invalid, detail),
        Rejection::TooManySessions { .. } => {
            HttpError::new(Code::TooManySessions, format!("{detail}; ask again when some are over"))
        }
        Rejection::PriorityFixed { current: has } => {
            let remedy = "use that one, or report ABORTED and begin anew with a larger one";
            let mut failure = HttpError::new(Code::PriorityFixed, format!("{detail}; {remedy}"));
            failure.0.priority_timestamp = Some(has);
            failure
        }
        Rejection::LeaseTimeUsed { has } => {
            let mut failure = HttpError::new(Code::LeaseTimeUsed, detail);
            failure.0.priority_timestamp = Some(has);
            failure
        }
        Rejection::MemoryStale { epoch } => {
            let remedy = "forget it, ask what is true with /v1/leases/reconcile, and declare anew";
            let detail_text = format!("{detail}; the latest life known here is {epoch}; {remedy}");
            HttpError::new(Code::DigestStale, detail_text)
        }
        Rejection::NoAuthority => not_a_work_lease(),
        Rejection::AuthorityBound => {
            let remedy = "derive a lease for the other holder, or release this one and claim the work anew";
            HttpError::new(Code::AuthorityBound, format!("{detail}; {remedy}"))
        }
        Rejection::OutOfScope { .. } => {
            HttpError::new(Code::OutOfScope, format!("{detail}; ask whoever gave the lease for a wider one"))
        }
        Rejection::BudgetExceeded { remaining } => {
            let [episodes, tool_calls, tokens, duration_ms] = remaining.amounts();
            let detail = format!(
                "{detail}: {episodes} episodes, {tool_calls} tool calls, {tokens} tokens and {duration_ms} ms; \
                 nothing was taken; ask for less"
            );
            let mut failure = HttpError::new(Code::BudgetExceeded, detail);
            failure.0.remaining = Some(tenure_api::Budget { episodes, tool_calls, tokens, duration_ms });
            failure
        }
        Rejection::OutlivesParent { remaining } => {
            let detail = format!("{detail}; ask for less, or have that one renewed first");
            let mut failure = HttpError::new(Code::OutlivesParent, detail);
            failure.0.remaining_ms = Some(remaining.as_millis());
            failure
        }
        Rejection::TooManyDerived { .. } => HttpError::new(
            Code::TreeFull,
            format!("{detail}; end some of them, or derive from another lease"),
        ),
        Rejection::NoSuchAgent => no_such_agent(),
        Rejection::LeaderLost => leader_lock_lost(),
        Rejection::NotHolder => token_invalid(),
        Rejection::Ended { end, .. } => {
            let mut failure = HttpError::new(Code::Expired, "the lease is over; acquire the resource anew");
            failure.0.end = Some(end_reason_name(end).to_owned());
            failure
        }
        Rejection::NoSpace => HttpError::new(Code::NoSpace, detail),
        Rejection::RestoreHold { remaining, .. } => {
            let mut failure = HttpError::new(Code::HeldBack, detail);
            failure.0.remaining_ms = Some(remaining.as_millis());
            failure
        }
        Rejection::Exhausted => HttpError::new(Code::Exhausted, detail),
        // Nothing that can be asked here leads to any other.
        _ => unexpected(),
    }
}

/// Who waits for whom, all the way round.
fn format_cycle(holders: &[Holder]) -> String {
    let next = holders.iter().cycle().skip(1);
    let pairs = holders.iter().zip(next).map(|(one, other)| format!("{one} waits for {other}"));
    pairs.collect::<Vec<_>>().join(", ")
}

pub(crate) fn not_found() -> HttpError {
    HttpError::new(Code::NotFound, "there is no such lease, or it ended too long ago to be remembered")
}

/// A lease that was acquired as any other.
pub(crate) fn not_a_work_lease() -> HttpError {
    let detail = "the lease says nothing about what its holder may do; claim the work with /v1/work/claim";
    HttpError::new(Code::NoAuthority, detail)
}

pub(crate) fn no_such_session() -> HttpError {
    HttpError::new(Code::NotFound, "there is no such session, or it ended too long ago to be remembered")
}

pub(crate) fn no_such_agent() -> HttpError {
    let detail = "nobody of this name has declared or reported anything within the last day";
    HttpError::new(Code::NotFound, detail)
}

/// Somebody who was the worker, or never was.
pub(crate) fn leader_lock_lost() -> HttpError {
    let detail = "this guard does not live, or the session was taken under another one; end the pipelines and this \
                  worker, and start anew";
    HttpError::new(Code::GuardLost, detail)
}

pub(crate) fn token_invalid() -> HttpError {
    HttpError::new(Code::TokenInvalid, "the token is not the one that was given out with this lease")
}

/// How a lease ended, in one word.
pub(crate) fn end_reason_name(end: LeaseEnd) -> &'static str {
    match end {
        LeaseEnd::Expired => "EXPIRED",
        LeaseEnd::Released(reason) => reason.as_str(),
        LeaseEnd::Revoked(cause) => cause.as_str(),
    }
}
