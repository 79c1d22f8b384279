//! `GET /ws`: control of the device over a WebSocket.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use futures_util::{SinkExt as _, StreamExt as _};
use tenure_api::Code;
use tenure_gateway::device_rules::is_for_tenure;
use tenure_gateway::{Gateway, RelayHandle, request_id};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::connection::Connection;
use super::message::{ControlStateChangedData, LeaseChange};
use super::{dispatch, message};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::response::HttpError;
use crate::http::websocket;
use crate::http::websocket::{PING_INTERVAL, WRITE_TIMEOUT, upgrade_response, wait_for_stop};
use crate::net::{ConnectionUpgrade, Stream};

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

/// The most bytes of one message: a piece of firmware is the largest.
const MAX_MESSAGE_BYTES: usize = 256 << 10;
/// So many commands a second. A person needs fewer, and others are served as well.
const COMMANDS_PER_SECOND: u32 = 1_000;
/// So many frames a second: twice what the device shows.
const FRAMES_PER_SECOND: u32 = 480;
/// So many answers a second to frames that were not shown: whoever sends 240 of them need not hear it of each.
const FRAME_ERRORS_PER_SECOND: u32 = 20;

/// So many messages of somebody else's device may wait for a client that does not take them.
const MAX_FROM_DEVICE: usize = 64;

pub(super) struct ControlSession {
    app: Arc<App>,
    connection: Connection,
    socket: WebSocketStream<Stream>,
    changes: broadcast::Receiver<Arc<LeaseChange>>,
    /// The way to somebody else's device, and what comes from there.
    relay: Option<RelayHandle>,
    from_device: mpsc::Receiver<Message>,
    commands: RateLimiter,
    frames: RateLimiter,
    frame_errors: RateLimiter,
    last_received: Instant,
}

/// Whether there is anybody to go on with.
type Flow = ControlFlow<()>;

impl ControlSession {
    pub(super) async fn new(app: Arc<App>, connection: Connection, stream: Stream, prefix: Vec<u8>) -> Self {
        let config = Some(websocket::config(MAX_MESSAGE_BYTES));
        let socket = WebSocketStream::from_partially_read(stream, prefix, Role::Server, config).await;
        let (changes, now) = (app.control.controller.subscribe_lease_changes(), Instant::now());
        let (link, from_device) = link(&app, &connection);
        Self {
            app,
            connection,
            socket,
            changes,
            relay: link,
            from_device,
            commands: RateLimiter::new(COMMANDS_PER_SECOND, now),
            frames: RateLimiter::new(FRAMES_PER_SECOND, now),
            frame_errors: RateLimiter::new(FRAME_ERRORS_PER_SECOND, now),
            last_received: now,
        }
    }

