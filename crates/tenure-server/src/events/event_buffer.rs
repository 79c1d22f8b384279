//! The latest events, in one list in memory that all subscribers read.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tenure_core::kernel::HashSeed;
use tenure_registrar::runtime::{AppliedEvent, Feed, Observer, StateView};
use tokio::sync::watch;

use super::encoded_event::{EncodedEvent, clock_anchor};
use super::history::History;
use crate::metrics::{GaugeGuard, Metrics};

/// So many of the last events are kept, at most.
const MAX_EVENTS: usize = 16_384;
/// And so many bytes of them, about.
const MAX_BYTES: usize = 32 << 20;
/// The event ring buffer. A subscriber is the number of the last event that it received, and no thread.
pub(crate) struct EventBuffer {
    recent: Mutex<RecentEvents>,
    signal: watch::Sender<BufferSignal>,
    pub(super) history: Arc<History>,
    feed: Arc<Feed>,
    metrics: Arc<Metrics>,
}

#[derive(Default)]
struct RecentEvents {
    events: VecDeque<Arc<EncodedEvent>>,
    weight: usize,
    /// The events before the first were dropped, or were added after the start of the server.
    is_filled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BufferSignal {
    batches: u64,
    pub(super) has_ended: bool,
}

pub(super) enum BufferRead {
    Events(Vec<Arc<EncodedEvent>>),
    UpToDate,
    /// What comes next is no longer, or not yet, in memory.
    Evicted,
}

impl EventBuffer {
    /// A buffer that ends with `feed`, and is filled once it is registered there as an observer.
    pub(crate) fn new(
        feed: &Arc<Feed>,
        view: &Arc<StateView>,
        hash_seed: HashSeed,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        let buffer = Arc::new(Self {
            recent: Mutex::default(),
            signal: watch::Sender::new(BufferSignal { batches: 0, has_ended: false }),
            history: History::new(feed.clone(), view.clone(), hash_seed),
            feed: feed.clone(),
            metrics,
        });
        let ended = buffer.clone();
        feed.on_end(move || ended.end());
        buffer
    }

    pub(crate) fn end(&self) {
        self.signal.send_modify(|signal| signal.has_ended = true);
    }

    pub(super) fn signal(&self) -> watch::Receiver<BufferSignal> {
        self.signal.subscribe()
    }

    /// Counts a listener as long as the answer lives.
    pub(super) fn count_subscriber(&self) -> GaugeGuard {
        GaugeGuard::new(&self.metrics.event_streams)
    }

    /// The next events after `after`, a few at a time. `head` is the last event that anybody could have been told.
    pub(super) fn read_after(&self, after: u64, head: u64, limit: usize) -> BufferRead {
        let recent = self.recent.lock();
        let Some((first, last)) = recent.events.front().zip(recent.events.back()) else {
            return if after < head { BufferRead::Evicted } else { BufferRead::UpToDate };
        };
        if after >= last.seq {
            return BufferRead::UpToDate;
        }
        if first.seq > after + 1 {
            return BufferRead::Evicted;
        }
        // Entries about keys have numbers too.
        let index = recent.events.partition_point(|event| event.seq <= after);
        BufferRead::Events(recent.events.iter().skip(index).take(limit).cloned().collect())
    }

    /// Adds the events from before the start of the server, once, if a subscriber that has read up to `after` continues
    /// with one of the last of them: after a restart, many do. Reads the ledger.
    pub(super) fn fill(&self, after: u64, is_stopped: impl Fn() -> bool) -> bool {
        let first_seq = |recent: &RecentEvents| recent.events.front().map(|event| event.seq);
        let (first, is_filled, head) = {
            let recent = self.recent.lock();
            (first_seq(&recent), recent.is_filled, self.feed.head().seq.0)
        };
        let until = first.map_or(head, |first| first - 1);
        let begin = until.saturating_sub(MAX_EVENTS as u64 / 2).max(self.feed.pruned_through().0);
        if is_filled || after < begin {
            return false;
        }
        let Some(older) = self.history.events_between(begin, until, self.feed.epoch(), is_stopped) else {
            return false;
        };
        let mut recent = self.recent.lock();
        if recent.is_filled || first_seq(&recent) != first {
            return false;
        }
        recent.is_filled = true;
        for event in older.into_iter().rev() {
            recent.weight += event.memory_size();
            recent.events.push_front(Arc::new(event));
            if recent.weight > MAX_BYTES / 2 {
                break;
            }
        }
        true
    }
}

impl Observer for EventBuffer {
    fn event_applied(&self, applied: AppliedEvent<'_>) {
        let anchor = clock_anchor(applied.state).unwrap_or_default();
        let encoded = Arc::new(EncodedEvent::new(applied, anchor, self.feed.epoch()));
        let mut recent = self.recent.lock();
        recent.weight += encoded.memory_size();
        recent.events.push_back(encoded);
        while recent.events.len() > MAX_EVENTS || recent.weight > MAX_BYTES {
            let Some(dropped) = recent.events.pop_front() else { break };
            recent.weight -= dropped.memory_size();
            recent.is_filled = true;
        }
    }

    fn batch_published(&self, _: Duration) {
        self.signal.send_modify(|signal| signal.batches += 1);
    }
}
