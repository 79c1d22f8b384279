//! Events that are no longer in the ring buffer, read from the ledger.
//!
//! An event is shown with the state right after it, so the ledger is replayed up to the first event that the subscriber
//! wants: from a checkpoint before it, or from the beginning. Few threads do so at once, and a subscriber keeps no
//! state while its connection is blocked.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use parking_lot::Mutex;
use tenure_core::kernel::{
    ClockAnchor, Event, HashSeed, IssuedLease, KernelState, LedgerTag, Limits, Principal, Removed, decode,
};
use tenure_core::ledger::EventRecord;
use tenure_ledger::{Batches, ReadError, Seq};
use tenure_registrar::runtime::{AppliedEvent, Feed, Replay, StateView};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::Filter;
use super::encoded_event::{EncodedEvent, EventFormat, clock_anchor};
use super::subscriber::CHUNK_BYTES;

/// How many subscribers read the ledger at once, of which one principal never has all.
const MAX_TURNS: usize = 2;
/// How many events a subscriber reads before others have their turn. After a long replay it reads more.
const TURN_EVENTS: usize = 1_024;
/// How long such a turn waits for a connection that is blocked.
const MAX_BLOCKED_TIME: Duration = Duration::from_millis(100);

/// Reads the ledger for all subscribers.
pub(super) struct History {
    feed: Arc<Feed>,
    view: Arc<StateView>,
    hash_seed: HashSeed,
    turns: Mutex<Turns>,
    /// The last states, for subscribers that continue where they ended. There are at most [`MAX_TURNS`].
    replays: Mutex<VecDeque<HistoryReplay>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum TurnEnd {
    /// Others have their turn, or the connection is blocked, or there is nothing more to read.
    Paused,
    Pruned,
    Unreadable,
}

/// What a subscriber has read after a turn.
pub(super) struct TurnOutcome {
    /// The last event that is in a chunk that was sent, or needs none.
    pub(super) sent: u64,
    /// The last event that was read, and what is not sent yet of the events up to it.
    pub(super) read: u64,
    pub(super) unsent: Vec<u8>,
    pub(super) end: TurnEnd,
}

/// What a turn reads, and where it sends that.
pub(super) struct TurnRequest {
    pub(super) after: u64,
    pub(super) filter: Arc<Filter>,
    pub(super) format: EventFormat,
    pub(super) epoch: u64,
    pub(super) chunks: mpsc::Sender<Bytes>,
}

/// A state to which the events of the ledger are applied one by one.
struct HistoryReplay {
    state: KernelState,
    /// The last event that was applied, and its content; no content if it is an entry about a key.
    at: u64,
    last: Option<ReadEvent>,
    batches: Batches,
    /// The rest of the batch that is being applied.
    records: std::vec::IntoIter<EventRecord>,
    tag: LedgerTag,
    anchor: ClockAnchor,
    /// The events before the first were pruned, and no checkpoint is old enough. An event about what began before
    /// cannot be applied.
    is_incomplete: bool,
}

struct ReadEvent {
    event: Event,
    removed: Option<Removed>,
    is_applied: bool,
}

impl History {
    pub(super) fn new(feed: Arc<Feed>, view: Arc<StateView>, hash_seed: HashSeed) -> Arc<Self> {
        Arc::new(Self { feed, view, hash_seed, turns: Mutex::default(), replays: Mutex::default() })
    }

    /// Reads the ledger on a thread that may wait for the disk, until the turn is over.
    pub(super) fn run_turn(&self, request: &TurnRequest, is_stopped: impl Fn() -> bool) -> TurnOutcome {
        let TurnRequest { after, filter, format, epoch, chunks } = request;
        let mut outcome =
            TurnOutcome { sent: *after, read: *after, unsent: Vec::new(), end: TurnEnd::Paused };
        let started_at = Instant::now();
        let read = self.replay_after(*after, is_stopped).and_then(|replay| {
            let Some(mut replay) = replay else { return Ok(()) };
            // Reading takes at least as long as replaying, or many subscribers would replay more than they read.
            let deadline = Instant::now() + started_at.elapsed();
            for count in 0.. {
                if count >= TURN_EVENTS && Instant::now() >= deadline {
                    break;
                }
                let has_more = replay.step(&self.feed)?;
                outcome.read = replay.at;
                if !has_more {
                    break;
                }
                let event = replay.encode_last(&self.view, *epoch);
                if let Some(event) = event.filter(|event| filter.matches(event)) {
                    format.put_event(&mut outcome.unsent, *epoch, &event);
                }
                if outcome.unsent.len() >= CHUNK_BYTES {
                    let Some(permit) = reserve(chunks, deadline) else { break };
                    permit.send(std::mem::take(&mut outcome.unsent).into());
                }
                if outcome.unsent.is_empty() {
                    outcome.sent = outcome.read;
                }
            }
            self.keep(replay);
            Ok(())
        });
        outcome.end = read.err().unwrap_or(outcome.end);
        outcome
    }

