//! `GET /ws`: control of the device over a WebSocket.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use tenure_api::Code;

use super::connection::Connection;
use super::session::ControlSession;
use crate::app::App;
use crate::http::accept::ConnectionUpgrade;
use crate::http::auth::Caller;
use crate::http::response::HttpError;
use crate::http::websocket::upgrade_response;

/// Control the device over a WebSocket.
///
/// Messages are JSON objects with a `type` and an optional `requestId`, which the response repeats.
/// `control.acquire`, `control.heartbeat` and `control.release` manage the control lease, which belongs to
/// this connection and ends with it. `control.stateChanged` announces each change to all connections. Binary
/// messages are frames of a render stream.
#[utoipa::path(
    get,
    path = "/ws",
    tag = "control",
    operation_id = "control",
    params(
        ("Upgrade" = Option<String>, Header, description = "The value `websocket`"),
        ("Sec-WebSocket-Version" = Option<String>, Header, description = "The value `13`"),
        ("Sec-WebSocket-Key" = Option<String>, Header, description = "Key as in RFC 6455"),
    ),
    responses((status = 101, description = "Switched to a WebSocket")),
    extensions(("x-codes" = json!(["INVALID", "UNAVAILABLE"])))
)]
pub(super) async fn websocket(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    let no_connection = |problem: tenure_control::Problem| HttpError::new(Code::Unavailable, problem.message);
    let connection = Connection::new(app.clone(), caller).map_err(no_connection)?;
    let upgrade = ConnectionUpgrade::new(async move |stream, prefix, stop| {
        ControlSession::new(app, connection, stream, prefix).await.run(stop).await;
    });
    upgrade_response(&headers, upgrade)
}
