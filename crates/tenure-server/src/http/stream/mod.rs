//! `GET /v1/stream`: many commands and watches over one WebSocket, answered in whichever order they are done.
//!
//! ```text
//! frame ──> frame     an array of commands, read as strictly as a body
//!           command   one of them: the same code as the route of its name
//!           session   what is under way on one connection; answers that are ready together go out together
//! ```

mod command;
mod frame;
mod session;

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use self::session::StreamSession;
use super::accept::ConnectionUpgrade;
use super::auth::Caller;
use super::response::HttpError;
use super::websocket;
use crate::app::App;

/// Send commands over a WebSocket.
///
/// A text frame is an array of commands: `{"id":1,"do":"acquire",…}` with the fields of `POST /v1/leases` and
/// an optional `key`, `{"id":2,"do":"renew","lease":"…","token":"…"}`,
/// `{"id":3,"do":"release","lease":"…","token":"…"}`,
/// `{"id":4,"do":"watch","from":"now","resource":"deploy:"}`. Responses arrive in any order, in arrays of
/// `{"id":1,"ok":{…}}`, `{"id":2,"error":{…}}` with a problem, and
/// `{"id":4,"event":{…},"at":"EPOCH-NUMBER"}`.
#[utoipa::path(
    get,
    path = "/v1/stream",
    tag = "leases",
    operation_id = "stream",
    params(
        ("Upgrade" = Option<String>, Header, description = "The value `websocket`"),
        ("Sec-WebSocket-Version" = Option<String>, Header, description = "The value `13`"),
        ("Sec-WebSocket-Key" = Option<String>, Header, description = "Key as in RFC 6455"),
    ),
    responses((status = 101, description = "Switched to a WebSocket")),
    extensions(("x-codes" = json!(["INVALID"])))
)]
pub(super) async fn stream(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    let upgrade = ConnectionUpgrade::new(async move |stream, prefix, stop| {
        StreamSession::new(app, caller, stream, prefix).await.run(stop).await;
    });
    websocket::upgrade_response(&headers, upgrade)
}
