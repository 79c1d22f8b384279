//! A directory of the file system, as a ledger's disk.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::disk::{Disk, DiskFile};

/// A directory that only its owner can enter, with files that only the owner can read.
#[derive(Debug, Clone)]
pub struct DirectoryDisk(PathBuf);

impl DirectoryDisk {
    /// The directory at `path`, which is made if it is not there.
    pub fn open_or_create(path: &Path) -> io::Result<DirectoryDisk> {
        let is_new = !path.exists();
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        if is_new {
            // Its own name must be there after a power cut too, with those above it that were made.
            for above in path.canonicalize()?.ancestors().skip(1).take(3) {
                // Not every directory of the system may be opened.
                let _ = File::open(above).and_then(|above| above.sync_all());
            }
        }
        Ok(DirectoryDisk(path.to_owned()))
    }

    /// The directory at `path`, which is not touched.
    pub fn at(path: &Path) -> DirectoryDisk {
        DirectoryDisk(path.to_owned())
    }
}

impl Disk for DirectoryDisk {
    fn lock(&self) -> io::Result<Option<Box<dyn Send>>> {
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).mode(0o600).open(self.0.join("lock"))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            // A ledger has no folders: what others keep in one beside it is theirs. A name that is no text is none of ours.
            if !entry.file_type()?.is_dir() {
                names.extend(entry.file_name().into_string().ok());
            }
        }
        Ok(names)
    }

    fn length(&self, name: &str) -> io::Result<Option<u64>> {
        if_exists(fs::metadata(self.0.join(name)).map(|found| found.len()))
    }

    fn read_at(&self, name: &str, offset: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = if_exists(File::open(self.0.join(name)))? else { return Ok(None) };
        let mut bytes = vec![0; length];
        let mut filled = 0;
        while filled < length {
            match file.read_at(&mut bytes[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(Some(bytes))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(true).write(true).mode(0o600).open(self.0.join(name))?;
        Ok(Box::new(file))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OpenOptions::new().write(true).open(self.0.join(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.0.join(from), self.0.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        if_exists(fs::remove_file(self.0.join(name))).map(|_| ())
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }

    fn supports_concurrent_reads(&self) -> bool {
        true
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl DiskFile for File {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Makes a directory, and those above it, that only its owner can enter.
pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    DirectoryDisk::open_or_create(path).map(|_| ())
}

fn if_exists<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
