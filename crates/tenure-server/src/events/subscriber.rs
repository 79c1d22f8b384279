//! Sends events to one subscriber: a task each, and no thread.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use hyper::body::{Body, Frame};
use parking_lot::Mutex;
use tenure_registrar::runtime::{Feed, StateView};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::Filter;
use super::encoded_event::{EncodedEvent, EventFormat};
use super::event_buffer::{BufferRead, EventBuffer};
use super::history::{TurnEnd, TurnRequest};
use crate::app::tick_to_rfc3339;

/// A client may take a connection that is silent for longer for dead.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);
/// A client that takes nothing for so long is told to reconnect.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the state of a blocked subscriber that reads the ledger is kept.
const REPLAY_TIMEOUT: Duration = Duration::from_secs(1);
/// How many events of the ring buffer are sent at once.
const BATCH_SIZE: usize = 64;
/// About how many bytes are in a chunk, and how many chunks wait for the connection. Together they are the memory of a
/// subscriber that does not read.
pub(super) const CHUNK_BYTES: usize = 32 << 10;
pub(super) const MAX_CHUNKS: usize = 4;

pub(super) struct EventSubscriber {
    pub(super) buffer: Arc<EventBuffer>,
    pub(super) feed: Arc<Feed>,
    pub(super) view: Arc<StateView>,
    pub(super) filter: Arc<Filter>,
    pub(super) epoch: u64,
    pub(super) format: EventFormat,
    /// The last event that was sent, or is not for this subscriber.
    pub(super) after: u64,
    /// The last event that was read from the ledger.
    pub(super) replayed: Option<u64>,
    pub(super) heartbeat: Duration,
}

/// The body of the response: what the task sends, and at last why it ended.
pub(crate) struct EventBody {
    chunks: mpsc::Receiver<Bytes>,
    last_chunk: Arc<Mutex<Option<Bytes>>>,
}

enum StreamEnd {
    HungUp,
    /// The server stops, and the client reconnects; or its token expired or was revoked.
    Ended,
    /// Events are missing from here on, for this reason.
    Resync(&'static str),
}

struct EventWriter {
    chunks: mpsc::Sender<Bytes>,
    next_heartbeat_at: Instant,
    heartbeat: Duration,
}

impl EventSubscriber {
    /// Starts the task. It ends when the body is dropped.
    pub(super) fn start(mut self) -> EventBody {
        let (sender, pieces) = mpsc::channel(MAX_CHUNKS);
        let last_words = Arc::new(Mutex::new(None));
        let final_chunk = last_words.clone();
        tokio::spawn(async move {
            let _listener = self.buffer.count_subscriber();
            let heartbeat = self.heartbeat;
            let mut writer =
                EventWriter { chunks: sender, next_heartbeat_at: Instant::now() + heartbeat, heartbeat };
            let end = self.run(&mut writer).await;
            self.forget_replay();
            if let StreamEnd::Resync(why) = end {
                let now = self.view.now();
                let at = self.view.read(|state| tick_to_rfc3339(state, now));
                let words = self.format.resync(self.epoch, self.after, at, why);
                *final_chunk.lock() = Some(words);
            }
        });
        EventBody { chunks: pieces, last_chunk: last_words }
    }

    async fn run(&mut self, line: &mut EventWriter) -> StreamEnd {
        match self.stream_events(line).await {
            Ok(never) => match never {},
            Err(stop) => stop,
        }
    }

    async fn stream_events(&mut self, line: &mut EventWriter) -> Result<Infallible, StreamEnd> {
        let mut signal = self.buffer.signal();
        line.send(self.format.greeting(self.epoch, self.after)).await?;
        let mut is_up_to_date = false;
        loop {
            // Marked as seen before looking: what comes in between wakes it again.
            let has_ended = signal.borrow_and_update().has_ended;
            if !self.filter.is_valid() {
                return Err(StreamEnd::Ended);
            }
            match self.buffer.read_after(self.after, self.feed.head().seq.0, BATCH_SIZE) {
                BufferRead::Events(events) => {
                    is_up_to_date = true;
                    self.forget_replay();
                    self.send_events(&events, line).await?;
                }
                BufferRead::UpToDate | BufferRead::Evicted if has_ended => return Err(StreamEnd::Ended),
                BufferRead::UpToDate => {
                    self.forget_replay();
                    tokio::select! {
                        _ = signal.changed() => {}
                        () = sleep_until(line.next_heartbeat_at) => {}
                        () = line.chunks.closed() => return Err(StreamEnd::HungUp),
                    }
                }
                // It was up to date and is not: it does not take what it is brought, and others must not wait for it.
                BufferRead::Evicted if is_up_to_date => {
                    return Err(StreamEnd::Resync(
                        "you read too slowly; connect again with this id as Last-Event-ID",
                    ));
                }
                BufferRead::Evicted => self.catch_up(line).await?,
            }
            if Instant::now() >= line.next_heartbeat_at {
                line.send(self.format.heartbeat(self.epoch, self.after)).await?;
            }
        }
    }

