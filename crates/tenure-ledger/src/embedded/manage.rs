//! Moves a ledger that no process has open to this machine.

use std::path::Path;

use super::directory::Directory;
use super::disk::Disk;
use super::identity::{Identity, this_machine};
use super::open_error::OpenError;

/// The ledger in `directory` was moved to this machine, and nobody uses it where it was. Says whether it belonged to
/// another one before.
pub fn moved(directory: &Path) -> Result<bool, OpenError> {
    let disk = Directory::at(directory);
    let missing = || OpenError::NoLedger(directory.to_owned());
    // Read first: where there is no ledger, not even a lock is left behind.
    Identity::read(&disk)?.ok_or_else(missing)?;
    let _lock = disk.lock()?.ok_or_else(|| OpenError::Locked(directory.to_owned()))?;
    let identity = Identity::read(&disk)?.ok_or_else(missing)?;
    if identity.is_nowhere() {
        return Err(OpenError::Copy(directory.to_owned()));
    }
    let is_elsewhere = identity.machine != this_machine();
    if is_elsewhere {
        Identity { machine: this_machine(), ..identity }.write(&disk)?;
    }
    Ok(is_elsewhere)
}
