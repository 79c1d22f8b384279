//! What every ledger does.

use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use tenure_core::kernel::{Fence, LedgerTag, Tick, TickDuration};
use tenure_core::ledger::EventRecord;

use crate::batch::{Batch, BatchBytes, ChainHash};
use crate::checkpoint::Checkpoint;
use crate::error::{AppendError, Damage, OpenError, ReadError};

/// The number of an event. The first one is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seq(pub u64);

/// Where a ledger ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    /// The number of the last event; 0 when there is none.
    pub seq: Seq,
    /// The hash of the last batch; zeros when there is none.
    pub hash: ChainHash,
}

impl Head {
    /// Sees that a batch comes right behind this.
    pub fn check_is_before(&self, batch: &BatchBytes) -> Result<(), AppendError> {
        let expected = Seq(batch.first().0.saturating_sub(1));
        let found = self.seq;
        if expected == found { Ok(()) } else { Err(AppendError::Overtaken { expected, found }) }
    }
}

/// What a ledger still has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpaceLevel {
    /// Not even for that: nothing is written until somebody makes room.
    Exhausted,
    /// Leases may end.
    EndsOnly,
    /// Leases that live may also be renewed.
    EndsAndRenewals,
    /// For everything.
    Plenty,
}

/// How long history is kept, whichever is reached first. What lives is never pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// As ticks count it, so that a wall clock that was set wrong prunes nothing.
    pub age: TickDuration,
    /// On the disk.
    pub bytes: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { age: TickDuration::from_secs(30 * 24 * 60 * 60), bytes: 4 << 30 }
    }
}

/// Where one ledger is kept.
pub trait LedgerStore: fmt::Debug + Send + Sync {
    /// Begins to open the ledger for writing. The first call creates it.
    fn open(&self) -> Result<Box<dyn LedgerRecovery>, OpenError>;
}

/// A ledger that is being opened: returns everything that it holds before anything is appended.
pub trait LedgerRecovery {
    /// Which ledger this is.
    fn ledger(&self) -> LedgerId;

    /// Damaged checkpoints. The ledger does without them; an operator should look at the disk.
    fn warnings(&self) -> &[Damage] {
        &[]
    }

    /// The checkpoint from which to go on, if there is one. A second call returns `None`.
    fn take_checkpoint(&mut self) -> Option<Checkpoint>;

    /// The next batch after the checkpoint; `None` after the last.
    fn next_batch(&mut self) -> Result<Option<Batch>, OpenError>;

    /// Opens the ledger for writing. Batches that were not read are checked all the same.
    fn finish(self: Box<Self>) -> Result<Box<dyn Ledger>, OpenError>;
}

/// The writer of an ordered list of events. There is one at a time.
pub trait Ledger: Send {
    /// Where the ledger ends, as far as this writer knows.
    fn head(&self) -> Head;

    /// Appends a batch, durably, if the ledger still ends right before it.
    ///
    /// When this returns, the batch is there for good, and readers see it. After any error the writer drops its state
    /// and replays: what it decided may not stand.
    fn append_batch(&mut self, batch: &BatchBytes) -> Result<Head, AppendError>;

    /// Appends `records` as one batch, durably, if the ledger still ends at `expected`.
    fn append(
        &mut self,
        expected: Seq,
        records: &[EventRecord],
        signature: &[u8],
    ) -> Result<Head, AppendError> {
        let first = Seq(expected.0.saturating_add(1));
        self.append_batch(&BatchBytes::new(first, records).with_signature(signature))
    }

    /// What there is space for before the next append, while there are `live` leases and waiters. All of them must be
    /// able to end on a full disk, so a ledger that sets space aside for that grows it with their number, and has
    /// [`SpaceLevel::Plenty`] only once it has.
    fn space_level(&self, _live: usize) -> SpaceLevel {
        SpaceLevel::Plenty
    }

    /// How large a batch should be at most, in bytes. A larger one may not fit.
    fn max_batch_bytes(&self) -> u64 {
        u64::MAX
    }

