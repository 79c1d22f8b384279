//! One WebSocket: what is under way on it, and what goes out together.

#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use tenure_api::Code;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::super::stream;
use super::{StreamAnswer, StreamCommand, StreamRequest, execute};
use crate::app::App;
use crate::events::{EventBody, WatchRequest, watch_as_responses};
use crate::http::auth::Caller;
use crate::http::response::HttpError;
use crate::http::websocket::{self, PING_INTERVAL, WRITE_TIMEOUT, wait_for_stop};
use crate::net::Stream;
use crate::tokens::TokenScope;

/// The most bytes of one message.
const MAX_MESSAGE_BYTES: usize = 256 << 10;
/// The most commands under way at once. With so many nothing more is read, until some are answered.
const MAX_IN_FLIGHT: usize = 1_024;
/// The most watches on one connection.
const MAX_WATCHES: usize = 64;
/// About how many bytes go out in one message.
const FRAME_BYTES: usize = 64 << 10;
/// What was asked before the server stops is answered within this time: less than what connections have in all.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

type InFlight = FuturesUnordered<Pin<Box<dyn Future<Output = StreamAnswer> + Send>>>;

pub(crate) struct StreamSession {
    app: Arc<App>,
    caller: Caller,
    socket: WebSocketStream<Stream>,
    in_flight: InFlight,
    /// What watches bring, and where they bring it.
    brought: mpsc::Receiver<StreamAnswer>,
    bring: mpsc::Sender<StreamAnswer>,
    /// Each watch has a share in it until it ends.
    watching: Arc<()>,
    last_received: Instant,
    ping_time: Duration,
}

/// Nobody is there to go on with.
struct ConnectionClosed;

impl StreamSession {
    pub(super) async fn new(app: Arc<App>, caller: Caller, stream: Stream, prefix: Vec<u8>) -> Self {
        let config = websocket::config(MAX_MESSAGE_BYTES);
        let socket = WebSocketStream::from_partially_read(stream, prefix, Role::Server, Some(config)).await;
        let (bring, brought) = mpsc::channel(4);
        let (under_way, watching, now) = (InFlight::new(), Arc::default(), Instant::now());
        Self {
            app,
            caller,
            socket,
            in_flight: under_way,
            brought,
            bring,
            watching,
            last_received: now,
            ping_time: PING_INTERVAL,
        }
    }

