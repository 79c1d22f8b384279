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

use super::command::carry_out;
use super::frame::{self, Answer, Asked};
use crate::app::App;
use crate::http::accept::Stream;
use crate::http::answer::Failure;
use crate::http::auth::Caller;
use crate::http::events::{EventBody, watch_as_answers};
use crate::http::websocket::{self, PING_TIME, WRITE_TIME, stopping};
use crate::tokens::Scope;

/// The most bytes of one message.
const MOST_BYTES: usize = 256 << 10;
/// The most commands under way at once. With so many nothing more is read, until some are answered.
const MOST_UNDER_WAY: usize = 1_024;
/// The most watches on one connection.
const MOST_WATCHES: usize = 64;
/// About how many bytes go out in one message.
const PIECE: usize = 64 << 10;
/// What was asked before the server stops is answered within this time: less than what connections have in all.
const DRAIN_TIME: Duration = Duration::from_secs(5);

type UnderWay = FuturesUnordered<Pin<Box<dyn Future<Output = Answer> + Send>>>;

pub(super) struct Session {
    app: Arc<App>,
    caller: Caller,
    socket: WebSocketStream<Stream>,
    under_way: UnderWay,
    /// What watches bring, and where they bring it.
    brought: mpsc::Receiver<Answer>,
    bring: mpsc::Sender<Answer>,
    /// Each watch has a share in it until it ends.
    watching: Arc<()>,
    heard: Instant,
    ping_time: Duration,
}

/// Nobody is there to go on with.
struct Over;

impl Session {
    pub(super) async fn new(app: Arc<App>, caller: Caller, stream: Stream, begun: Vec<u8>) -> Self {
        let config = websocket::config(MOST_BYTES);
        let socket = WebSocketStream::from_partially_read(stream, begun, Role::Server, Some(config)).await;
        let (bring, brought) = mpsc::channel(4);
        let (under_way, watching, heard) = (UnderWay::new(), Arc::default(), Instant::now());
        Self { app, caller, socket, under_way, brought, bring, watching, heard, ping_time: PING_TIME }
    }

    /// Speaks until one side has enough. Whatever is under way then ends as a request does whose connection ends.
    pub(super) async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut ping_at = self.heard + self.ping_time;
        loop {
            let is_reading = self.under_way.len() < MOST_UNDER_WAY;
            let done = tokio::select! {
                biased;
                () = stopping(&mut stop) => return self.finish().await,
                Some(answer) = self.under_way.next(), if !self.under_way.is_empty() => self.tell(answer).await,
                Some(answer) = self.brought.recv() => self.tell(answer).await,
                message = self.socket.next(), if is_reading => self.hear(message).await,
                () = sleep_until(ping_at) => {
                    ping_at += self.ping_time;
                    self.ping().await
                }
            };
            if done.is_err() {
                return;
            }
            if !self.caller.is_good() {
                return self.close(CloseCode::Policy, "the token is no longer good").await;
            }
            ping_at = ping_at.max(self.heard + self.ping_time);
        }
    }

    /// Answers what was asked, as every connection does when the server stops: whoever waits in line is told so, and what
    /// was just granted need not be taken back.
    async fn finish(&mut self) {
        let last_words = async {
            while let Some(answer) = self.under_way.next().await {
                self.tell(answer).await?;
            }
            Ok::<_, Over>(())
        };
        if !matches!(timeout(DRAIN_TIME, last_words).await, Ok(Err(Over))) {
            self.close(CloseCode::Away, "the server is stopping").await;
        }
    }

    async fn hear(&mut self, message: Option<Result<Message, Error>>) -> Result<(), Over> {
        let message = match message {
            Some(Ok(message)) => message,
            Some(Err(Error::Capacity(_))) => {
                self.close(CloseCode::Size, "a message has at most 256 KiB").await;
                return Err(Over);
            }
            Some(Err(_)) | None => return Err(Over),
        };
        self.heard = Instant::now();
        match message {
            Message::Text(text) => {
                for asked in frame::read(&text) {
                    match asked {
                        Ok(asked) => self.begin(asked).await?,
                        Err(answer) => self.tell(answer).await?,
                    }
                }
                Ok(())
            }
            Message::Binary(_) => {
                self.close(CloseCode::Unsupported, "send text: an array of commands in JSON").await;
                Err(Over)
            }
            // The answer to a ping or a farewell is there already, and wants to be sent.
            Message::Ping(_) | Message::Close(_) => match timeout(WRITE_TIME, self.socket.flush()).await {
                Ok(Ok(())) => Ok(()),
                _ => Err(Over),
            },
            Message::Pong(_) | Message::Frame(_) => Ok(()),
        }
    }

    async fn begin(&mut self, asked: Asked) -> Result<(), Over> {
        if asked.verb == "watch" {
            let id = asked.id;
            return match self.watch(asked) {
                Ok(events) => {
                    tokio::spawn(forward(events, self.bring.clone(), self.watching.clone()));
                    Ok(())
                }
                Err(failure) => self.tell(Answer::refused(Some(id), failure)).await,
            };
        }
        if self.under_way.len() >= MOST_UNDER_WAY {
            let detail =
                format!("{MOST_UNDER_WAY} commands of this connection are under way; wait for some of them");
            return self.tell(Answer::refused(Some(asked.id), Failure::new(Code::Busy, detail))).await;
        }
        let (app, caller) = (self.app.clone(), self.caller.clone());
        self.under_way.push(Box::pin(async move { carry_out(&app, &caller, asked).await }));
        Ok(())
    }

    fn watch(&self, asked: Asked) -> Result<EventBody, Failure> {
        self.caller.require(Scope::LeasesRead)?;
        if Arc::strong_count(&self.watching) > MOST_WATCHES {
            let detail = format!("a connection has at most {MOST_WATCHES} watches; open another one");
            return Err(Failure::new(Code::Busy, detail));
        }
        watch_as_answers(&self.app, self.caller.clone(), asked.id, asked.fields)
    }

    /// Sends an answer, together with whatever else is ready.
    async fn tell(&mut self, first: Answer) -> Result<(), Over> {
        let mut length = first.len();
        let mut answers = vec![first];
        while length < PIECE {
            let ready = self.under_way.next().now_or_never().flatten();
            let Some(answer) = ready.or_else(|| self.brought.try_recv().ok()) else { break };
            length += answer.len();
            answers.push(answer);
        }
        let frame = Message::text(frame::together(&answers));
        let sent = timeout(WRITE_TIME, self.socket.send(frame)).await;
        let Ok(Ok(())) = sent else { return Err(Over) };
        answers.into_iter().for_each(Answer::settle);
        Ok(())
    }

    async fn ping(&mut self) -> Result<(), Over> {
        if self.heard.elapsed() >= self.ping_time * 3 {
            return Err(Over);
        }
        match timeout(WRITE_TIME, self.socket.send(Message::Ping(Vec::new().into()))).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(Over),
        }
    }

    async fn close(&mut self, code: CloseCode, reason: &'static str) {
        let farewell = CloseFrame { code, reason: reason.into() };
        let _ = timeout(Duration::from_secs(1), self.socket.close(Some(farewell))).await;
    }
}

/// Brings what a watch tells to its session, until either has enough.
async fn forward(mut events: EventBody, bring: mpsc::Sender<Answer>, watching: Arc<()>) {
    while let Some(piece) = events.next().await {
        let Some(answer) = Answer::of_events(&piece) else { continue };
        if bring.send(answer).await.is_err() {
            break;
        }
    }
    drop(watching);
}
