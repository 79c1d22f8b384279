//! `GET /ws`: control of the device over a WebSocket.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use tenure_api::Code;

use super::seat::Seat;
use super::session::Session;
use crate::app::App;
use crate::http::accept::Upgrade;
use crate::http::answer::Failure;
use crate::http::auth::Caller;
use crate::http::websocket::switch;

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
) -> Result<Response, Failure> {
    let no_seat = |problem: tenure_control::Problem| Failure::new(Code::Unavailable, problem.message);
    let seat = Seat::new(app.clone(), caller).map_err(no_seat)?;
    let upgrade = Upgrade::to(async move |stream, begun, stop| {
        Session::new(app, seat, stream, begun).await.run(stop).await;
    });
    switch(&headers, upgrade)
}
