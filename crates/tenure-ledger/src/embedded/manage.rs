//! What people do with a ledger that nobody has open: move it, raise its form.

use std::path::Path;

use super::directory::Directory;
use super::disk::Disk;
use super::identity::{Identity, NEWEST_FORM, this_machine};
use super::open_error::OpenError;

/// The ledger in `directory` was moved to this machine, and nobody uses it where it was. Says whether it belonged to
/// another one before.
pub fn moved(directory: &Path) -> Result<bool, OpenError> {
    change(directory, |identity| {
        let is_here = identity.machine == this_machine();
        (!is_here).then(|| Identity { machine: this_machine(), ..identity })
    })
}

/// From now on the ledger in `directory` is written in the newest form, which older versions cannot read. Says
/// whether it was in another one before.
pub fn raise(directory: &Path) -> Result<bool, OpenError> {
    change(directory, |identity| {
        let is_newest = identity.form == NEWEST_FORM;
        (!is_newest).then_some(Identity { form: NEWEST_FORM, ..identity })
    })
}

fn change(directory: &Path, how: impl FnOnce(Identity) -> Option<Identity>) -> Result<bool, OpenError> {
    let disk = Directory::at(directory);
    let missing = || OpenError::NoLedger(directory.to_owned());
    // Read first: where there is no ledger, not even a lock is left behind.
    Identity::read(&disk)?.ok_or_else(missing)?;
    let _lock = disk.lock()?.ok_or_else(|| OpenError::Locked(directory.to_owned()))?;
    let identity = Identity::read(&disk)?.ok_or_else(missing)?;
    if identity.is_nowhere() {
        return Err(OpenError::Copy(directory.to_owned()));
    }
    let Some(changed) = how(identity) else { return Ok(false) };
    changed.write(&disk)?;
    Ok(true)
}
