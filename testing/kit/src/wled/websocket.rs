//! Its WebSocket: the state at once and after each change, commands in, and a stream of colours.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::{SinkExt as _, StreamExt as _};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Bytes, Incoming};
use hyper::upgrade::Upgraded;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::{DeviceState, StallMode, http};

/// What the stream of colours begins with, and some colours.
pub const PEEK: &[u8] = b"L\x01\xff\x00\x00";

pub(super) fn upgrade(
    inside: &Arc<DeviceState>,
    request: &mut Request<Incoming>,
) -> Response<UnsyncBoxBody<Bytes, io::Error>> {
    let Some(key) = request.headers().get("sec-websocket-key").cloned() else {
        return http::text_response(StatusCode::BAD_REQUEST, "no WebSocket");
    };
    let (upgrading, inside) = (hyper::upgrade::on(request), inside.clone());
    tokio::spawn(async move {
        let Ok(upgraded) = upgrading.await else { return };
        let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
        inside.opened_sockets.fetch_add(1, Ordering::AcqRel);
        inside.sockets.send_modify(|count| *count += 1);
        handle_socket(&inside, socket).await;
        inside.sockets.send_modify(|count| *count -= 1);
    });
    let mut response = http::text_response(StatusCode::SWITCHING_PROTOCOLS, "");
    let headers = response.headers_mut();
    headers.insert("connection", "upgrade".parse().unwrap());
    headers.insert("upgrade", "websocket".parse().unwrap());
    headers.insert("sec-websocket-accept", derive_accept_key(key.as_bytes()).parse().unwrap());
    response
}

async fn handle_socket(inside: &DeviceState, mut socket: WebSocketStream<TokioIo<Upgraded>>) {
    let mut changed = inside.changed.subscribe();
    let state = || Message::text(inside.state_and_info().to_string());
    if socket.send(state()).await.is_err() {
        return;
    }
    loop {
        let mood = *inside.stall_mode.borrow();
        if mood == StallMode::BeforeReading {
            inside.wait_while(StallMode::BeforeReading).await;
        }
        let done = tokio::select! {
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => handle_message(inside, &mut socket, &text).await,
                Some(Ok(Message::Binary(bytes))) => {
                    inside.apply(&format!("WS {} bytes", bytes.len()), &Map::new());
                    Ok(())
                }
                Some(Ok(_)) => Ok(()),
                Some(Err(_)) | None => return,
            },
            Ok(()) = changed.recv() => socket.send(state()).await,
        };
        if done.is_err() {
            return;
        }
    }
}

async fn handle_message(
    inside: &DeviceState,
    socket: &mut WebSocketStream<TokioIo<Upgraded>>,
    text: &str,
) -> Result<(), tokio_tungstenite::tungstenite::Error> {
    if text == "p" {
        return socket.send(Message::text("pong")).await;
    }
    let Ok(fields) = serde_json::from_str::<Map<String, Value>>(text) else {
        return socket.send(Message::text(r#"{"error":9}"#)).await;
    };
    if fields.len() == 1 && fields.get("v") == Some(&Value::Bool(true)) {
        return socket.send(Message::text(inside.state_and_info().to_string())).await;
    }
    if fields.len() == 1 && fields.contains_key("lv") {
        return socket.send(Message::binary(PEEK)).await;
    }
    // Not WLED's: tests let the device say what they want.
    if let Some(Value::String(words)) = fields.get("say") {
        let times = fields.get("times").and_then(Value::as_u64).unwrap_or(1);
        for _ in 0..times {
            socket.send(Message::text(words.clone())).await?;
        }
        return Ok(());
    }
    inside.apply(&format!("WS {text}"), &fields);
    Ok(())
}
