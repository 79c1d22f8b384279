//! Responses and broadcasts about the lease, for clients of the device.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tenure_api::{Code, ControlStatus};
use tenure_control::ownership::expired_rejection;
use tenure_control::rejection::{ErrorBody, SCOPE};
use tenure_control::{CommandError, ControlLease, DeviceClock, Problem, ProblemCode};
use tenure_core::kernel::Tick;
use tenure_registrar::Reply;

use super::counters::CounterSnapshot;
use crate::http::response::{HttpError, error_from_reply};

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
    error: Option<ErrorBody<'a>>,
}

pub(super) fn success(kind: &str, request_id: Option<&str>, data: &impl Serialize) -> String {
    let (event, error) = (None, None);
    text(&Envelope { r#type: kind, request_id, event, success: true, data: Some(data), error })
}

pub(super) fn error(request_id: Option<&str>, blocked: &CommandError) -> String {
    let (event, data) = (None, None::<&Value>);
    let error = Some(blocked.body());
    text(&Envelope { r#type: "error", request_id, event, success: false, data, error })
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

/// Errors of what all APIs share, with the codes of the device.
impl From<HttpError> for CommandError {
    fn from(HttpError(problem): HttpError) -> Self {
        let code = match problem.code {
            Code::Busy => ProblemCode::Busy,
            Code::OutcomeUnknown => ProblemCode::OutcomeUnknown,
            Code::TooLarge => ProblemCode::TooLarge,
            Code::Invalid | Code::TooSlow => ProblemCode::InvalidJson,
            _ => ProblemCode::Unavailable,
        };
        Problem::new(code, problem.detail).into()
    }
}

/// The error that a reply of the registrar means for a control command.
pub(super) fn command_error(reply: Reply) -> CommandError {
    match reply {
        // Written, but expired by then.
        Reply::TooLate => expired_rejection().into(),
        reply => error_from_reply(reply, Tick::default).into(),
    }
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
