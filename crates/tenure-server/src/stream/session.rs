//! One stream: its commands in flight, its watches, and which responses are sent together.

use std::pin::Pin;
use std::sync::Arc;
use std::vec;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use tenure_api::Code;
use tokio::sync::mpsc;

use super::{StreamAnswer, StreamCommand, StreamRequest, execute, join, read};
use crate::app::App;
use crate::events::{EventBody, WatchRequest, watch_as_responses};
use crate::http::auth::Caller;
use crate::http::response::HttpError;
use crate::http::websocket::{CloseCode, Message, Outgoing, SessionEnd, WebSocketHandler};
use crate::tokens::TokenScope;

/// The most commands in flight on one connection. With so many, the next message is not read.
const MAX_IN_FLIGHT: usize = 1_024;
/// The most watches on one connection.
const MAX_WATCHES: usize = 64;
/// About how many bytes are sent in one message.
const FRAME_BYTES: usize = 64 << 10;

pub(super) struct StreamSession {
    app: Arc<App>,
    caller: Caller,
    /// Commands of the last message that have not result.
    received: vec::IntoIter<Result<StreamRequest, StreamAnswer>>,
    in_flight: FuturesUnordered<Pin<Box<dyn Future<Output = StreamAnswer> + Send>>>,
    /// Events of the watches, and the sender for further watches.
    events: mpsc::Receiver<StreamAnswer>,
    event_sender: mpsc::Sender<StreamAnswer>,
    /// Each watch has a clone until it ends.
    watches: Arc<()>,
}

impl WebSocketHandler for StreamSession {
    fn caller(&self) -> &Caller {
        &self.caller
    }

    fn is_reading(&self) -> bool {
        self.received.len() == 0 && self.in_flight.len() < MAX_IN_FLIGHT
    }

    fn has_pending(&self) -> bool {
        self.received.len() > 0 || !self.in_flight.is_empty()
    }

    async fn handle(&mut self, message: Message) -> Result<Option<Outgoing>, SessionEnd> {
        let Message::Text(text) = message else {
            let reason = "send text: an array of commands in JSON";
            return Err(SessionEnd::Close(CloseCode::Unsupported, reason));
        };
        self.received = read(&text).into_iter();
        Ok(None)
    }

    /// The next answer, together with all that are ready.
    async fn next(&mut self) -> Result<Outgoing, SessionEnd> {
        let mut answers = vec![self.next_answer().await];
        let mut length = answers[0].len();
        while length < FRAME_BYTES
            && let Some(answer) = self.next_answer().now_or_never()
        {
            length += answer.len();
            answers.push(answer);
        }
        let message = Message::text(join(&answers));
        let grants = answers.into_iter().filter_map(|answer| answer.revoke_on_drop).collect();
        Ok(Outgoing { message, grants })
    }
}

impl StreamSession {
    pub(super) fn new(app: Arc<App>, caller: Caller) -> Self {
        let (event_sender, events) = mpsc::channel(4);
        Self {
            app,
            caller,
            received: Vec::new().into_iter(),
            in_flight: FuturesUnordered::new(),
            events,
            event_sender,
            watches: Arc::default(),
        }
    }

    /// Begins the received commands, and waits for the next answer.
    async fn next_answer(&mut self) -> StreamAnswer {
        while let Some(command) = self.received.next() {
            if let Err(answer) = command.and_then(|command| self.begin(command)) {
                return answer;
            }
        }
        tokio::select! {
            biased;
            Some(answer) = self.in_flight.next() => answer,
            Some(answer) = self.events.recv() => answer,
        }
    }

    fn begin(&mut self, request: StreamRequest) -> Result<(), StreamAnswer> {
        let id = request.id;
        let result = match &request.command {
            StreamCommand::Watch(watch) => self.watch(id, watch),
            _ => self.execute(request),
        };
        result.map_err(|failure| StreamAnswer::error(Some(id), failure))
    }

    fn execute(&mut self, request: StreamRequest) -> Result<(), HttpError> {
        if self.in_flight.len() >= MAX_IN_FLIGHT {
            let detail =
                format!("{MAX_IN_FLIGHT} commands of this connection are under way; wait for some of them");
            return Err(HttpError::new(Code::Busy, detail));
        }
        let (app, caller) = (self.app.clone(), self.caller.clone());
        self.in_flight.push(Box::pin(async move { execute(&app, &caller, request).await }));
        Ok(())
    }

    fn watch(&mut self, id: u64, request: &WatchRequest) -> Result<(), HttpError> {
        self.caller.require(TokenScope::LeasesRead)?;
        if Arc::strong_count(&self.watches) > MAX_WATCHES {
            let detail = format!("a connection has at most {MAX_WATCHES} watches; open another one");
            return Err(HttpError::new(Code::Busy, detail));
        }
        let events = watch_as_responses(&self.app, self.caller.clone(), id, request)?;
        tokio::spawn(forward(events, self.event_sender.clone(), self.watches.clone()));
        Ok(())
    }
}

/// Forwards the events of a watch to its session, until either ends.
async fn forward(mut events: EventBody, sender: mpsc::Sender<StreamAnswer>, watch: Arc<()>) {
    while let Some(piece) = events.next().await {
        let Some(answer) = StreamAnswer::from_events(&piece) else { continue };
        if sender.send(answer).await.is_err() {
            break;
        }
    }
    drop(watch);
}
