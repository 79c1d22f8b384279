//! The latest events, in one list in memory that all subscribers read.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tenure_core::kernel::{ClockAnchor, Event, KernelState};
use tenure_ledger::Seq;
use tenure_registrar::runtime::{Feed, Observer};
use tokio::sync::{Semaphore, watch};

use super::encoded_event::EncodedEvent;
use crate::metrics::{GaugeGuard, Metrics};

/// So many of the last events are kept, at most.
const MAX_EVENTS: usize = 16_384;
/// And so many bytes of them, about.
const MAX_BYTES: usize = 32 << 20;
/// So many read old events from the disk at once. The others wait for their turn.
const MAX_READERS: usize = 8;

/// The event ring buffer. A subscriber is the number of the last event that it received, and no thread.
pub(crate) struct EventBuffer {
    recent: Mutex<RecentEvents>,
    signal: watch::Sender<BufferSignal>,
    pub(super) read_slots: Arc<Semaphore>,
    metrics: Arc<Metrics>,
}

#[derive(Default)]
struct RecentEvents {
    events: VecDeque<Arc<EncodedEvent>>,
    weight: usize,
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
    pub(crate) fn new(feed: &Feed, metrics: Arc<Metrics>) -> Arc<Self> {
        let buffer = Arc::new(Self {
            recent: Mutex::default(),
            signal: watch::Sender::new(BufferSignal { batches: 0, has_ended: false }),
            read_slots: Arc::new(Semaphore::new(MAX_READERS)),
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
        // They are numbered without a gap.
        match (after + 1).checked_sub(first.seq).map(usize::try_from) {
            Some(Ok(index)) => {
                BufferRead::Events(recent.events.iter().skip(index).take(limit).cloned().collect())
            }
            _ => BufferRead::Evicted,
        }
    }
}

impl Observer for EventBuffer {
    fn before_event(&self, seq: Seq, event: &Event, before: &KernelState) {
        let anchor = before.clock().map_or(ClockAnchor::default(), |clock| clock.anchor);
        let encoded = Arc::new(EncodedEvent::new(seq.0, event, &before, before.ledger_tag(), anchor));
        let mut recent = self.recent.lock();
        recent.weight += encoded.memory_size();
        recent.events.push_back(encoded);
        while recent.events.len() > MAX_EVENTS || recent.weight > MAX_BYTES {
            let Some(dropped) = recent.events.pop_front() else { break };
            recent.weight -= dropped.memory_size();
        }
    }

    fn batch_published(&self, _: Duration) {
        self.signal.send_modify(|signal| signal.batches += 1);
    }
}
