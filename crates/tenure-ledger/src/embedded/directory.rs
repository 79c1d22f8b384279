//! Files, made so that a power cut leaves them whole or absent.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::segment::Segment;

/// Makes a directory that only its owner can enter.
pub(crate) fn make(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Takes the writer's lock. `None`: somebody else has it.
pub(crate) fn lock(directory: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(directory.join("lock"))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Writes a small file so that it is there whole, or as it was before.
pub(crate) fn replace(directory: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let beside = directory.join(format!("{name}.new"));
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&beside)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&beside, directory.join(name))?;
    sync(directory)
}

/// Removes a file, if it is there, for good.
pub(crate) fn remove(directory: &Path, name: &str) -> io::Result<()> {
    match fs::remove_file(directory.join(name)) {
        Ok(()) => sync(directory),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes what happened to the names in a directory durable.
pub(crate) fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Makes a file of `size` zeros. Written, not only reserved: so a later sync has nothing to note but the data.
pub(crate) fn blank_file(path: &Path, size: u64) -> io::Result<()> {
    let file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
    let zeros = vec![0; 1 << 16];
    let mut written = 0;
    while written < size {
        let part = usize::try_from((size - written).min(zeros.len() as u64)).unwrap_or(zeros.len());
        file.write_all_at(&zeros[..part], written)?;
        written += part as u64;
    }
    file.sync_all()
}

/// The segments in a directory, in order.
pub(crate) fn segments(directory: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = name.strip_suffix(".segment").and_then(|digits| digits.parse::<u64>().ok());
        if let Some(number) = number.filter(|number| Segment::file_name(*number) == name) {
            found.push((number, path));
        }
    }
    found.sort_unstable();
    Ok(found)
}
