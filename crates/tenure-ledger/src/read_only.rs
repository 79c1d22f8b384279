//! A ledger that is only read: without a lock, without a repair, beside a writer if need be.

use std::path::{Path, PathBuf};

use crate::batch::Batch;
use crate::checkpoint::Checkpoint;
use crate::embedded::EmbeddedReadOnlyLedger;
use crate::error::OpenError;
use crate::ledger::{Head, LedgerId, Seq};

/// Opens the ledger in a data directory, and checks every checkpoint whole, with its signature.
pub fn open_read_only(directory: &Path) -> Result<Box<dyn ReadOnlyLedger>, OpenError> {
    // The only kind that is kept in a directory.
    Ok(Box::new(EmbeddedReadOnlyLedger::open(directory)?))
}

/// Checks every bit of the ledger in a data directory. It may be in use: then the last write may look cut short.
pub fn verify(directory: &Path) -> Result<VerificationReport, OpenError> {
    open_read_only(directory)?.batches().finish()
}

/// A ledger as a program reads it that does not write it.
pub trait ReadOnlyLedger {
    /// The same beside a writer: what looks damaged at the end may be half written, and is read again a few times
    /// before it counts.
    #[must_use]
    fn tolerate_active_writer(self: Box<Self>) -> Box<dyn ReadOnlyLedger>;

    /// Which ledger this is.
    fn ledger(&self) -> LedgerId;

    /// Where to begin to add up: nothing as long as the first event is there, else the oldest checkpoint.
    fn oldest_checkpoint(&self) -> Option<&Checkpoint>;

    /// Every batch that remains, in order, with everything but the signatures checked on the way.
    fn batches(&self) -> Box<dyn BatchReader + '_>;
}

/// The batches of a ledger, each with the place where it stands.
pub trait BatchReader {
    /// The next batch; nothing after the last.
    fn next_batch(&mut self) -> Result<Option<LocatedBatch>, OpenError>;

    /// How many segments were read, and how many there are.
    fn progress(&self) -> (usize, usize);

    /// After which event the ledger begins; nothing before a batch was read. 0 as long as nothing was pruned.
    fn pruned_through(&self) -> Option<Seq>;

    /// Reads what was not read yet, and reports what there is.
    fn finish(self: Box<Self>) -> Result<VerificationReport, OpenError>;
}

/// A batch, and where it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatedBatch {
    /// The batch.
    pub batch: Batch,
    /// In which file.
    pub file: PathBuf,
    /// At which byte of it.
    pub offset: u64,
}

/// What a ledger that can be read holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerificationReport {
    /// Which ledger.
    pub ledger: LedgerId,
    /// In which epoch it is.
    pub epoch: u64,
    /// In which form it is written.
    pub form: u32,
    /// After which event it begins: 0 as long as nothing was pruned.
    pub after: Seq,
    /// Where it ends.
    pub head: Head,
    /// How many files.
    pub segments: usize,
    /// How many checkpoints.
    pub checkpoints: usize,
    /// How many batches.
    pub batches: u64,
    /// The last write was cut short; nothing of it was acknowledged.
    pub has_torn_tail: bool,
}