    /// Speaks until one side has enough. One command is done after the other, in the order in which they came.
    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut ping_at = self.last_received + PING_INTERVAL;
        loop {
            let going = tokio::select! {
                biased;
                () = wait_for_stop(&mut stop) => {
                    return self.close(CloseCode::Away, "the server is stopping").await;
                }
                change = self.changes.recv() => self.send_change(change).await,
                // Before what the device says: however much that is, a heartbeat is heard.
                message = self.socket.next() => self.receive(message).await,
                message = self.from_device.recv(), if self.relay.is_some() => self.pass_on(message).await,
                () = sleep_until(ping_at) => {
                    ping_at += PING_INTERVAL;
                    self.ping().await
                }
            };
            if going.is_break() {
                return;
            }
            if !self.connection.caller.is_valid() {
                return self.close(CloseCode::Policy, "the token is no longer good").await;
            }
            ping_at = ping_at.max(self.last_received + PING_INTERVAL);
        }
    }

    async fn receive(&mut self, message: Option<Result<Message, Error>>) -> Flow {
        let message = match message {
            Some(Ok(message)) => message,
            Some(Err(Error::Capacity(_))) => {
                self.close(CloseCode::Size, "a message has at most 256 KiB").await;
                return ControlFlow::Break(());
            }
            Some(Err(_)) | None => return ControlFlow::Break(()),
        };
        self.last_received = Instant::now();
        match message {
            Message::Text(_) | Message::Binary(_) if self.is_for_device(&message) => {
                self.relay(message).await
            }
            Message::Text(text) => {
                slow_down(self.commands.record(self.last_received)).await;
                let before = self.connection.identity.clone();
                let answer = dispatch::handle_text(&self.app, &mut self.connection, &text).await;
                if before != self.connection.identity {
                    // Another one speaks: what the one before had on its way is its own.
                    (self.relay, self.from_device) = link(&self.app, &self.connection);
                }
                self.send(answer).await
            }
            Message::Binary(bytes) => self.frame(&bytes).await,
            Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_) => {
                slow_down(self.commands.record(self.last_received)).await;
                // The answer to a ping or a farewell is there already, and wants to be sent.
                match timeout(WRITE_TIMEOUT, self.socket.flush()).await {
                    Ok(Ok(())) => ControlFlow::Continue(()),
                    _ => ControlFlow::Break(()),
                }
            }
        }
    }

    /// Whether somebody else's device has to do with it.
    fn is_for_device(&self, message: &Message) -> bool {
        let is_ours = |message: &Message| message.to_text().is_ok_and(is_for_tenure);
        self.relay.is_some() && (message.is_binary() || !is_ours(message))
    }

    /// Sends a message on to somebody else's device. What comes of it, the device says.
    async fn relay(&mut self, message: Message) -> Flow {
        slow_down(self.commands.record(self.last_received)).await;
        match dispatch::relay(&self.app, &self.connection, self.relay.as_mut(), message.clone()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(blocked) => self.send(message::error(request_id(&message).as_deref(), &blocked)).await,
        }
    }

    async fn pass_on(&mut self, message: Option<Message>) -> Flow {
        let Some(message) = message else {
            self.close(CloseCode::Again, "too far behind what the device says; connect again").await;
            return ControlFlow::Break(());
        };
        match timeout(WRITE_TIMEOUT, self.socket.send(message)).await {
            Ok(Ok(())) => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }

    /// A frame that is shown is not answered.
    async fn frame(&mut self, bytes: &[u8]) -> Flow {
        slow_down(self.frames.record(self.last_received)).await;
        let shown = match dispatch::handle_frame(&self.app, &self.connection, bytes) {
            Ok(()) => return ControlFlow::Continue(()),
            Err(blocked) => blocked,
        };
        if !self.frame_errors.try_acquire(self.last_received) {
            return ControlFlow::Continue(());
        }
        self.send(message::error(None, &shown)).await
    }

    /// What remains of the lease is counted when it is said, not when it happened.
    async fn send_change(&mut self, change: Result<Arc<LeaseChange>, RecvError>) -> Flow {
        let Ok(change) = change else {
            self.close(CloseCode::Again, "too far behind; connect again, and ask for control.status").await;
            return ControlFlow::Break(());
        };
        let controller = &self.app.control.controller;
        let data = ControlStateChangedData::new(
            &change,
            controller.now(),
            controller.terms.heartbeat_interval_ms,
            controller.counts(),
        );
        let text = message::broadcast_message(change.event.as_str(), &data);
        self.send(text).await
    }

    async fn send(&mut self, text: String) -> Flow {
        match timeout(WRITE_TIMEOUT, self.socket.send(Message::text(text))).await {
            Ok(Ok(())) => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }

    async fn ping(&mut self) -> Flow {
        if self.last_received.elapsed() >= PING_INTERVAL * 3 {
            return ControlFlow::Break(());
        }
        match timeout(WRITE_TIMEOUT, self.socket.send(Message::Ping(Vec::new().into()))).await {
            Ok(Ok(())) => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }

    async fn close(&mut self, code: CloseCode, reason: &'static str) {
        let farewell = CloseFrame { code, reason: reason.into() };
        let _ = timeout(Duration::from_secs(1), self.socket.close(Some(farewell))).await;
    }
}

/// A way to somebody else's device, if there is one behind this server.
fn link(app: &App, connection: &Connection) -> (Option<RelayHandle>, mpsc::Receiver<Message>) {
    let (to_client, from_device) = mpsc::channel(MAX_FROM_DEVICE);
    let open = |gateway: &Gateway| gateway.open_relay(connection.identity.clone(), to_client);
    (app.control.gateway.as_ref().map(open), from_device)
}

async fn slow_down(wait: Option<Duration>) {
    if let Some(wait) = wait {
        sleep(wait).await;
    }
}

/// Lets so many through a second, and as many at once after a rest.
pub(super) struct RateLimiter {
    per_second: u32,
    /// When all that was let through would have been due.
    due: Instant,
}

impl RateLimiter {
    pub(super) fn new(per_second: u32, now: Instant) -> Self {
        Self { per_second, due: now }
    }

    /// Counts one, and says how long to wait before the next is heard. A second's worth may come at once.
    pub(super) fn record(&mut self, now: Instant) -> Option<Duration> {
        self.due = self.due.max(now) + Duration::from_secs(1) / self.per_second;
        let ahead = self.due - now;
        ahead.checked_sub(Duration::from_secs(1)).filter(|wait| !wait.is_zero())
    }

    /// Counts one if it may go now.
    pub(super) fn try_acquire(&mut self, now: Instant) -> bool {
        let due = self.due.max(now) + Duration::from_secs(1) / self.per_second;
        let is_in_time = due - now <= Duration::from_secs(1);
        if is_in_time {
            self.due = due;
        }
        is_in_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_one_second_is_admitted_at_once() {
        let now = Instant::now();
        let mut limiter = RateLimiter::new(10, now);
        assert!((0..10).all(|_| limiter.record(now).is_none()));
        assert_eq!(limiter.record(now), Some(Duration::from_millis(100)));
        let later = now + Duration::from_secs(2);
        assert!((0..10).all(|_| limiter.try_acquire(later)) && !limiter.try_acquire(later));
    }
}
