//! `GET /ws`: control of the device over a WebSocket.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use tenure_api::Code;

use super::connection::Connection;
use super::session::ControlSession;
use crate::app::App;
use crate::http::accept::Upgrade;
use crate::http::auth::Caller;
use crate::http::response::HttpError;
use crate::http::websocket::upgrade_response;

/// Control the device.
///
/// Messages are JSON objects with a `type` and perhaps a `requestId`, which the answer repeats. `control.acquire`,
/// `control.heartbeat` and `control.release` are the life of the lease, which belongs to this connection and ends with it;
/// `control.stateChanged` tells everybody of each change. Binary messages are frames of a render stream.
#[utoipa::path(
    get,
    path = "/ws",
    tag = "control",
    operation_id = "control",
    params(
        ("Upgrade" = Option<String>, Header, description = "`websocket`"),
        ("Sec-WebSocket-Version" = Option<String>, Header, description = "`13`"),
        ("Sec-WebSocket-Key" = Option<String>, Header, description = "As RFC 6455 says"),
    ),
    responses((status = 101, description = "A WebSocket from now on")),
    extensions(("x-codes" = json!(["INVALID", "UNAVAILABLE"])))
)]
pub(super) async fn websocket(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    let no_connection = |problem: tenure_control::Problem| HttpError::new(Code::Unavailable, problem.message);
    let seat = Connection::new(app.clone(), caller).map_err(no_connection)?;
    let upgrade = Upgrade::new(async move |stream, prefix, stop| {
        ControlSession::new(app, seat, stream, prefix).await.run(stop).await;
    });
    upgrade_response(&headers, upgrade)
}
