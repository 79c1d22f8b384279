//! Brings events to one subscriber: a task each, and no thread.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use hyper::body::{Body, Frame};
use parking_lot::Mutex;
use tenure_registrar::shell::{Feed, View};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::filter::Filter;
use super::frame::Form;
use super::happened::Happened;
use super::history::{History, Past};
use super::hub::{Found, Hub};
use crate::http::names::time_of;

/// Whoever hears nothing for longer than this may take the connection for dead.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);
/// Whoever takes nothing for so long is not waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Whoever reads the past and takes nothing for so long lets others have their turn at the disk.
const TURN: Duration = Duration::from_secs(5);
/// How many events are looked at in one go.
const AT_ONCE: usize = 256;
/// About how many bytes are handed over in one go, and how often before somebody has to take them.
const PIECE: usize = 64 << 10;
const PIECES: usize = 4;

/// What is needed to bring somebody events.
pub(super) struct Courier {
    pub(super) hub: Arc<Hub>,
    pub(super) feed: Arc<Feed>,
    pub(super) view: Arc<View>,
    pub(super) filter: Filter,
    pub(super) epoch: u64,
    pub(super) form: Form,
    /// The last event that was told, or passed over.
    pub(super) after: u64,
    pub(super) heartbeat: Duration,
}

/// What goes into an answer: what the courier brings, and then its last words.
pub(in crate::http) struct EventBody {
    pieces: mpsc::Receiver<Bytes>,
    last_words: Arc<Mutex<Option<Bytes>>>,
}

enum Stop {
    HungUp,
    /// The server ends, and whoever listens comes back; or its token does not count any more.
    Ended,
    /// Something is missing from here on, and why.
    Resync(&'static str),
}

struct Line {
    pieces: mpsc::Sender<Bytes>,
    quiet_until: Instant,
    heartbeat: Duration,
}

impl Courier {
    /// Sets out. Once the body is dropped the courier stops by itself.
    pub(super) fn start(mut self) -> EventBody {
        let (sender, pieces) = mpsc::channel(PIECES);
        let last_words = Arc::new(Mutex::new(None));
        let said = last_words.clone();
        tokio::spawn(async move {
            let _listener = self.hub.listen();
            let heartbeat = self.heartbeat;
            let mut line = Line { pieces: sender, quiet_until: Instant::now() + heartbeat, heartbeat };
            if let Stop::Resync(why) = self.run(&mut line).await {
                let now = self.view.now();
                let at = self.view.read(|state| time_of(state, now));
                let words = self.form.resync(self.epoch, self.after, at, why);
                *said.lock() = Some(words);
            }
        });
        EventBody { pieces, last_words }
    }

    async fn run(&mut self, line: &mut Line) -> Stop {
        match self.bring_all(line).await {
            Ok(never) => match never {},
            Err(stop) => stop,
        }
    }

    async fn bring_all(&mut self, line: &mut Line) -> Result<Infallible, Stop> {
        let mut signal = self.hub.signal();
        line.send(self.form.greeting(self.epoch, self.after)).await?;
        let mut is_up_to_date = false;
        loop {
            // Marked as seen before looking: what comes in between wakes it again.
            let has_ended = signal.borrow_and_update().has_ended;
            if !self.filter.is_good() {
                return Err(Stop::Ended);
            }
            match self.hub.look(self.after, self.feed.head().seq.0, AT_ONCE) {
                Found::Events(events) => {
                    is_up_to_date = true;
                    self.bring(&events, line).await?;
                }
                Found::Nothing | Found::Older if has_ended => return Err(Stop::Ended),
                Found::Nothing => {
                    tokio::select! {
                        _ = signal.changed() => {}
                        () = sleep_until(line.quiet_until) => {}
                        () = line.pieces.closed() => return Err(Stop::HungUp),
                    }
                }
                // It was up to date and is not: it does not take what it is brought, and others must not wait for it.
                Found::Older if is_up_to_date => {
                    return Err(Stop::Resync(
                        "you read too slowly; connect again with this id as Last-Event-ID",
                    ));
                }
                Found::Older => self.catch_up(line).await?,
            }
            if Instant::now() >= line.quiet_until {
                line.send(self.form.heartbeat(self.epoch, self.after)).await?;
            }
        }
    }

    /// Brings what is no longer in memory.
    async fn catch_up(&mut self, line: &mut Line) -> Result<(), Stop> {
        let turn = loop {
            tokio::select! {
                turn = self.hub.readers.clone().acquire_owned() => break turn.expect("it is never closed"),
                () = line.pieces.closed() => return Err(Stop::HungUp),
                () = sleep_until(line.quiet_until) => {
                    line.send(self.form.heartbeat(self.epoch, self.after)).await?;
                }
            }
        };
        let mut history = History::new(&self.feed, &self.view, self.after, turn);
        loop {
            if self.hub.signal().borrow().has_ended || !self.filter.is_good() {
                return Err(Stop::Ended);
            }
            let read = tokio::task::spawn_blocking(move || {
                let past = history.next();
                (history, past)
            });
            let past;
            (history, past) = read.await.map_err(|_| Stop::Ended)?;
            match past {
                Past::Events(events) => {
                    let is_taken = timeout(TURN, line.pieces.reserve()).await.is_ok();
                    if !is_taken {
                        drop(history);
                        return self.bring(&events, line).await;
                    }
                    self.bring(&events, line).await?;
                }
                Past::CaughtUp => return Ok(()),
                Past::Gone => {
                    return Err(Stop::Resync(
                        "the events from here on were pruned; list what there is, and go on from there",
                    ));
                }
                Past::Unreadable => {
                    return Err(Stop::Resync("the ledger cannot be read; look at the server's disk"));
                }
            }
            if Instant::now() >= line.quiet_until {
                line.send(self.form.heartbeat(self.epoch, self.after)).await?;
            }
        }
    }

    async fn bring(&mut self, events: &[Arc<Happened>], line: &mut Line) -> Result<(), Stop> {
        let (mut piece, mut last) = (Vec::new(), self.after);
        for event in events {
            if self.filter.passes(event) {
                self.form.put_event(&mut piece, self.epoch, event);
            }
            last = event.seq;
            if piece.len() >= PIECE {
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

impl Line {
    async fn send(&mut self, piece: Bytes) -> Result<(), Stop> {
        match timeout(PATIENCE, self.pieces.send(piece)).await {
            Ok(Ok(())) => {
                self.quiet_until = Instant::now() + self.heartbeat;
                Ok(())
            }
            Ok(Err(_)) => Err(Stop::HungUp),
            Err(_) => Err(Stop::Resync(
                "you took nothing for a minute; connect again with this id as Last-Event-ID",
            )),
        }
    }
}

impl EventBody {
    /// What is brought next; nothing once nothing more comes.
    pub(in crate::http) async fn next(&mut self) -> Option<Bytes> {
        let piece = self.pieces.recv().await;
        piece.or_else(|| self.last_words.lock().take())
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
        body.pieces.poll_recv(context).map(|piece| {
            let last_words = || body.last_words.lock().take();
            piece.or_else(last_words).map(|piece| Ok(Frame::data(piece)))
        })
    }
}
