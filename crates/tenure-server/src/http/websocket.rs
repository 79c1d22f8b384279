//! The handshake after which a connection speaks WebSocket.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use super::response::HttpError;
use crate::net::ConnectionUpgrade;

/// A caller that takes nothing for so long is not there any more.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// After so long without a word the caller is asked whether it is there; after three times as long it is not.
pub(crate) const PING_INTERVAL: Duration = Duration::from_secs(30);

/// The answer that agrees, after which the connection goes on with `upgrade`.
pub(crate) fn upgrade_response(
    headers: &HeaderMap,
    upgrade: ConnectionUpgrade,
) -> Result<Response, HttpError> {
    let key = handshake(headers)?;
    let accept = HeaderValue::from_str(&derive_accept_key(key)).expect("base64 is visible ASCII");
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    response.headers_mut().insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    response.extensions_mut().insert(upgrade);
    Ok(response)
}

/// How much memory a connection with messages of at most so many bytes may take.
pub(crate) fn config(max_bytes: usize) -> WebSocketConfig {
    let mut config = WebSocketConfig::default();
    // By default each takes 128 KiB, and what is not taken by the caller grows without bound.
    config.read_buffer_size = 4 << 10;
    config.write_buffer_size = 0;
    config.max_write_buffer_size = 4 * max_bytes;
    config.max_message_size = Some(max_bytes);
    config.max_frame_size = Some(max_bytes);
    config
}

/// The key of a handshake as RFC 6455 wants it.
fn handshake(headers: &HeaderMap) -> Result<&[u8], HttpError> {
    let has = |name, word: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(word))
    };
    let is_websocket = has(header::CONNECTION, "upgrade") && has(header::UPGRADE, "websocket");
    if !is_websocket || !has(header::SEC_WEBSOCKET_VERSION, "13") {
        return Err(HttpError::invalid("Upgrade", "this address speaks WebSocket, version 13; open one"));
    }
    let mut keys = headers.get_all(header::SEC_WEBSOCKET_KEY).iter();
    match (keys.next(), keys.next()) {
        (Some(key), None) if key.len() == 24 => Ok(key.as_bytes()),
        _ => Err(HttpError::invalid("Sec-WebSocket-Key", "must stand once and be 16 bytes in base64")),
    }
}

/// Waits until the server stops.
pub(crate) async fn wait_for_stop(stop: &mut watch::Receiver<bool>) {
    // An error means that the server is gone: the same.
    let _ = stop.wait_for(|stop| *stop).await;
}
