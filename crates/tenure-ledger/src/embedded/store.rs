//! A directory in which a ledger is kept, and what can be done with it as a whole.

use std::path::PathBuf;

use super::directory_disk::DirectoryDisk;
use super::disk::Disk;
use super::identity::{LedgerIdentity, this_machine};
use super::ledger::LedgerOptions;
use super::read_only::read_identity;
use super::recovery::EmbeddedRecovery;
use crate::error::OpenError;
use crate::ledger::{LedgerId, LedgerRecovery, LedgerStore};

/// A directory with one ledger, or for one.
#[derive(Debug, Clone)]
pub struct EmbeddedStore {
    /// Where the files are. Opening the ledger for writing creates it.
    pub directory: PathBuf,
    /// How the ledger is kept.
    pub options: LedgerOptions,
}

impl LedgerStore for EmbeddedStore {
    fn open(&self) -> Result<Box<dyn LedgerRecovery>, OpenError> {
        Ok(Box::new(EmbeddedRecovery::begin(&self.directory, self.options.clone())?))
    }
}

impl EmbeddedStore {
    /// The ledger in `directory`, with the default options.
    pub fn new(directory: impl Into<PathBuf>) -> EmbeddedStore {
        EmbeddedStore { directory: directory.into(), options: LedgerOptions::default() }
    }

    /// The id of the ledger, as its own file names it. There need be nothing else of the ledger.
    pub fn ledger_id(&self) -> Result<LedgerId, OpenError> {
        Ok(read_identity(&self.disk())?.ledger)
    }

    /// Begins to open a copy that is to take the place of its original, in a new epoch, whatever the witness says.
    /// Until the ledger is closed, it can be opened in no other way.
    pub fn begin_restore(&self) -> Result<Box<dyn LedgerRecovery>, OpenError> {
        Ok(Box::new(EmbeddedRecovery::begin_restore(&self.directory, self.options.clone())?))
    }

    /// The directory was moved to this machine, and the ledger is used nowhere else. Returns whether it belonged to
    /// another machine before.
    pub fn accept_move(&self) -> Result<bool, OpenError> {
        let disk = self.disk();
        let missing = || OpenError::NoLedger(self.directory.clone());
        // Read first: where there is no ledger, not even a lock is left behind.
        LedgerIdentity::read(&disk)?.ok_or_else(missing)?;
        let _lock = disk.lock()?.ok_or_else(|| OpenError::Locked(self.directory.clone()))?;
        let identity = LedgerIdentity::read(&disk)?.ok_or_else(missing)?;
        if identity.has_no_machine() {
            return Err(OpenError::Copy(self.directory.clone()));
        }
        let is_elsewhere = identity.machine != this_machine();
        if is_elsewhere {
            LedgerIdentity { machine: this_machine(), ..identity }.write(&disk)?;
        }
        Ok(is_elsewhere)
    }

    fn disk(&self) -> DirectoryDisk {
        DirectoryDisk::at(&self.directory)
    }
}
