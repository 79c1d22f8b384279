//! What a client of the device is told about the lease.

use serde::Serialize;
use serde_json::{Value, value::RawValue, value::to_raw_value};
use tenure_api::ControlStatus;
use tenure_control::rejection::SCOPE;
use tenure_control::{ControlLease, ControlRejection, DeviceClock, Problem};
use tenure_core::kernel::Tick;

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
        change: &'a super::lease_change::LeaseChange,
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandError {
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

#[derive(Serialize)]
struct ProblemBody<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
}

impl CommandError {
    /// The part `error` of what a WebSocket is told.
    pub(super) fn websocket_body(&self) -> Box<RawValue> {
        match self {
            Self::Rejected(rejection) => to_raw_json(&rejection.websocket_body()),
            Self::Problem(problem) => problem_body(problem),
        }
    }

    /// The part `error` of what REST is told.
    pub(super) fn rest_body(&self) -> Box<RawValue> {
        match self {
            Self::Rejected(rejection) => to_raw_json(&rejection.rest_body()),
            Self::Problem(problem) => problem_body(problem),
        }
    }

    pub(super) fn status(&self) -> u16 {
        match self {
            Self::Rejected(rejection) => rejection.code.status(),
            Self::Problem(problem) => problem.code.status(),
        }
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
    let error = blocked.websocket_body();
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
