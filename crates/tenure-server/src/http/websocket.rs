//! WebSockets (RFC 6455): the handshake, and the loop that `/ws` and `/v1/stream` share.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, Version, header};
use axum::response::Response;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
pub(crate) use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
pub(crate) use tokio_tungstenite::tungstenite::{Error, Message};

use super::auth::Caller;
use super::response::HttpError;
use crate::engine::RevokeOnDrop;
use crate::net::{CLOSE_TIMEOUT, ConnectionUpgrade, Stream, lingering_close};

/// A client that takes longer to read a message is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// A client is pinged after this time without a message, and disconnected after three times as long.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// Pending responses are sent within this time when the server stops: less than connections have in all.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_MESSAGE_BYTES: usize = 256 << 10;
const CONTROL_FRAMES_PER_SECOND: u32 = 1_000;

/// What an API does on its WebSocket. Dropping it ends what is in flight.
pub(crate) trait WebSocketHandler: Send + 'static {
    fn caller(&self) -> &Caller;

    /// Whether the next message may be read.
    fn is_reading(&self) -> bool {
        true
    }

    /// Whether [`Self::next`] returns responses that must be sent before the server stops.
    fn has_pending(&self) -> bool {
        false
    }

    /// Handles a text or binary message.
    fn handle(
        &mut self,
        message: Message,
    ) -> impl Future<Output = Result<Option<Outgoing>, SessionEnd>> + Send;

    /// Waits for the next message to send. Must be cancel-safe.
    fn next(&mut self) -> impl Future<Output = Result<Outgoing, SessionEnd>> + Send;
}

/// A message for the client.
pub(crate) struct Outgoing {
    pub(crate) message: Message,
    /// Grants in the message, which are revoked unless it is sent.
    pub(crate) grants: Vec<RevokeOnDrop>,
}

impl From<Message> for Outgoing {
    fn from(message: Message) -> Self {
        Self { message, grants: Vec::new() }
    }
}

/// How a session ends.
pub(crate) enum SessionEnd {
    Disconnected,
    /// The server closes it, for this reason.
    Close(CloseCode, &'static str),
}

impl From<Error> for SessionEnd {
    fn from(error: Error) -> Self {
        match error {
            Error::Capacity(_) => Self::Close(CloseCode::Size, "a message has at most 256 KiB"),
            Error::Utf8(_) => Self::Close(CloseCode::Invalid, "text must be UTF-8"),
            Error::Protocol(_) => Self::Close(CloseCode::Protocol, "invalid frame; see RFC 6455"),
            _ => Self::Disconnected,
        }
    }
}

/// A valid handshake.
pub(crate) struct WebSocketUpgrade {
    accept: HeaderValue,
}

impl<S: Send + Sync> FromRequestParts<S> for WebSocketUpgrade {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, HttpError> {
        let headers = &parts.headers;
        let has = |name, word: &str| {
            let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
            values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(word))
        };
        let is_websocket = has(header::CONNECTION, "upgrade") && has(header::UPGRADE, "websocket");
        if parts.version < Version::HTTP_11 || !is_websocket || !has(header::SEC_WEBSOCKET_VERSION, "13") {
            let reason = "this address speaks WebSocket, version 13, over HTTP/1.1; open one";
            return Err(HttpError::invalid("Upgrade", reason));
        }
        let mut keys = headers.get_all(header::SEC_WEBSOCKET_KEY).iter();
        let (Some(key), None) = (keys.next().filter(|key| key.len() == 24), keys.next()) else {
            return Err(HttpError::invalid("Sec-WebSocket-Key", "must stand once and be 16 bytes in base64"));
        };
        let accept = derive_accept_key(key.as_bytes());
        Ok(Self { accept: HeaderValue::from_str(&accept).expect("base64 is visible ASCII") })
    }
}

impl WebSocketUpgrade {
    /// Accepts the handshake. The connection then belongs to `handler`.
    pub(crate) fn accept(self, handler: impl WebSocketHandler) -> Response {
        let upgrade = ConnectionUpgrade::new(async move |stream, prefix, stop| {
            Session::new(handler, stream, prefix).await.run(stop).await;
        });
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        response.headers_mut().insert(header::SEC_WEBSOCKET_ACCEPT, self.accept);
        response.extensions_mut().insert(upgrade);
        response
    }
}

/// One open WebSocket.
struct Session<H> {
    handler: H,
    socket: WebSocketStream<Stream>,
    control_frames: RateLimiter,
    last_received: Instant,
    ping_interval: Duration,
}

impl<H: WebSocketHandler> Session<H> {
    async fn new(handler: H, stream: Stream, prefix: Vec<u8>) -> Self {
        // By default each connection takes 128 KiB, and its write buffer is unbounded.
        let config = WebSocketConfig::default()
            .read_buffer_size(4 << 10)
            .write_buffer_size(0)
            .max_write_buffer_size(4 * MAX_MESSAGE_BYTES)
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        let socket = WebSocketStream::from_partially_read(stream, prefix, Role::Server, Some(config)).await;
        let now = Instant::now();
        let control_frames = RateLimiter::new(CONTROL_FRAMES_PER_SECOND, now);
        Self { handler, socket, control_frames, last_received: now, ping_interval: PING_INTERVAL }
    }

