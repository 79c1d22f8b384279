//! Reads a whole ledger and changes nothing: half of what `tenure verify` does. The signatures of batches are the
//! registrar's to check, which knows what they add up to.

use std::path::Path;

use super::archive::Archive;
use super::identity::Identity;
use super::open_error::OpenError;
use crate::ledger::{Head, Seq};

/// What a ledger that can be read holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Which ledger.
    pub identity: Identity,
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

/// Checks every bit of the ledger in `directory`. It may be in use: then the last write may look cut short.
pub fn verify(directory: &Path) -> Result<Report, OpenError> {
    Archive::open(directory)?.batches().finish()
}
