//! Verifies a ledger.

use std::path::Path;

use super::directory_disk::DirectoryDisk;
use super::disk::Disk;
use super::identity::{LedgerIdentity, this_machine};
use super::read_only::ReadOnlyLedger;
use crate::error::OpenError;
use crate::ledger::{Head, Seq};

/// What a ledger that can be read holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerificationReport {
    /// Which ledger.
    pub identity: LedgerIdentity,
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
pub fn verify(directory: &Path) -> Result<VerificationReport, OpenError> {
    ReadOnlyLedger::open(directory)?.batches().finish()
}

/// The ledger in `directory` was moved to this machine, and nobody uses it where it was. Says whether it belonged to
/// another one before.
pub fn accept_move(directory: &Path) -> Result<bool, OpenError> {
    let disk = DirectoryDisk::at(directory);
    let missing = || OpenError::NoLedger(directory.to_owned());
    // Read first: where there is no ledger, not even a lock is left behind.
    LedgerIdentity::read(&disk)?.ok_or_else(missing)?;
    let _lock = disk.lock()?.ok_or_else(|| OpenError::Locked(directory.to_owned()))?;
    let identity = LedgerIdentity::read(&disk)?.ok_or_else(missing)?;
    if identity.has_no_machine() {
        return Err(OpenError::Copy(directory.to_owned()));
    }
    let is_elsewhere = identity.machine != this_machine();
    if is_elsewhere {
        LedgerIdentity { machine: this_machine(), ..identity }.write(&disk)?;
    }
    Ok(is_elsewhere)
}
