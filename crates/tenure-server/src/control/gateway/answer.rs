//! How it is said that a command did not come through: as the control face says it.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tenure_control::refusal::VERSION;
use tokio_tungstenite::tungstenite::Message;

use super::Blocked;

/// To a request.
pub(super) fn on_rest(blocked: &Blocked, millis: u32) -> Response {
    let (status, error) = match blocked {
        Blocked::Refused(refusal) => (refusal.code.status(), json!(refusal.on_rest())),
        Blocked::Problem(problem) => {
            (problem.code.status(), json!({"code": problem.code.as_str(), "message": problem.message}))
        }
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = json!({"success": false, "error": error, "timestamp": millis, "version": VERSION});
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, body.to_string()).into_response()
}

/// To a WebSocket, about a message that was taken before it turned out. Most messages of devices have no `requestId`;
/// one that has gets it back.
pub(super) fn on_websocket(blocked: &Blocked, request_id: Option<Value>) -> Message {
    let error = match blocked {
        Blocked::Refused(refusal) => json!(refusal.on_websocket()),
        Blocked::Problem(problem) => json!({"code": problem.code.as_str(), "message": problem.message}),
    };
    let mut body = json!({"type": "error", "success": false, "error": error});
    if let Some(id) = request_id {
        body["requestId"] = id;
    }
    Message::text(body.to_string())
}

/// The `requestId` of a message.
pub(super) fn request_id(message: &Message) -> Option<Value> {
    let Message::Text(text) = message else { return None };
    let Ok(Value::Object(mut fields)) = serde_json::from_str(text) else { return None };
    fields.remove("requestId").filter(Value::is_string)
}
