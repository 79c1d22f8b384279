//! The events that are durable, batch by batch: observers are shown each of them, subscriptions read the ledger.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tenure_core::kernel::{Event, KernelState, Removed};
use tenure_ledger::{Batch, BatchBytes, Batches, ChainHash, Head, LedgerReader, ReadError, Seq};

/// Publishes durable events, in order and without a gap.
pub struct Feed {
    progress: Mutex<FeedProgress>,
    published: Condvar,
    reader: Arc<dyn LedgerReader>,
    observers: Mutex<Observers>,
}

/// An event after it was applied.
#[derive(Clone, Copy)]
pub struct AppliedEvent<'a> {
    pub seq: Seq,
    pub event: &'a Event,
    /// What the event removed from the state.
    pub removed: Option<&'a Removed>,
    /// The state right after the event.
    pub state: &'a KernelState,
}

/// Receives every durable event, in order and without a gap, on the thread that publishes it. An observer must be
/// quick: the publisher answers no request meanwhile.
pub trait Observer: Send + Sync {
    /// Runs before readers of the view learn of the event. Reading the view here is a deadlock: the publisher holds
    /// its lock.
    fn event_applied(&self, applied: AppliedEvent<'_>);

    /// Runs once per batch, when the view and the feed have all of its events. The durable write took `_write_time`.
    fn batch_published(&self, _write_time: Duration) {}
}

/// In the order of their registration. A registration replaces the list: the publisher keeps one list for a whole
/// batch, and holds no lock while observers run.
pub(crate) type Observers = Arc<Vec<Arc<dyn Observer>>>;

struct FeedProgress {
    head: Head,
    batches: u64,
    has_ended: bool,
    at_end: Vec<EndCallback>,
}

type EndCallback = Box<dyn FnOnce() + Send>;

/// A batch that is durable, as it was written.
#[derive(Debug)]
pub(crate) struct DurableBatch {
    pub(crate) batch: BatchBytes,
    pub(crate) hash: ChainHash,
    pub(crate) write_time: Duration,
}

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

/// Reads batches from the ledger as far as they are published: observers and the view have had them.
pub struct Subscription {
    feed: Arc<Feed>,
    after: Seq,
    batches: Option<Batches>,
    /// A batch that is durable and not published yet.
    unpublished: Option<Batch>,
}

impl Feed {
    /// A feed that starts where the ledger of `reader` ends now.
    pub fn new(reader: Arc<dyn LedgerReader>) -> Feed {
        let head = reader.head();
        let progress = FeedProgress { head, batches: 0, has_ended: false, at_end: Vec::new() };
        Feed {
            progress: Mutex::new(progress),
            published: Condvar::new(),
            reader,
            observers: Mutex::default(),
        }
    }

    /// The last event that was published.
    pub fn head(&self) -> Head {
        self.progress.lock().head
    }

    /// The ledger. It may be ahead of what is published.
    pub fn reader(&self) -> &dyn LedgerReader {
        &*self.reader
    }

    /// How many batches were published since this writer started.
    pub fn published_batch_count(&self) -> u64 {
        self.progress.lock().batches
    }

    /// The last event that was pruned; 0 as long as none was.
    pub fn pruned_through(&self) -> Seq {
        self.reader.pruned_through()
    }

    /// The epoch of the ledger.
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

    /// Subscribes to all events after `after`.
    pub fn subscribe(self: &Arc<Self>, after: Seq) -> Subscription {
        Subscription { feed: self.clone(), after, batches: None, unpublished: None }
    }

    pub(crate) fn publish(&self, durable: &DurableBatch) {
        let mut progress = self.progress.lock();
        progress.head = Head { seq: durable.batch.last(), hash: durable.hash };
        progress.batches += 1;
        drop(progress);
        self.published.notify_all();
    }

    /// Calls `callback` once the writer has ended, however it ended; at once if it has.
    pub fn on_end(&self, callback: impl FnOnce() + Send + 'static) {
        let mut progress = self.progress.lock();
        if progress.has_ended {
            drop(progress);
            return callback();
        }
        progress.at_end.push(Box::new(callback));
    }

    pub(crate) fn end(&self) {
        let mut progress = self.progress.lock();
        progress.has_ended = true;
        let callbacks = std::mem::take(&mut progress.at_end);
        drop(progress);
        // An observer may own the feed.
        *self.observers.lock() = Observers::default();
        self.published.notify_all();
        callbacks.into_iter().for_each(|callback| callback());
    }
}

impl Subscription {
    /// The next batch. Waits for it at most `timeout`.
    pub fn next(&mut self, timeout: Duration) -> FeedItem {
        let mut progress = self.feed.progress.lock();
        let is_idle = |progress: &mut FeedProgress| progress.head.seq <= self.after && !progress.has_ended;
        self.feed.published.wait_while_for(&mut progress, is_idle, timeout);
        let (head, has_ended) = (progress.head.seq, progress.has_ended);
        drop(progress);
        if head <= self.after {
            return if has_ended { FeedItem::Ended } else { FeedItem::Nothing };
        }
        match self.unpublished.take().map(Ok).or_else(|| self.read_batch()) {
            Some(Ok(batch)) if batch.last() > head => {
                self.unpublished = Some(batch);
                FeedItem::Nothing
            }
            Some(Ok(batch)) => {
                self.after = batch.last();
                FeedItem::Batch(batch)
            }
            Some(Err(ReadError::OutOfRange { first, .. })) => FeedItem::Compacted { first },
            Some(Err(error)) => FeedItem::Failed(error),
            None => FeedItem::Nothing,
        }
    }

    fn read_batch(&mut self) -> Option<Result<Batch, ReadError>> {
        // A list of batches ends where the ledger ended when it was made.
        let batch = self.batches.as_mut().and_then(Iterator::next);
        batch.or_else(|| self.batches.insert(self.feed.reader.read(self.after)).next())
    }
}