    fn forget_replay(&mut self) {
        if let Some(at) = self.replayed.take() {
            self.buffer.history.forget(at);
        }
    }

    /// Waits for a turn to read the ledger, and sends what is read in that turn. The turn is over when the connection
    /// takes nothing more.
    async fn catch_up(&mut self, line: &mut EventWriter) -> Result<(), StreamEnd> {
        let mut turn = pin!(self.buffer.history.clone().turn(self.filter.principal().clone()));
        let turn = loop {
            tokio::select! {
                turn = &mut turn => break turn,
                () = line.chunks.closed() => return Err(StreamEnd::HungUp),
                () = sleep_until(line.next_heartbeat_at) => {
                    line.send(self.format.heartbeat(self.epoch, self.after)).await?;
                }
            }
        };
        let head = self.feed.head().seq.0;
        if !matches!(self.buffer.read_after(self.after, head, 1), BufferRead::Evicted) {
            // Another subscriber filled the buffer.
            return Ok(());
        }
        let request = TurnRequest {
            after: self.after,
            filter: self.filter.clone(),
            format: self.format,
            epoch: self.epoch,
            chunks: line.chunks.clone(),
        };
        let buffer = self.buffer.clone();
        let read = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let is_stopped = || request.chunks.is_closed() || buffer.signal().borrow().has_ended;
            let is_filled = buffer.fill(request.after, is_stopped);
            (!is_filled).then(|| buffer.history.run_turn(&request, is_stopped))
        });
        let Some(outcome) = read.await.map_err(|_| StreamEnd::Ended)? else { return Ok(()) };
        (self.after, self.replayed) = (outcome.sent, Some(outcome.read));
        if !outcome.unsent.is_empty() {
            if timeout(REPLAY_TIMEOUT, line.chunks.reserve()).await.is_err() {
                self.forget_replay();
            }
            line.send(outcome.unsent.into()).await?;
        }
        self.after = outcome.read;
        match outcome.end {
            TurnEnd::Paused => Ok(()),
            TurnEnd::Pruned => Err(StreamEnd::Resync(
                "the events from here on were pruned; list what there is, and go on from there",
            )),
            TurnEnd::Unreadable => {
                Err(StreamEnd::Resync("the ledger cannot be read; look at the server's disk"))
            }
        }
    }

    async fn send_events(
        &mut self,
        events: &[Arc<EncodedEvent>],
        line: &mut EventWriter,
    ) -> Result<(), StreamEnd> {
        let (mut piece, mut last) = (Vec::new(), self.after);
        for event in events {
            if self.filter.matches(event) {
                self.format.put_event(&mut piece, self.epoch, event);
            }
            last = event.seq;
            if piece.len() >= CHUNK_BYTES {
                line.send(std::mem::take(&mut piece).into()).await?;
                self.after = last;
            }
        }
        if !piece.is_empty() {
            line.send(piece.into()).await?;
        }
        self.after = last;
        Ok(())
    }
}

impl EventWriter {
    async fn send(&mut self, piece: Bytes) -> Result<(), StreamEnd> {
        match timeout(SEND_TIMEOUT, self.chunks.send(piece)).await {
            Ok(Ok(())) => {
                self.next_heartbeat_at = Instant::now() + self.heartbeat;
                Ok(())
            }
            Ok(Err(_)) => Err(StreamEnd::HungUp),
            Err(_) => Err(StreamEnd::Resync(
                "you took nothing for a minute; connect again with this id as Last-Event-ID",
            )),
        }
    }
}

impl EventBody {
    /// What is brought next; nothing once nothing more comes.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        let piece = self.chunks.recv().await;
        piece.or_else(|| self.last_chunk.lock().take())
    }
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let body = &mut *self;
        body.chunks.poll_recv(context).map(|piece| {
            let last_words = || body.last_chunk.lock().take();
            piece.or_else(last_words).map(|piece| Ok(Frame::data(piece)))
        })
    }
}
