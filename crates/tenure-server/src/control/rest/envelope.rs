//! What REST answers look like.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use serde_json::value::RawValue;
use tenure_control::refusal::VERSION;

use crate::control::Desk;
use crate::control::message::Blocked;
use crate::http::answer::json;

#[derive(Serialize)]
struct Envelope<'a> {
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a RawValue>,
    timestamp: u32,
    version: &'a str,
}

pub(super) fn answer(desk: &Desk, data: &RawValue) -> Response {
    json(StatusCode::OK, &envelope(millis(desk), true, Some(data), None))
}

pub(super) fn failure(desk: &Desk, blocked: &Blocked) -> Response {
    refused(blocked, millis(desk))
}

/// The same, at this time of the device's clock.
pub(in crate::control) fn refused(blocked: &Blocked, millis: u32) -> Response {
    let status = StatusCode::from_u16(blocked.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, &envelope(millis, false, None, Some(&blocked.on_rest())));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

fn millis(desk: &Desk) -> u32 {
    desk.uptime.at(desk.now()).0
}

fn envelope<'a>(
    timestamp: u32,
    success: bool,
    data: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
) -> Envelope<'a> {
    Envelope { success, data, error, timestamp, version: VERSION }
}
