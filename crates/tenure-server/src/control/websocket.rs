//! `GET /ws`: control of the device over a WebSocket.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use tenure_gateway::device_rules::is_for_tenure;
use tenure_gateway::{Gateway, RelayHandle, request_id};
use tokio::sync::{broadcast, mpsc};
use tokio::task::yield_now;
use tokio::time::Instant;

use super::connection::Connection;
use super::message::{ControlStateChangedData, LeaseChange};
use super::{dispatch, message};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::response::HttpError;
use crate::http::websocket::{
    CloseCode, Message, Outgoing, RateLimiter, SessionEnd, WebSocketHandler, WebSocketUpgrade,
};

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
    upgrade: WebSocketUpgrade,
) -> Result<Response, HttpError> {
    let connection = Connection::new(app.clone(), caller)?;
    Ok(upgrade.accept(ControlSession::new(app, connection)))
}

/// Commands per second and connection.
const COMMANDS_PER_SECOND: u32 = 1_000;
/// Frames per second and connection: twice what the device shows.
const FRAMES_PER_SECOND: u32 = 480;
/// Error responses per second to frames that were not shown. A client that sends 240 frames need not be told about each.
const FRAME_ERRORS_PER_SECOND: u32 = 20;
/// Messages of an existing device that may wait for a client that does not read them.
const MAX_FROM_DEVICE: usize = 64;

struct ControlSession {
    app: Arc<App>,
    connection: Connection,
    changes: broadcast::Receiver<Arc<LeaseChange>>,
    /// The relay to an existing device, and the messages from there.
    relay: Option<RelayHandle>,
    from_device: mpsc::Receiver<Message>,
    commands: RateLimiter,
    frames: RateLimiter,
    frame_errors: RateLimiter,
}

impl WebSocketHandler for ControlSession {
    fn caller(&self) -> &Caller {
        &self.connection.caller
    }

    async fn handle(&mut self, message: Message) -> Result<Option<Outgoing>, SessionEnd> {
        let now = Instant::now();
        let is_for_device = self.is_for_device(&message);
        let limiter =
            if message.is_binary() && !is_for_device { &mut self.frames } else { &mut self.commands };
        limiter.wait(now).await;
        let response = match message {
            message if is_for_device => {
                let request_id = request_id(&message);
                let relayed = dispatch::relay(&self.app, &self.connection, self.relay.as_mut(), message);
                relayed.err().map(|blocked| message::error(request_id.as_deref(), &blocked))
            }
            Message::Text(text) => {
                let before = self.connection.identity.clone();
                let response = dispatch::handle_text(&self.app, &mut self.connection, &text).await;
                if before != self.connection.identity {
                    // What the principal before had in flight stays its own.
                    (self.relay, self.from_device) = open_relay(&self.app, &self.connection);
                }
                Some(response)
            }
            // A frame that is shown has no response.
            message => dispatch::handle_frame(&self.app, &self.connection, &message.into_data())
                .err()
                .filter(|_| self.frame_errors.try_acquire(now))
                .map(|blocked| message::error(None, &blocked)),
        };
        Ok(response.map(|text| Message::text(text).into()))
    }

    async fn next(&mut self) -> Result<Outgoing, SessionEnd> {
        let again = |reason| SessionEnd::Close(CloseCode::Again, reason);
        tokio::select! {
            biased;
            change = self.changes.recv() => {
                let reason = "too far behind; connect again, and ask for control.status";
                Ok(self.announce(&*change.map_err(|_| again(reason))?))
            }
            // After the client's messages: a device that sends without pause does not delay a heartbeat.
            message = async { yield_now().await; self.from_device.recv().await }, if self.relay.is_some() => {
                let reason = "too far behind what the device says; connect again";
                message.map(Outgoing::from).ok_or_else(|| again(reason))
            }
        }
    }
}

impl ControlSession {
    fn new(app: Arc<App>, connection: Connection) -> Self {
        let (changes, now) = (app.control.controller.subscribe_lease_changes(), Instant::now());
        let (relay, from_device) = open_relay(&app, &connection);
        Self {
            app,
            connection,
            changes,
            relay,
            from_device,
            commands: RateLimiter::new(COMMANDS_PER_SECOND, now),
            frames: RateLimiter::new(FRAMES_PER_SECOND, now),
            frame_errors: RateLimiter::new(FRAME_ERRORS_PER_SECOND, now),
        }
    }

    /// Whether a message is for the existing device behind the gateway.
    fn is_for_device(&self, message: &Message) -> bool {
        let is_ours = |message: &Message| message.to_text().is_ok_and(is_for_tenure);
        self.relay.is_some() && (message.is_binary() || !is_ours(message))
    }

    /// Announces a change of the lease. The remaining time is that of the announcement, not of the change.
    fn announce(&self, change: &LeaseChange) -> Outgoing {
        let controller = &self.app.control.controller;
        let data = ControlStateChangedData::new(
            change,
            controller.now(),
            controller.terms.heartbeat_interval_ms,
            controller.counts(),
        );
        Message::text(message::broadcast_message(change.event.as_str(), &data)).into()
    }
}

/// Opens a relay to the existing device, if this server is a gateway.
fn open_relay(app: &App, connection: &Connection) -> (Option<RelayHandle>, mpsc::Receiver<Message>) {
    let (to_client, from_device) = mpsc::channel(MAX_FROM_DEVICE);
    let open = |gateway: &Gateway| gateway.open_relay(connection.identity.clone(), to_client);
    (app.control.gateway.as_ref().map(open), from_device)
}
