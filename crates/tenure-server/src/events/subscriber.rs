//! Brings events to one subscriber: a task each, and no thread.

use std::convert::Infallible;
use std::pin::Pin;
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
use super::history::{History, HistoryBatch};
use crate::app::tick_to_rfc3339;

/// Whoever hears nothing for longer than this may take the connection for dead.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);
/// Whoever takes nothing for so long is not waited for.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);
/// Whoever reads the past and takes nothing for so long lets others have their turn at the disk.
const READ_SLOT_TIMEOUT: Duration = Duration::from_secs(5);
/// How many events are looked at in one go.
const BATCH_SIZE: usize = 256;
/// About how many bytes are handed over in one go, and how often before somebody has to take them.
const CHUNK_BYTES: usize = 64 << 10;
const MAX_CHUNKS: usize = 4;

/// What is needed to bring somebody events.
pub(super) struct EventSubscriber {
    pub(super) buffer: Arc<EventBuffer>,
    pub(super) feed: Arc<Feed>,
    pub(super) view: Arc<StateView>,
    pub(super) filter: Filter,
    pub(super) epoch: u64,
    pub(super) format: EventFormat,
    /// The last event that was told, or passed over.
    pub(super) after: u64,
    pub(super) heartbeat: Duration,
}

/// What goes into an answer: what the courier brings, and then its last words.
pub(crate) struct EventBody {
    chunks: mpsc::Receiver<Bytes>,
    last_chunk: Arc<Mutex<Option<Bytes>>>,
}

enum StreamEnd {
    HungUp,
    /// The server ends, and whoever listens comes back; or its token does not count any more.
    Ended,
    /// Something is missing from here on, and why.
    Resync(&'static str),
}

struct EventWriter {
    chunks: mpsc::Sender<Bytes>,
    next_heartbeat_at: Instant,
    heartbeat: Duration,
}

impl EventSubscriber {
    /// Sets out. Once the body is dropped the courier stops by itself.
    pub(super) fn start(mut self) -> EventBody {
        let (sender, pieces) = mpsc::channel(MAX_CHUNKS);
        let last_words = Arc::new(Mutex::new(None));
        let final_chunk = last_words.clone();
        tokio::spawn(async move {
            let _listener = self.buffer.count_subscriber();
            let heartbeat = self.heartbeat;
            let mut writer =
                EventWriter { chunks: sender, next_heartbeat_at: Instant::now() + heartbeat, heartbeat };
            if let StreamEnd::Resync(why) = self.run(&mut writer).await {
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
                    self.send_events(&events, line).await?;
                }
                BufferRead::UpToDate | BufferRead::Evicted if has_ended => return Err(StreamEnd::Ended),
                BufferRead::UpToDate => {
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

    /// Brings what is no longer in memory.
    async fn catch_up(&mut self, line: &mut EventWriter) -> Result<(), StreamEnd> {
        let turn = loop {
            tokio::select! {
                turn = self.buffer.read_slots.clone().acquire_owned() => break turn.expect("it is never closed"),
                () = line.chunks.closed() => return Err(StreamEnd::HungUp),
                () = sleep_until(line.next_heartbeat_at) => {
                    line.send(self.format.heartbeat(self.epoch, self.after)).await?;
                }
            }
        };
        let mut history = History::new(&self.feed, &self.view, self.after, turn);
        loop {
            if self.buffer.signal().borrow().has_ended || !self.filter.is_valid() {
                return Err(StreamEnd::Ended);
            }
            let read = tokio::task::spawn_blocking(move || {
                let past = history.next();
                (history, past)
            });
            let past;
            (history, past) = read.await.map_err(|_| StreamEnd::Ended)?;
            match past {
                HistoryBatch::Events(events) => {
                    let is_taken = timeout(READ_SLOT_TIMEOUT, line.chunks.reserve()).await.is_ok();
                    if !is_taken {
                        drop(history);
                        return self.send_events(&events, line).await;
                    }
                    self.send_events(&events, line).await?;
                }
                HistoryBatch::CaughtUp => return Ok(()),
                HistoryBatch::Gone => {
                    return Err(StreamEnd::Resync(
                        "the events from here on were pruned; list what there is, and go on from there",
                    ));
                }
                HistoryBatch::Unreadable => {
                    return Err(StreamEnd::Resync("the ledger cannot be read; look at the server's disk"));
                }
            }
            if Instant::now() >= line.next_heartbeat_at {
                line.send(self.format.heartbeat(self.epoch, self.after)).await?;
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
