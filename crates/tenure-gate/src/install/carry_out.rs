//! Does what was planned.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use super::files::{is_there, read};
use super::{Change, InstallError, Plan};

/// Does all that is planned, or nothing if a file is not as it was when the plan was made.
///
/// If the disk fails half way, what was done stays, and uninstalling takes it out: what is needed for that was written
/// down first.
pub fn carry_out(plan: &Plan) -> Result<(), InstallError> {
    let all = || plan.first.iter().chain(&plan.changes).chain(&plan.last);
    let mut moved: Vec<&Path> = Vec::new();
    for change in all() {
        check(change, &moved)?;
        if let Change::Rename { from: path, .. } | Change::Remove { path, .. } = change {
            moved.push(path);
        }
    }
    all().try_for_each(perform)
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
        Change::MakeFolder { .. } | Change::RemoveFolder { .. } => return Ok(()),
    };
    if moved.contains(&path.as_path()) || read(path)?.as_ref() == expected {
        return Ok(());
    }
    Err(InstallError::Changed { path: path.clone() })
}

fn perform(change: &Change) -> Result<(), InstallError> {
    match change {
        Change::MakeFolder { path } => match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            made => made.map_err(InstallError::disk(path)),
        },
        Change::Write { path, content, is_program, .. } => {
            write(path, content, *is_program).map_err(InstallError::disk(path))
        }
        Change::Rename { from, to } => {
            if is_there(to) {
                return Err(InstallError::Changed { path: to.clone() });
            }
            fs::rename(from, to).and_then(|()| sync_folder(to)).map_err(InstallError::disk(from))
        }
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
fn write(path: &Path, content: &[u8], is_program: bool) -> io::Result<()> {
    let beside = beside(path);
    let written = write_beside(path, &beside, content, is_program).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // Best effort: the error that matters is the first one.
        let _ = fs::remove_file(&beside);
    }
    written?;
    sync_folder(path)
}

fn write_beside(path: &Path, beside: &Path, content: &[u8], is_program: bool) -> io::Result<()> {
    let known = fs::metadata(path).ok();
    // The rest is up to the umask.
    let mode = if is_program { 0o777 } else { 0o666 };
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
