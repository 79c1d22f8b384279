//! What happened last, for everybody who is up to date: one list in memory that all of them read.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tenure_core::kernel::{Anchor, Event, State};
use tenure_ledger::Seq;
use tenure_registrar::shell::{Feed, Observer};
use tokio::sync::{Semaphore, watch};

use super::happened::Happened;
use crate::metrics::{GaugeGuard, Metrics};

/// So many of the last events are kept, at most.
const MOST_EVENTS: usize = 16_384;
/// And so many bytes of them, about.
const MOST_BYTES: usize = 32 << 20;
/// So many read old events from the disk at once. The others wait for their turn.
const MOST_READERS: usize = 8;

/// Where those who listen look. A subscriber is a number, the last event that it was told, and no thread.
pub(crate) struct Hub {
    recent: Mutex<Recent>,
    signal: watch::Sender<Signal>,
    pub(super) readers: Arc<Semaphore>,
    metrics: Arc<Metrics>,
    /// Who else is told of everything, first.
    next: Arc<dyn Observer>,
}

#[derive(Default)]
struct Recent {
    events: VecDeque<Arc<Happened>>,
    weight: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Signal {
    batches: u64,
    pub(super) has_ended: bool,
}

pub(super) enum Found {
    Events(Vec<Arc<Happened>>),
    Nothing,
    /// What comes next is no longer, or not yet, in memory.
    Older,
}

impl Hub {
    /// Listens to `feed` from now on, until it ends, and tells `next` of everything too.
    pub(crate) fn start(feed: &Feed, metrics: Arc<Metrics>, next: Arc<dyn Observer>) -> Arc<Self> {
        let hub = Arc::new(Self {
            recent: Mutex::default(),
            signal: watch::Sender::new(Signal { batches: 0, has_ended: false }),
            readers: Arc::new(Semaphore::new(MOST_READERS)),
            metrics,
            next,
        });
        feed.observe(hub.clone());
        let ended = hub.clone();
        feed.at_end(move || ended.end());
        hub
    }

    pub(crate) fn end(&self) {
        self.signal.send_modify(|signal| signal.has_ended = true);
    }

    pub(super) fn signal(&self) -> watch::Receiver<Signal> {
        self.signal.subscribe()
    }

    /// Counts a listener as long as the answer lives.
    pub(super) fn listen(&self) -> GaugeGuard {
        GaugeGuard::new(&self.metrics.event_streams)
    }

    /// The next events after `after`, a few at a time. `head` is the last event that anybody could have been told.
    pub(super) fn look(&self, after: u64, head: u64, most: usize) -> Found {
        let recent = self.recent.lock();
        let Some((first, last)) = recent.events.front().zip(recent.events.back()) else {
            return if after < head { Found::Older } else { Found::Nothing };
        };
        if after >= last.seq {
            return Found::Nothing;
        }
        // They are numbered without a gap.
        match (after + 1).checked_sub(first.seq).map(usize::try_from) {
            Some(Ok(index)) => Found::Events(recent.events.iter().skip(index).take(most).cloned().collect()),
            _ => Found::Older,
        }
    }
}

impl Observer for Hub {
    fn happens(&self, seq: Seq, event: &Event, before: &State) {
        self.next.happens(seq, event, before);
        let anchor = before.clock().map_or(Anchor::default(), |clock| clock.anchor);
        let happened = Arc::new(Happened::new(seq.0, event, &before, before.tag(), anchor));
        self.metrics.count_event(event);
        let mut recent = self.recent.lock();
        recent.weight += happened.weight();
        recent.events.push_back(happened);
        while recent.events.len() > MOST_EVENTS || recent.weight > MOST_BYTES {
            let Some(dropped) = recent.events.pop_front() else { break };
            recent.weight -= dropped.weight();
        }
    }

    fn told(&self, took: Duration) {
        self.next.told(took);
        self.metrics.ledger_write_seconds.observe(took.as_secs_f64());
        self.signal.send_modify(|signal| signal.batches += 1);
    }
}
