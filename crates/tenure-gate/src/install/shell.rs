//! The shell that agents are given: this program under another name, by which it runs bash behind the gate.

use std::path::{Path, PathBuf};

use super::files::{is_there, leads_to};
use super::record::{is_shell_needed, missing_folders};
use super::{Change, InstallError, Place, Plan};

/// Agents take a shell by its name: it must contain "bash".
const NAME: &str = "tenure-bash";

/// Where it is: with what Tenure keeps for itself, so that it stays as long as anybody's settings name it.
pub fn path(place: &Place) -> PathBuf {
    place.backups.join("bin").join(NAME)
}

/// The same as text.
pub fn named(place: &Place) -> Result<String, InstallError> {
    let path = path(place);
    let text = path.to_str().filter(|text| path.is_absolute() && !text.chars().any(char::is_control));
    text.map(str::to_owned).ok_or_else(|| InstallError::State { path: place.backups.clone() })
}

/// Whether this names a shell of ours, here or somewhere else.
pub fn is_ours(shell: impl AsRef<Path>) -> bool {
    shell.as_ref().file_name().is_some_and(|name| name == NAME)
}

/// Adds what it takes to have it. It comes first: nobody shall be told of a shell that is not there yet.
pub fn add(plan: &mut Plan, place: &Place) -> Result<(), InstallError> {
    let path = path(place);
    let before = leads_to(&path);
    if before.as_ref() == Some(&place.program) {
        return Ok(());
    }
    if before.is_none() && is_there(&path) {
        return Err(InstallError::Taken { path });
    }
    plan.first.extend(missing_folders(&path));
    plan.changes.insert(0, Change::Link { path, target: place.program.clone(), before });
    Ok(())
}

/// Adds what it takes to be rid of it, unless another file than `settings` still names it.
pub fn remove(plan: &mut Plan, place: &Place, settings: &Path) {
    let path = path(place);
    let Some(target) = leads_to(&path).filter(|_| !is_shell_needed(place, settings)) else { return };
    let folder = path.parent().map(|folder| Change::RemoveFolder { path: folder.to_owned() });
    plan.changes.push(Change::Unlink { path, target });
    // Before the folder around it, which goes last of all.
    plan.last.splice(0..0, folder);
}
