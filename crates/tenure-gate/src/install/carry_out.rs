//! Does what was planned.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown, symlink};
use std::path::{Path, PathBuf};

use super::person::{is_there, leads_to, read};
use super::{Change, InstallError, Mode, Plan};

/// Does all that is planned, or nothing if a file is not as it was when the plan was made.
///
/// If the disk fails half way, what was done stays and the error names it. Uninstalling takes it out: what is needed for that
/// was written down first.
pub fn carry_out(plan: &Plan) -> Result<(), InstallError> {
    let all = || plan.first.iter().chain(&plan.changes).chain(&plan.last);
    let mut moved: Vec<&Path> = Vec::new();
    for change in all() {
        check(change, &moved)?;
        if let Change::Rename { from: path, .. } | Change::Remove { path, .. } = change {
            moved.push(path);
        }
    }
    plan.first.iter().try_for_each(perform)?;
    let mut done: Vec<String> = Vec::new();
    for change in &plan.changes {
        perform(change).map_err(|error| error.after(&done))?;
        done.push(change.to_string());
    }
    plan.last.iter().try_for_each(perform).map_err(|error| error.after(&done))
}

/// Whether everything is as it was. Of a name that an earlier change frees, nothing can be said yet.
fn check(change: &Change, moved: &[&Path]) -> Result<(), InstallError> {
    let (path, expected) = match change {
        Change::Write { path, before, .. } => (path, before.as_ref()),
        Change::Remove { path, before } => (path, Some(before)),
        Change::Rename { from, to } => {
            if !is_there(from) || (is_there(to) && !moved.contains(&to.as_path())) {
                return Err(InstallError::Changed { path: to.clone() });
            }
            return Ok(());
        }
        Change::Link { path, before, .. } => return check_link(path, before.as_deref()),
        Change::MakeFolder { .. } | Change::RemoveFolder { .. } => return Ok(()),
    };
    if moved.contains(&path.as_path()) || read(path)?.as_ref() == expected {
        return Ok(());
    }
    Err(InstallError::Changed { path: path.clone() })
}

/// Whether the link leads where it did; or nothing has its name, if there was none.
fn check_link(path: &Path, expected: Option<&Path>) -> Result<(), InstallError> {
    let is_as_it_was = leads_to(path).as_deref() == expected && (expected.is_some() || !is_there(path));
    if is_as_it_was { Ok(()) } else { Err(InstallError::Changed { path: path.to_owned() }) }
}

fn perform(change: &Change) -> Result<(), InstallError> {
    match change {
        Change::MakeFolder { path } => match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            made => made.map_err(InstallError::disk(path)),
        },
        Change::Write { path, content, mode, .. } => {
            write(path, content, *mode).map_err(InstallError::disk(path))
        }
        Change::Rename { from, to } => {
            if is_there(to) {
                return Err(InstallError::Changed { path: to.clone() });
            }
            fs::rename(from, to).and_then(|()| sync_folder(to)).map_err(InstallError::disk(from))
        }
        Change::Link { path, target, .. } => link(path, target).map_err(InstallError::disk(path)),
        Change::Remove { path, .. } => {
            fs::remove_file(path).and_then(|()| sync_folder(path)).map_err(InstallError::disk(path))
        }
        Change::RemoveFolder { path } => match fs::remove_dir(path) {
            Err(error)
                if matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound) =>
            {
                Ok(())
            }
            removed => removed.map_err(InstallError::disk(path)),
        },
    }
}

/// Into a file beside it, which then takes its name. Mode and owner of a file that is there stay.
fn write(path: &Path, content: &[u8], mode: Mode) -> io::Result<()> {
    let beside = beside(path);
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
    let beside = beside(path);
    symlink(target, &beside)?;
    fs::rename(&beside, path).inspect_err(|_| drop(fs::remove_file(&beside)))?;
    sync_folder(path)
}

fn write_beside(path: &Path, beside: &Path, content: &[u8], mode: Mode) -> io::Result<()> {
    let known = fs::metadata(path).ok();
    let mode = match mode {
        Mode::Plain => 0o666,
        Mode::Program => 0o777,
        Mode::Private => 0o600,
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

fn beside(path: &Path) -> PathBuf {
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
