//! What every ledger does.

use std::{fmt, io};

use tenure_core::kernel::{Fence, LedgerTag};
use tenure_core::ledger::EventRecord;
use thiserror::Error;

use crate::batch::{Batch, BatchBytes, ChainHash};
use crate::checkpoint::Checkpoint;

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

/// Why a batch was not appended. The variants differ by what the writer does next.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AppendError {
    /// Another writer appended first. Step down and replay; never retry blindly.
    #[error("the ledger ends at event {}, not at {}: another writer was here", found.0, expected.0)]
    Overtaken {
        /// Where the writer thought that it ends.
        expected: Seq,
        /// Where it ends.
        found: Seq,
    },
    /// Nothing was written.
    #[error("the ledger cannot be written; nothing was")]
    Unavailable(#[source] io::Error),
    /// No room is left. Nothing was written; make room and try again.
    #[error("no space is left for the ledger; nothing was written")]
    NoSpace,
    /// The batch is larger than a segment. Nothing was written; the request can never succeed.
    #[error("a batch of {bytes} bytes is over the limit of {max_bytes}")]
    TooLarge {
        /// How large it is.
        bytes: usize,
        /// The limit.
        max_bytes: usize,
    },
    /// Perhaps it was written. Nothing more may be written by this process: what the disk holds is unknown.
    #[error("the write of event {} has an unknown outcome", at.0)]
    OutcomeUnknown {
        /// The first event of the batch.
        at: Seq,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Why a batch cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be read.
    #[error("the ledger cannot be read")]
    Io(#[from] io::Error),
    /// What was asked for is no longer, or not yet, there.
    #[error("the ledger holds the events after {}, not those after {}", first.0, requested.0)]
    OutOfRange {
        /// After which event was asked.
        requested: Seq,
        /// After which event it begins.
        first: Seq,
    },
    /// The bytes are not what was written. Stop and call a human: `tenure verify` says more.
    #[error(transparent)]
    Damaged(#[from] crate::embedded::Damage),
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
