//! What happened, batch by batch, from any point on: from memory while it is recent, else from the ledger.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tenure_core::kernel::{Event, KernelState};
use tenure_ledger::{Batch, BatchBytes, ChainHash, Head, LedgerReader, ReadError, Seq};

/// Told to everybody who listens, in order and without a gap.
pub struct Feed {
    recent: Mutex<RecentBatches>,
    published: Condvar,
    /// Where older batches are.
    reader: Arc<dyn LedgerReader>,
    observers: Mutex<Observers>,
}

/// Receives every durable event, in order and without a gap, on the thread that publishes it. An observer must be
/// quick: the publisher answers no request meanwhile.
pub trait Observer: Send + Sync {
    /// Runs before readers of the view learn of `event`. `before` is the state without it, so that an observer can
    /// describe exactly what the event changes. Reading the view here is a deadlock: the publisher holds its lock.
    fn before_event(&self, seq: Seq, event: &Event, before: &KernelState);

    /// Runs once per batch, when the view and the feed have all of its events. The durable write took `_write_time`.
    fn batch_published(&self, _write_time: Duration) {}
}

/// In the order of their registration. A registration replaces the list: the publisher keeps one list for a whole
/// batch, and holds no lock while observers run.
pub(crate) type Observers = Arc<Vec<Arc<dyn Observer>>>;

struct RecentBatches {
    batches: VecDeque<Arc<DurableBatch>>,
    bytes: usize,
    head: Head,
    published: u64,
    has_ended: bool,
    /// Whom to tell of the end.
    at_end: Vec<EndCallback>,
}

type EndCallback = Box<dyn FnOnce() + Send>;

/// A batch that is durable, as it was written. Few listen: it is decoded by who does.
#[derive(Debug)]
pub(crate) struct DurableBatch {
    pub(crate) batch: BatchBytes,
    pub(crate) hash: ChainHash,
    pub(crate) write_time: Duration,
}

/// So many bytes are kept in memory at most, and one batch at least.
const MAX_BYTES: usize = 16 << 20;

#[derive(Debug)]
#[non_exhaustive]
pub enum FeedItem {
    /// The next batch. Of its events, only those after the point asked for are new.
    Batch(Batch),
    Nothing,
    /// The writer has ended; nothing more will come.
    Ended,
    /// What comes next was pruned. Begin anew from a snapshot, and go on after this event or a later one.
    Compacted {
        /// The last event that is gone.
        first: Seq,
    },
    Failed(ReadError),
}

pub struct Subscription {
    feed: Arc<Feed>,
    after: Seq,
    /// Batches that were read from the ledger, because memory had them no longer.
    older: VecDeque<Batch>,
}

impl Feed {
    /// A feed that goes on where the ledger ends now; `reader` has what is older.
    pub fn new(reader: Arc<dyn LedgerReader>) -> Feed {
        let recent = RecentBatches {
            batches: VecDeque::new(),
            bytes: 0,
            head: reader.head(),
            published: 0,
            has_ended: false,
            at_end: Vec::new(),
        };
        Feed { recent: Mutex::new(recent), published: Condvar::new(), reader, observers: Mutex::default() }
    }

    /// Where it is now: the last event that was told.
    pub fn head(&self) -> Head {
        self.recent.lock().head
    }

    /// How many batches were told since this writer started.
    pub fn published_batch_count(&self) -> u64 {
        self.recent.lock().published
    }

    /// After which event it can be listened to: 0 as long as nothing was pruned.
    pub fn pruned_through(&self) -> Seq {
        self.reader.pruned_through()
    }

    /// In which epoch the ledger is.
    pub fn epoch(&self) -> u64 {
        self.reader.epoch()
    }

    /// Registers `observer` for every batch whose publication begins after this call. Each event is shown to all
    /// observers, in the order of their registration, before the next event is shown to any of them.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        Arc::make_mut(&mut self.observers.lock()).push(observer);
    }

    pub(crate) fn observers(&self) -> Observers {
        self.observers.lock().clone()
    }

    /// Listens to everything after event `after`.
    pub fn subscribe(self: &Arc<Self>, after: Seq) -> Subscription {
        Subscription { feed: self.clone(), after, older: VecDeque::new() }
    }

    pub(crate) fn publish(&self, durable: DurableBatch) {
        let mut recent = self.recent.lock();
        recent.head = Head { seq: durable.batch.last(), hash: durable.hash };
        recent.published += 1;
        recent.bytes += durable.batch.as_slice().len();
        recent.batches.push_back(Arc::new(durable));
        while recent.bytes > MAX_BYTES && recent.batches.len() > 1 {
            let dropped = recent.batches.pop_front().map_or(0, |durable| durable.batch.as_slice().len());
            recent.bytes -= dropped;
        }
        drop(recent);
        self.published.notify_all();
    }

    /// Calls `callback` once the writer has ended, however it ended; at once if it has.
    pub fn on_end(&self, callback: impl FnOnce() + Send + 'static) {
        let mut recent = self.recent.lock();
        if recent.has_ended {
            drop(recent);
            return callback();
        }
        recent.at_end.push(Box::new(callback));
    }

    pub(crate) fn end(&self) {
        let mut recent = self.recent.lock();
        recent.has_ended = true;
        let callbacks = std::mem::take(&mut recent.at_end);
        drop(recent);
        self.published.notify_all();
        callbacks.into_iter().for_each(|callback| callback());
    }
}

impl Subscription {
    /// The last event that was told. Listening after it again goes on from here.
    pub fn after(&self) -> Seq {
        self.after
    }

    /// What comes next, waiting for it at most this long.
    pub fn next(&mut self, timeout: Duration) -> FeedItem {
        let Some(batch) = self.older.pop_front() else {
            return self.next_recent(timeout);
        };
        self.after = batch.last();
        FeedItem::Batch(batch)
    }

    fn next_recent(&mut self, timeout: Duration) -> FeedItem {
        let is_idle = |recent: &mut RecentBatches| recent.head.seq <= self.after && !recent.has_ended;
        let mut recent = self.feed.recent.lock();
        self.feed.published.wait_while_for(&mut recent, is_idle, timeout);
        if recent.head.seq <= self.after {
            return if recent.has_ended { FeedItem::Ended } else { FeedItem::Nothing };
        }
        let in_memory = recent.batches.front().is_some_and(|first| first.batch.first().0 <= self.after.0 + 1);
        if !in_memory {
            drop(recent);
            return self.next_from_ledger();
        }
        let index = recent.batches.partition_point(|durable| durable.batch.last() <= self.after);
        let durable = recent.batches[index].clone();
        drop(recent);
        self.after = durable.batch.last();
        FeedItem::Batch(durable.batch.decode(durable.hash).expect("what was just written can be read"))
    }

    /// Reads as much as is wanted at once: a segment is read whole anyway.
    fn next_from_ledger(&mut self) -> FeedItem {
        let mut bytes = 0;
        for batch in self.feed.reader.read(self.after) {
            match batch {
                Ok(batch) => {
                    bytes += batch.records.iter().map(|record| record.payload.len() + 64).sum::<usize>();
                    self.older.push_back(batch);
                    if bytes > MAX_BYTES {
                        break;
                    }
                }
                Err(ReadError::OutOfRange { first, .. }) => return FeedItem::Compacted { first },
                Err(error) => return FeedItem::Failed(error),
            }
        }
        match self.older.pop_front() {
            Some(batch) => {
                self.after = batch.last();
                FeedItem::Batch(batch)
            }
            None => FeedItem::Nothing,
        }
    }
}
