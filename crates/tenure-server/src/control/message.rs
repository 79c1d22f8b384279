//! Responses and broadcasts about the lease, for clients of the device.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tenure_api::ControlStatus;
use tenure_control::ownership::expired_rejection;
use tenure_control::rejection::SCOPE;
use tenure_control::{CommandError, ControlLease, DeviceClock, Problem, ProblemCode};
use tenure_core::kernel::Tick;
use tenure_registrar::Reply;

use super::counters::CounterSnapshot;

/// The answer to `control.acquire`: the one place where the token is.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AcquireResponse<'a> {
    #[serde(flatten)]
    status: ControlStatus,
    lease_token: &'a str,
    acquired_at_ms: u32,
    expires_at_ms: u32,
}

impl<'a> AcquireResponse<'a> {
    pub(super) fn new(
        held: &ControlLease,
        token: &'a str,
        heartbeat_interval_ms: u32,
        uptime: DeviceClock,
    ) -> Self {
        Self {
            // A client counts from when it sent its request.
            status: active_status(held, held.ttl_ms(), heartbeat_interval_ms),
            lease_token: token,
            acquired_at_ms: uptime.at(held.acquired_at).0,
            expires_at_ms: uptime.at(held.expires_at).0,
        }
    }
}

/// The answer to `control.heartbeat`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HeartbeatAck<'a> {
    pub(super) lease_id: &'a str,
    pub(super) ttl_ms: u32,
    pub(super) remaining_ms: u32,
    pub(super) expires_at_ms: u32,
}

/// The answer to `control.release`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReleaseResponse<'a> {
    pub(super) released: bool,
    pub(super) lease_id: &'a str,
    pub(super) released_at_ms: u32,
    pub(super) reason: &'a str,
}

/// The response to `control.status`. Without a lease it has the same fields, and those of the owner are empty.
pub(super) fn status(
    held: Option<&ControlLease>,
    now: Tick,
    ttl_ms: u32,
    heartbeat_interval_ms: u32,
) -> ControlStatus {
    let empty = || ControlStatus {
        scope: SCOPE.to_owned(),
        ttl_ms,
        heartbeat_interval_ms,
        ..ControlStatus::default()
    };
    held.map_or_else(empty, |held| active_status(held, held.remaining_ms(now), heartbeat_interval_ms))
}

fn active_status(held: &ControlLease, remaining_ms: u32, heartbeat_interval_ms: u32) -> ControlStatus {
    ControlStatus {
        active: true,
        lease_id: held.lease_id.to_string(),
        scope: SCOPE.to_owned(),
        owner_client_name: held.owner.client_name.to_string(),
        owner_instance_id: held.owner.instance_id.to_string(),
        owner_ws_client_id: held.owner.websocket_client_id,
        remaining_ms,
        ttl_ms: held.ttl_ms(),
        heartbeat_interval_ms,
        takeover_allowed: false,
    }
}

/// What everybody is told when the lease changes.
#[derive(Serialize)]
pub(super) struct ControlStateChangedData<'a> {
    #[serde(flatten)]
    status: ControlStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    counters: CounterSnapshot,
}

impl<'a> ControlStateChangedData<'a> {
    pub(super) fn new(
        change: &'a LeaseChange,
        now: Tick,
        heartbeat_interval_ms: u32,
        counters: CounterSnapshot,
    ) -> Self {
        let active = change.is_active();
        let remaining_ms = if active { change.lease.remaining_ms(now) } else { 0 };
        Self {
            status: ControlStatus {
                active,
                ..active_status(&change.lease, remaining_ms, heartbeat_interval_ms)
            },
            reason: change.reason.as_deref(),
            counters,
        }
    }
}

#[derive(Serialize)]
struct ProblemBody<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
}

/// The part `error` of what a WebSocket is told.
pub(super) fn websocket_body(blocked: &CommandError) -> Box<RawValue> {
    match blocked {
        CommandError::Rejected(rejection) => to_raw_json(&rejection.websocket_body()),
        CommandError::Problem(problem) => problem_body(problem),
    }
}

/// The part `error` of what REST is told.
pub(super) fn rest_body(blocked: &CommandError) -> Box<RawValue> {
    match blocked {
        CommandError::Rejected(rejection) => to_raw_json(&rejection.rest_body()),
        CommandError::Problem(problem) => problem_body(problem),
    }
}

fn problem_body(problem: &Problem) -> Box<RawValue> {
    let (code, field) = (problem.code.as_str(), problem.field.as_deref());
    to_raw_json(&ProblemBody { code, message: &problem.message, field })
}

/// What is said on a WebSocket.
#[derive(Serialize)]
struct Envelope<'a, T> {
    r#type: &'a str,
    #[serde(rename = "requestId", skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a str>,
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RawValue>,
}

pub(super) fn success(kind: &str, request_id: Option<&str>, data: &impl Serialize) -> String {
    let (event, error) = (None, None);
    text(&Envelope { r#type: kind, request_id, event, success: true, data: Some(data), error })
}

pub(super) fn error(request_id: Option<&str>, blocked: &CommandError) -> String {
    let (event, data) = (None, None::<&Value>);
    let error = websocket_body(blocked);
    text(&Envelope { r#type: "error", request_id, event, success: false, data, error: Some(&error) })
}

pub(super) fn broadcast_message(event: &str, data: &ControlStateChangedData<'_>) -> String {
    let (request_id, error) = (None, None);
    let kind = "control.stateChanged";
    text(&Envelope { r#type: kind, request_id, event: Some(event), success: true, data: Some(data), error })
}

pub(super) fn to_raw_json(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).expect("text, numbers and maps of text can be written as JSON")
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("text, numbers and maps of text can be written as JSON")
}

pub(super) struct LeaseChange {
    pub(super) event: LeaseEventKind,
    /// As it is after the change; if it is over, as it was.
    pub(super) lease: ControlLease,
    pub(super) reason: Option<Arc<str>>,
}

tenure_core::text_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum LeaseEventKind {
        Acquired = "acquired",
        Heartbeat = "heartbeat",
        Released = "released",
        Expired = "expired",
    }
}

impl LeaseChange {
    pub(super) fn is_active(&self) -> bool {
        matches!(self.event, LeaseEventKind::Acquired | LeaseEventKind::Heartbeat)
    }
}

/// What it means that the registrar did not answer the question.
pub(super) fn command_error(reply: Reply) -> CommandError {
    if reply == Reply::TooLate {
        // It was written, and was over by then.
        return expired_rejection().into();
    }
    let failure = crate::http::response::error_from_reply(reply, Tick::default);
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
    use tenure_control::rejection::{BLOCKED, ControlRejection, ControlRejectionCode};
    use tenure_gateway::request_id;
    use tokio_tungstenite::tungstenite::Message;

    use super::*;

    fn locked() -> CommandError {
        let (code, owner_client_name) = (ControlRejectionCode::ControlLocked, "K1 Composer".to_owned());
        ControlRejection { code, message: BLOCKED, owner_client_name, remaining_ms: 1_820 }.into()
    }

    // S0-72
    #[test]
    fn a_message_blocked_after_admission_gets_the_same_response_as_one_blocked_before() {
        let message = Message::text(r#"{"requestId":"req-201","bri":1}"#);
        let answer = error(request_id(&message).as_deref(), &locked());
        let expected = r#"{"type":"error","requestId":"req-201","success":false,"error":{"code":"CONTROL_LOCKED","message":"Command blocked by active control lease","ownerClientName":"K1 Composer","remainingMs":1820,"scope":"global"}}"#;
        assert_eq!(answer, expected);
    }

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
