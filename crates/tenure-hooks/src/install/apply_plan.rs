//! Does what was planned.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown, symlink};
use std::path::{Path, PathBuf};

use super::user_folders::{entry_exists, link_target, read_file};
use super::{FileMode, InstallError, InstallPlan, PlannedChange};

/// Does all that is planned, or nothing if a file is not as it was when the plan was made.
///
/// If the disk fails half way, what was done stays and the error names it. Uninstalling takes it out: what is needed for that
/// was written down first.
pub fn apply_plan(plan: &InstallPlan) -> Result<(), InstallError> {
    let all = || plan.record_changes.iter().chain(&plan.changes).chain(&plan.cleanup_changes);
    let mut moved: Vec<&Path> = Vec::new();
    for change in all() {
        check(change, &moved)?;
        if let PlannedChange::Rename { from: path, .. } | PlannedChange::Remove { path, .. } = change {
            moved.push(path);
        }
    }
    plan.record_changes.iter().try_for_each(perform)?;
    let mut done: Vec<String> = Vec::new();
    for change in &plan.changes {
        perform(change).map_err(|error| error.with_completed_steps(&done))?;
        done.push(change.to_string());
    }
    plan.cleanup_changes.iter().try_for_each(perform).map_err(|error| error.with_completed_steps(&done))
}

/// Whether everything is as it was. Of a name that an earlier change frees, nothing can be said yet.
fn check(change: &PlannedChange, moved: &[&Path]) -> Result<(), InstallError> {
    let (path, expected) = match change {
        PlannedChange::Write { path, before, .. } => (path, before.as_ref()),
        PlannedChange::Remove { path, before } => (path, Some(before)),
        PlannedChange::Rename { from, to } => {
            if !entry_exists(from) || (entry_exists(to) && !moved.contains(&to.as_path())) {
                return Err(InstallError::Changed { path: to.clone() });
            }
            return Ok(());
        }
        PlannedChange::Link { path, before, .. } => return check_link(path, before.as_deref()),
        PlannedChange::MakeFolder { .. } | PlannedChange::RemoveFolder { .. } => return Ok(()),
    };
    if moved.contains(&path.as_path()) || read_file(path)?.as_ref() == expected {
        return Ok(());
    }
    Err(InstallError::Changed { path: path.clone() })
}

/// Whether the link leads where it did; or nothing has its name, if there was none.
fn check_link(path: &Path, expected: Option<&Path>) -> Result<(), InstallError> {
    let is_as_it_was =
        link_target(path).as_deref() == expected && (expected.is_some() || !entry_exists(path));
    if is_as_it_was { Ok(()) } else { Err(InstallError::Changed { path: path.to_owned() }) }
}

fn perform(change: &PlannedChange) -> Result<(), InstallError> {
    match change {
        PlannedChange::MakeFolder { path } => match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            made => made.map_err(InstallError::io_error(path)),
        },
        PlannedChange::Write { path, content, mode, .. } => {
            write(path, content, *mode).map_err(InstallError::io_error(path))
        }
        PlannedChange::Rename { from, to } => {
            if entry_exists(to) {
                return Err(InstallError::Changed { path: to.clone() });
            }
            fs::rename(from, to).and_then(|()| sync_folder(to)).map_err(InstallError::io_error(from))
        }
        PlannedChange::Link { path, target, .. } => link(path, target).map_err(InstallError::io_error(path)),
        PlannedChange::Remove { path, .. } => {
            fs::remove_file(path).and_then(|()| sync_folder(path)).map_err(InstallError::io_error(path))
        }
        PlannedChange::RemoveFolder { path } => match fs::remove_dir(path) {
            Err(error)
                if matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound) =>
            {
                Ok(())
            }
            removed => removed.map_err(InstallError::io_error(path)),
        },
    }
}

/// Into a file beside it, which then takes its name. Mode and owner of a file that is there stay.
fn write(path: &Path, content: &[u8], mode: FileMode) -> io::Result<()> {
    let beside = temporary_sibling(path);
    let written = write_beside(path, &beside, content, mode).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // Best effort: the error that matters is the first one.
        let _ = fs::remove_file(&beside);
    }
    written?;
    sync_folder(path)
}

/// Made beside it, too: whoever takes the name finds one link or the other.
fn link(path: &Path, target: &Path) -> io::Result<()> {
    let beside = temporary_sibling(path);
    symlink(target, &beside)?;
    fs::rename(&beside, path).inspect_err(|_| drop(fs::remove_file(&beside)))?;
    sync_folder(path)
}

fn write_beside(path: &Path, beside: &Path, content: &[u8], mode: FileMode) -> io::Result<()> {
    let known = fs::metadata(path).ok();
    let mode = match mode {
        FileMode::Plain => 0o666,
        FileMode::Program => 0o777,
        FileMode::Private => 0o600,
    };
    // Never more than there was, not even for a moment.
    let mode = known.as_ref().map_or(mode, |known| known.mode() & 0o7777 & mode);
    let mut file = File::options().write(true).create_new(true).mode(mode).open(beside)?;
    if let Some(known) = known {
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (known.uid(), known.gid()) {
            // Only root may; for everybody else the file is their own anyway.
            let _ = fchown(&file, Some(known.uid()), Some(known.gid()));
        }
        let mut permissions = known.permissions();
        permissions.set_mode(known.mode() & 0o7777);
        file.set_permissions(permissions)?;
    }
    file.write_all(content)?;
    file.sync_all()
}

fn temporary_sibling(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.tenure-{}", std::process::id()))
}

/// A name is durable when its folder is.
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}
