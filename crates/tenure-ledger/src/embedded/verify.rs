//! Reads a whole ledger and changes nothing: what `tenure verify` says.

use std::path::Path;

use super::identity::Identity;
use super::load::load;
use super::log::OpenError;
use crate::ledger::Head;

/// What a ledger that can be read holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Which ledger.
    pub identity: Identity,
    /// Where it ends.
    pub head: Head,
    /// How many files.
    pub segments: usize,
    /// How many batches.
    pub batches: u64,
    /// The last write was cut short; nothing of it was acknowledged.
    pub has_torn_tail: bool,
}

/// Checks every bit of the ledger in `directory`. It may be in use: then the last write may look cut short.
pub fn verify(directory: &Path) -> Result<Report, OpenError> {
    let identity = Identity::read(directory)?.ok_or_else(|| OpenError::NoIdentity(directory.to_owned()))?;
    let loaded = load(directory, &identity, Head::default())?;
    Ok(Report {
        identity,
        head: loaded.head,
        segments: loaded.segments.len(),
        batches: loaded.batches,
        has_torn_tail: loaded.last.is_some_and(|last| last.is_torn),
    })
}