    /// Speaks until one side has enough. Whatever is under way then ends as a request does whose connection ends.
    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut ping_at = self.last_received + self.ping_time;
        loop {
            let is_reading = self.in_flight.len() < MAX_IN_FLIGHT;
            let done = tokio::select! {
                biased;
                () = wait_for_stop(&mut stop) => return self.finish().await,
                Some(answer) = self.in_flight.next(), if !self.in_flight.is_empty() => self.send(answer).await,
                Some(answer) = self.brought.recv() => self.send(answer).await,
                message = self.socket.next(), if is_reading => self.receive(message).await,
                () = sleep_until(ping_at) => {
                    ping_at += self.ping_time;
                    self.ping().await
                }
            };
            if done.is_err() {
                return;
            }
            if !self.caller.is_valid() {
                return self.close(CloseCode::Policy, "the token is no longer good").await;
            }
            ping_at = ping_at.max(self.last_received + self.ping_time);
        }
    }

    /// Answers what was asked, as every connection does when the server stops: whoever waits in line is told so, and what
    /// was just granted need not be taken back.
    async fn finish(&mut self) {
        let last_words = async {
            while let Some(answer) = self.in_flight.next().await {
                self.send(answer).await?;
            }
            Ok::<_, ConnectionClosed>(())
        };
        if !matches!(timeout(DRAIN_TIMEOUT, last_words).await, Ok(Err(ConnectionClosed))) {
            self.close(CloseCode::Away, "the server is stopping").await;
        }
    }

    async fn receive(&mut self, message: Option<Result<Message, Error>>) -> Result<(), ConnectionClosed> {
        let message = match message {
            Some(Ok(message)) => message,
            Some(Err(Error::Capacity(_))) => {
                self.close(CloseCode::Size, "a message has at most 256 KiB").await;
                return Err(ConnectionClosed);
            }
            Some(Err(_)) | None => return Err(ConnectionClosed),
        };
        self.last_received = Instant::now();
        match message {
            Message::Text(text) => {
                for command in stream::read(&text) {
                    match command {
                        Ok(command) => self.begin(command).await?,
                        Err(answer) => self.send(answer).await?,
                    }
                }
                Ok(())
            }
            Message::Binary(_) => {
                self.close(CloseCode::Unsupported, "send text: an array of commands in JSON").await;
                Err(ConnectionClosed)
            }
            // The answer to a ping or a farewell is there already, and wants to be sent.
            Message::Ping(_) | Message::Close(_) => match timeout(WRITE_TIMEOUT, self.socket.flush()).await {
                Ok(Ok(())) => Ok(()),
                _ => Err(ConnectionClosed),
            },
            Message::Pong(_) | Message::Frame(_) => Ok(()),
        }
    }

    async fn begin(&mut self, request: StreamRequest) -> Result<(), ConnectionClosed> {
        let id = request.id;
        if let StreamCommand::Watch(watch) = &request.command {
            return match self.watch(id, watch) {
                Ok(events) => {
                    tokio::spawn(forward(events, self.bring.clone(), self.watching.clone()));
                    Ok(())
                }
                Err(failure) => self.send(StreamAnswer::error(Some(id), failure)).await,
            };
        }
        if self.in_flight.len() >= MAX_IN_FLIGHT {
            let detail =
                format!("{MAX_IN_FLIGHT} commands of this connection are under way; wait for some of them");
            return self.send(StreamAnswer::error(Some(id), HttpError::new(Code::Busy, detail))).await;
        }
        let (app, caller) = (self.app.clone(), self.caller.clone());
        self.in_flight.push(Box::pin(async move { execute(&app, &caller, request).await }));
        Ok(())
    }

    fn watch(&self, id: u64, request: &WatchRequest) -> Result<EventBody, HttpError> {
        self.caller.require(TokenScope::LeasesRead)?;
        if Arc::strong_count(&self.watching) > MAX_WATCHES {
            let detail = format!("a connection has at most {MAX_WATCHES} watches; open another one");
            return Err(HttpError::new(Code::Busy, detail));
        }
        watch_as_responses(&self.app, self.caller.clone(), id, request)
    }

    /// Sends an answer, together with whatever else is ready.
    async fn send(&mut self, first: StreamAnswer) -> Result<(), ConnectionClosed> {
        let mut length = first.len();
        let mut answers = vec![first];
        while length < FRAME_BYTES {
            let ready = self.in_flight.next().now_or_never().flatten();
            let Some(answer) = ready.or_else(|| self.brought.try_recv().ok()) else { break };
            length += answer.len();
            answers.push(answer);
        }
        let frame = Message::text(stream::join(&answers));
        let sent = timeout(WRITE_TIMEOUT, self.socket.send(frame)).await;
        let Ok(Ok(())) = sent else { return Err(ConnectionClosed) };
        answers.into_iter().for_each(StreamAnswer::disarm);
        Ok(())
    }

    async fn ping(&mut self) -> Result<(), ConnectionClosed> {
        if self.last_received.elapsed() >= self.ping_time * 3 {
            return Err(ConnectionClosed);
        }
        match timeout(WRITE_TIMEOUT, self.socket.send(Message::Ping(Vec::new().into()))).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(ConnectionClosed),
        }
    }

    async fn close(&mut self, code: CloseCode, reason: &'static str) {
        let farewell = CloseFrame { code, reason: reason.into() };
        let _ = timeout(Duration::from_secs(1), self.socket.close(Some(farewell))).await;
    }
}

/// Brings what a watch tells to its session, until either has enough.
async fn forward(mut events: EventBody, bring: mpsc::Sender<StreamAnswer>, watching: Arc<()>) {
    while let Some(piece) = events.next().await {
        let Some(answer) = StreamAnswer::from_events(&piece) else { continue };
        if bring.send(answer).await.is_err() {
            break;
        }
    }
    drop(watching);
}