    /// The events after `after` and up to `until`; `None` if the ledger cannot be read.
    pub(super) fn events_between(
        &self,
        after: u64,
        until: u64,
        epoch: u64,
        is_stopped: impl Fn() -> bool,
    ) -> Option<Vec<EncodedEvent>> {
        let mut replay = self.replay_after(after, is_stopped).ok()??;
        let mut events = Vec::new();
        while replay.at < until && replay.step(&self.feed).ok()? {
            events.extend(replay.encode_last(&self.view, epoch));
        }
        Some(events)
    }

    /// The state after event `after`; `None` if the subscriber is gone before that is reached.
    fn replay_after(
        &self,
        after: u64,
        is_stopped: impl Fn() -> bool,
    ) -> Result<Option<HistoryReplay>, TurnEnd> {
        {
            let mut replays = self.replays.lock();
            if let Some(index) = replays.iter().position(|replay| replay.at == after) {
                return Ok(replays.remove(index));
            }
        }
        let mut replay = self.open(after)?;
        while replay.at < after {
            if replay.at.is_multiple_of(1_024) && is_stopped() {
                return Ok(None);
            }
            if !replay.step(&self.feed)? {
                break;
            }
        }
        Ok(Some(replay))
    }

    fn open(&self, after: u64) -> Result<HistoryReplay, TurnEnd> {
        let reader = self.feed.reader();
        let pruned = reader.pruned_through();
        if after < pruned.0 {
            return Err(TurnEnd::Pruned);
        }
        let checkpoint = reader.checkpoint_before(Seq(after)).map_err(|_| TurnEnd::Unreadable)?;
        let begin = Replay::begin(checkpoint.as_ref(), reader.ledger(), Limits::default(), self.hash_seed)
            .map_err(|_| TurnEnd::Unreadable)?;
        let first = begin.head().seq;
        let anchor = self.view.read(clock_anchor);
        Ok(HistoryReplay {
            state: begin.into_state(),
            at: first.max(pruned).0,
            last: None,
            batches: reader.read(first.max(pruned)),
            records: Vec::new().into_iter(),
            tag: reader.ledger().tag(),
            anchor: anchor.unwrap_or_default(),
            is_incomplete: first < pruned,
        })
    }

    fn keep(&self, replay: HistoryReplay) {
        let mut replays = self.replays.lock();
        replays.push_back(replay);
        if replays.len() > MAX_TURNS {
            replays.pop_front();
        }
    }

    /// Drops the state that was kept for a subscriber that has read up to `at`.
    pub(super) fn forget(&self, at: u64) {
        self.replays.lock().retain(|replay| replay.at != at);
    }

    /// Waits for a turn of `principal`.
    pub(super) async fn turn(self: Arc<Self>, principal: Principal) -> Turn {
        let (sender, granted) = oneshot::channel();
        self.turns.lock().enqueue(principal, sender);
        self.grant_turns();
        granted.await.expect("a waiting subscriber is dropped only after its turn was granted")
    }

    fn grant_turns(self: &Arc<Self>) {
        loop {
            let Some((principal, sender)) = self.turns.lock().next() else { return };
            // The turn of a subscriber that stopped waiting is dropped here.
            let _ = sender.send(Turn { history: self.clone(), principal });
        }
    }
}

/// A place for one more chunk. Waits a short time for it, but not beyond `deadline`.
fn reserve(chunks: &mpsc::Sender<Bytes>, deadline: Instant) -> Option<mpsc::Permit<'_, Bytes>> {
    match chunks.try_reserve() {
        Ok(permit) => Some(permit),
        Err(_) if Instant::now() >= deadline => None,
        Err(_) => {
            let deadline = deadline.min(Instant::now() + MAX_BLOCKED_TIME);
            Handle::current().block_on(timeout_at(deadline, chunks.reserve())).ok()?.ok()
        }
    }
}