    /// Reads the ledger beside this writer, and after it has ended.
    fn reader(&self) -> Arc<dyn LedgerReader>;

    /// Maintains the ledger beside this writer.
    fn maintenance(&self) -> Arc<dyn LedgerMaintenance>;

    /// Ends the writer. Everything is durable without this; the next start may take longer.
    fn close(self: Box<Self>) -> io::Result<()>;
}

/// What [`LedgerReader::read`] returns.
pub type Batches = Box<dyn Iterator<Item = Result<Batch, ReadError>> + Send>;

/// Reads what is durable, and nothing else, beside the writer and without waiting for it.
///
/// No ledger announces its batches: the writer knows when one is durable, and the registrar's feed tells subscribers
/// from there. To follow a ledger, read again after the last event that was read.
pub trait LedgerReader: Send + Sync {
    /// Which ledger this is.
    fn ledger(&self) -> LedgerId;

    /// In which epoch it is: the number grows each time the ledger is restored from a copy.
    fn epoch(&self) -> u64;

    /// Where the ledger ends, as far as it is durable.
    fn head(&self) -> Head;

    /// After which event the ledger begins: 0 as long as nothing was pruned.
    fn pruned_through(&self) -> Seq;

    /// Every batch that holds an event after `after`, in order, up to what is durable at this moment. It stops at the
    /// first that cannot be read: [`ReadError::OutOfRange`] where that was pruned.
    fn read(&self, after: Seq) -> Batches;

    /// The newest checkpoint without events after `at`: what all events up to it add up to.
    fn checkpoint_before(&self, at: Seq) -> Result<Option<Checkpoint>, ReadError>;

    /// The newest checkpoint.
    fn newest_checkpoint(&self) -> Result<Option<Checkpoint>, ReadError> {
        self.checkpoint_before(Seq(u64::MAX))
    }
}

/// Looks after a ledger beside its writer. Nothing durable depends on it: without it an append or a start may take
/// longer, and nothing is pruned.
pub trait LedgerMaintenance: Send + Sync {
    /// Waits until there may be work, at most this long.
    fn wait_for_work(&self, timeout: Duration);

    /// Ends a wait at once.
    fn wake(&self);

    /// Prepares what the next appends need. Without space this fails, and the next try may find some.
    fn prepare_space(&self) -> io::Result<()>;

    /// Up to where the newest checkpoint goes; the beginning if there is none.
    fn newest_checkpoint_head(&self) -> Head;

    /// Stores the bytes of [`Checkpoint::write`], and drops checkpoints that are too old to be needed.
    fn store_checkpoint(&self, head: Head, bytes: &[u8]) -> io::Result<()>;

    /// Whether the ledger holds more, or older, events than it should, whatever checkpoints there are. `now` is the
    /// newest tick.
    fn is_retention_exceeded(&self, retention: Retention, now: Tick) -> Result<bool, ReadError>;

    /// Removes events from the beginning while the retention is exceeded, but only such that a start does not need:
    /// those before the checkpoints.
    fn prune(&self, retention: Retention, now: Tick) -> Result<(), ReadError>;
}

/// The id of a ledger: 16 random bytes, made when it is created and never changed.
///
/// It is part of whatever is signed, so that nothing signed for one ledger counts in another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LedgerId(pub [u8; 16]);

impl LedgerId {
    /// What lease ids begin with.
    pub fn tag(self) -> LedgerTag {
        let [a, b, c, d, ..] = self.0;
        LedgerTag(u32::from_be_bytes([a, b, c, d]))
    }

    /// The id of the lease with this number in this ledger.
    pub fn lease_id(self, fence: Fence) -> String {
        self.tag().lease_id(fence)
    }

    /// Reads what [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<LedgerId> {
        let mut id = [0; 16];
        hex::decode_to_slice(text, &mut id).is_ok().then_some(LedgerId(id))
    }
}

impl fmt::Display for LedgerId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for LedgerId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "LedgerId({self})")
    }
}