    async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let Err(end) = self.serve(&mut stop).await;
        let Self { handler, mut socket, .. } = self;
        drop(handler);
        let SessionEnd::Close(code, reason) = end else { return };
        let close = CloseFrame { code, reason: reason.into() };
        let _ = timeout(CLOSE_TIMEOUT, socket.close(Some(close))).await;
        if code != CloseCode::Away {
            lingering_close(socket.into_inner()).await;
        }
    }

    async fn serve(&mut self, stop: &mut watch::Receiver<bool>) -> Result<Infallible, SessionEnd> {
        let mut ping_at = self.last_received + self.ping_interval;
        loop {
            tokio::select! {
                biased;
                // An error means that the server is gone.
                () = async { drop(stop.wait_for(|stop| *stop).await) } => return self.drain().await,
                outgoing = self.handler.next() => self.send(outgoing?).await?,
                message = self.socket.next(), if self.handler.is_reading() => {
                    self.receive(message.ok_or(SessionEnd::Disconnected)??).await?;
                }
                () = sleep_until(ping_at) => {
                    ping_at += self.ping_interval;
                    if self.last_received.elapsed() >= self.ping_interval * 3 {
                        return Err(SessionEnd::Disconnected);
                    }
                    self.send(Message::Ping(Vec::new().into()).into()).await?;
                }
            }
            if !self.handler.caller().is_valid() {
                return Err(SessionEnd::Close(CloseCode::Policy, "the token is no longer good"));
            }
            ping_at = ping_at.max(self.last_received + self.ping_interval);
        }
    }

    async fn receive(&mut self, message: Message) -> Result<(), SessionEnd> {
        self.last_received = Instant::now();
        if message.is_text() || message.is_binary() {
            let Some(response) = self.handler.handle(message).await? else { return Ok(()) };
            return self.send(response).await;
        }
        self.control_frames.wait(self.last_received).await;
        // The response to a ping or a close is queued already.
        in_time(self.socket.flush()).await
    }

    async fn send(&mut self, outgoing: Outgoing) -> Result<(), SessionEnd> {
        in_time(self.socket.send(outgoing.message)).await?;
        outgoing.grants.into_iter().for_each(|mut grant| grant.disarm());
        Ok(())
    }

    /// Sends pending responses when the server stops, so that waiters are told and grants need not be revoked.
    async fn drain(&mut self) -> Result<Infallible, SessionEnd> {
        let pending = async {
            while self.handler.has_pending() {
                let outgoing = self.handler.next().await?;
                self.send(outgoing).await?;
            }
            Ok::<_, SessionEnd>(())
        };
        timeout(DRAIN_TIMEOUT, pending).await.unwrap_or(Ok(()))?;
        Err(SessionEnd::Close(CloseCode::Away, "the server is stopping"))
    }
}

async fn in_time(write: impl Future<Output = Result<(), Error>>) -> Result<(), SessionEnd> {
    let written = timeout(WRITE_TIMEOUT, write).await;
    written.ok().and_then(Result::ok).ok_or(SessionEnd::Disconnected)
}

/// Limits a rate. After a rest, the amount of one second is admitted at once.
pub(crate) struct RateLimiter {
    per_second: u32,
    /// When everything admitted so far would be due at that rate.
    due: Instant,
}

impl RateLimiter {
    pub(crate) fn new(per_second: u32, now: Instant) -> Self {
        Self { per_second, due: now }
    }

    /// Counts one, and returns how long to wait before the next.
    fn record(&mut self, now: Instant) -> Option<Duration> {
        self.due = self.due.max(now) + Duration::from_secs(1) / self.per_second;
        let ahead = self.due - now;
        ahead.checked_sub(Duration::from_secs(1)).filter(|wait| !wait.is_zero())
    }

    /// Counts one, and waits while there are too many.
    pub(crate) async fn wait(&mut self, now: Instant) {
        if let Some(wait) = self.record(now) {
            sleep(wait).await;
        }
    }

    /// Counts one if it is admitted now.
    pub(crate) fn try_acquire(&mut self, now: Instant) -> bool {
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
    use std::future::pending;

    use tenure_core::kernel::Principal;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::UnixStream;

    use super::*;

    struct Silent(Caller);

    impl WebSocketHandler for Silent {
        fn caller(&self) -> &Caller {
            &self.0
        }

        async fn handle(&mut self, _: Message) -> Result<Option<Outgoing>, SessionEnd> {
            Ok(None)
        }

        async fn next(&mut self) -> Result<Outgoing, SessionEnd> {
            pending().await
        }
    }

    #[tokio::test]
    async fn a_silent_client_is_pinged_and_then_disconnected() {
        let (server, mut client) = UnixStream::pair().unwrap();
        let handler = Silent(Caller::admin(Principal::parse("admin").unwrap()));
        let mut session = Session::new(handler, Stream::Local(server), Vec::new()).await;
        session.ping_interval = Duration::from_millis(50);
        let (_sender, stop) = watch::channel(false);
        timeout(Duration::from_secs(30), session.run(stop)).await.expect("it is disconnected");
        let mut received = Vec::new();
        client.read_to_end(&mut received).await.unwrap();
        let pings: Vec<_> = received.chunks(2).collect();
        assert!(pings.len() <= 2 && pings.iter().all(|ping| *ping == [0x89, 0]), "{} bytes", received.len());
    }

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