impl HistoryReplay {
    /// Applies the next record; `false` if every published event was read.
    fn step(&mut self, feed: &Feed) -> Result<bool, TurnEnd> {
        let record = loop {
            if let Some(record) = self.records.next() {
                break record;
            }
            // Batches are published whole. Subscribers must not see an event before the observers and the view.
            if self.at >= feed.head().seq.0 {
                return Ok(false);
            }
            // The iterator ends where the ledger ended when it was made.
            let batch = self.batches.next().or_else(|| {
                self.batches = feed.reader().read(Seq(self.at));
                self.batches.next()
            });
            self.records = match batch {
                Some(Ok(batch)) if batch.first.0 == self.at + 1 => batch.records.into_iter(),
                Some(Err(ReadError::OutOfRange { .. })) => return Err(TurnEnd::Pruned),
                _ => return Err(TurnEnd::Unreadable),
            };
        };
        let event = decode(&record, self.tag).map_err(|_| TurnEnd::Unreadable)?;
        self.last = match event {
            Some(event) => Some(self.apply(event)?),
            None => None,
        };
        self.at += 1;
        Ok(true)
    }

    fn apply(&mut self, event: Event) -> Result<ReadEvent, TurnEnd> {
        let (removed, is_applied) = match self.state.apply_and_take(&event) {
            Ok(removed) => (removed, true),
            Err(_) if self.is_incomplete => (None, self.apply_without_ticket(&event)),
            Err(_) => return Err(TurnEnd::Unreadable),
        };
        self.anchor = clock_anchor(&self.state).unwrap_or(self.anchor);
        Ok(ReadEvent { event, removed, is_applied })
    }

    /// The ticket of a lease may have been drawn before the first event that can be read.
    fn apply_without_ticket(&mut self, event: &Event) -> bool {
        let Event::Issued(issued) = event else { return false };
        let issued = IssuedLease { ticket: None, ..issued.clone() };
        self.state.apply(&Event::Issued(issued)).is_ok()
    }

    /// The last event, as the ring buffer has it. What began before the first event that can be read is shown as the
    /// view has it now.
    fn encode_last(&self, view: &StateView, epoch: u64) -> Option<EncodedEvent> {
        let ReadEvent { event, removed, is_applied } = self.last.as_ref()?;
        let encode = |state: &KernelState| {
            let applied = AppliedEvent { seq: Seq(self.at), event, removed: removed.as_ref(), state };
            EncodedEvent::new(applied, self.anchor, epoch)
        };
        Some(if *is_applied { encode(&self.state) } else { view.read(encode) })
    }
}

/// Turns to read the ledger. Principals have them in rotation, so that one with many subscribers delays no other.
#[derive(Default)]
struct Turns {
    /// The principals of the turns that are in use.
    active: Vec<Principal>,
    /// In the order in which they are next.
    waiting: VecDeque<(Principal, VecDeque<oneshot::Sender<Turn>>)>,
}

impl Turns {
    fn enqueue(&mut self, principal: Principal, sender: oneshot::Sender<Turn>) {
        match self.waiting.iter_mut().find(|(other, _)| *other == principal) {
            Some((_, waiting)) => waiting.push_back(sender),
            None => self.waiting.push_back((principal, VecDeque::from([sender]))),
        }
    }

    /// The next subscriber that has a turn now.
    fn next(&mut self) -> Option<(Principal, oneshot::Sender<Turn>)> {
        while self.active.len() < MAX_TURNS {
            let active = &self.active;
            let count = |principal| active.iter().filter(|other| *other == principal).count();
            let index = self.waiting.iter().position(|(principal, _)| count(principal) < MAX_TURNS - 1)?;
            let (principal, mut waiting) = self.waiting.remove(index)?;
            let sender = std::iter::from_fn(|| waiting.pop_front()).find(|sender| !sender.is_closed());
            if !waiting.is_empty() {
                self.waiting.push_back((principal.clone(), waiting));
            }
            if let Some(sender) = sender {
                self.active.push(principal.clone());
                return Some((principal, sender));
            }
        }
        None
    }
}

/// The turn of a principal, until it is dropped.
pub(super) struct Turn {
    history: Arc<History>,
    principal: Principal,
}

impl Drop for Turn {
    fn drop(&mut self) {
        {
            let active = &mut self.history.turns.lock().active;
            if let Some(index) = active.iter().position(|principal| *principal == self.principal) {
                active.swap_remove(index);
            }
        }
        self.history.grant_turns();
    }
}
