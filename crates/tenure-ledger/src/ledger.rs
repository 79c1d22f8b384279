//! What every ledger does.

use std::fmt;

use tenure_core::kernel::{Fence, LedgerTag, TickDuration};
use tenure_core::ledger::EventRecord;

use crate::batch::{Batch, BatchBytes, ChainHash};
use crate::checkpoint::Checkpoint;
use crate::error::{AppendError, ReadError};

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

/// An ordered list of events with one writer.
pub trait Ledger {
    /// Where it ends, as far as this writer knows.
    fn head(&self) -> Head;

    /// Appends a batch, durably, if the ledger still ends right before it.
    ///
    /// When this returns, the batch is there for good. After any error the writer drops its state and replays:
    /// what it decided may not stand.
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

    /// What there is room for before the next append.
    fn space_level(&self) -> SpaceLevel {
        SpaceLevel::Plenty
    }

    /// The newest checkpoint: what all events up to it add up to.
    fn checkpoint(&self) -> Result<Option<Checkpoint>, ReadError> {
        Ok(None)
    }

    /// Every batch that holds an event after `after`, in order. It stops at the first that cannot be read.
    fn read(&self, after: Seq) -> Box<dyn Iterator<Item = Result<Batch, ReadError>> + '_>;
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
