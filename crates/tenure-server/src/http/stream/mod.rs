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

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use self::session::Session;
use super::accept::Upgrade;
use super::answer::Failure;
use super::auth::Caller;
use crate::app::App;

/// Speak over a WebSocket.
///
/// A text frame is an array of commands: `{"id":1,"do":"acquire",…}` with the fields of `POST /v1/leases` and perhaps a `key`,
/// `{"id":2,"do":"renew","lease":"…","token":"…"}`, `{"id":3,"do":"release","lease":"…","token":"…"}`,
/// `{"id":4,"do":"watch","from":"now","resource":"deploy:"}`. Answers come in any order, in arrays of `{"id":1,"ok":{…}}`,
/// `{"id":2,"error":{…}}` with a problem, and `{"id":4,"event":{…},"at":"EPOCH-NUMBER"}`.
#[utoipa::path(
    get,
    path = "/v1/stream",
    tag = "leases",
    operation_id = "stream",
    params(
        ("Upgrade" = Option<String>, Header, description = "`websocket`"),
        ("Sec-WebSocket-Version" = Option<String>, Header, description = "`13`"),
        ("Sec-WebSocket-Key" = Option<String>, Header, description = "As RFC 6455 says"),
    ),
    responses((status = 101, description = "A WebSocket from now on")),
    extensions(("x-codes" = json!(["INVALID"])))
)]
pub(super) async fn stream(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let key = handshake(&headers)?;
    let accept = HeaderValue::from_str(&derive_accept_key(key)).expect("base64 is visible ASCII");
    let upgrade = Upgrade::to(async move |stream, begun, stop| {
        Session::new(app, caller, stream, begun).await.run(stop).await;
    });
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    response.headers_mut().insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    response.extensions_mut().insert(upgrade);
    Ok(response)
}

/// The key of a handshake as RFC 6455 wants it.
fn handshake(headers: &HeaderMap) -> Result<&[u8], Failure> {
    let has = |name, word: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(word))
    };
    let is_websocket = has(header::CONNECTION, "upgrade") && has(header::UPGRADE, "websocket");
    if !is_websocket || !has(header::SEC_WEBSOCKET_VERSION, "13") {
        return Err(Failure::invalid("Upgrade", "this address speaks WebSocket, version 13; open one"));
    }
    let mut keys = headers.get_all(header::SEC_WEBSOCKET_KEY).iter();
    match (keys.next(), keys.next()) {
        (Some(key), None) if key.len() == 24 => Ok(key.as_bytes()),
        _ => Err(Failure::invalid("Sec-WebSocket-Key", "must stand once and be 16 bytes in base64")),
    }
}
