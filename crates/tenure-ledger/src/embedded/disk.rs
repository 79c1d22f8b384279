//! What a ledger needs of a disk: so that tests and the simulator can give it one that crashes, loses what was not
//! synced, fills up, stalls and lies.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// A flat directory of files.
///
/// Nothing is durable until it is synced: bytes by [`DiskFile::sync`], names (created, renamed, removed) by
/// [`Disk::sync`].
pub trait Disk: fmt::Debug + Send + Sync {
    /// Takes the writer's lock until it is dropped. `None`: somebody else has it.
    fn lock(&self) -> io::Result<Option<Box<dyn Send>>>;

    /// The names of the files, in no order that means anything.
    fn list(&self) -> io::Result<Vec<String>>;

    /// How long a file is; nothing if there is none.
    fn length(&self, name: &str) -> io::Result<Option<u64>>;

    /// At most `length` bytes of a file from `offset` on; fewer where it ends before. Nothing if there is none.
    fn read_at(&self, name: &str, offset: u64, length: usize) -> io::Result<Option<Vec<u8>>>;

    /// Makes a file that is empty, whether there was one or not, and opens it for writing.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file that is there for writing.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Gives a file another name, in place of whatever had that name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file; no error if there is none.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes what happened to names durable.
    fn sync(&self) -> io::Result<()>;

    /// Whether several threads may read at once. One that counts its operations wants them in order.
    fn supports_concurrent_reads(&self) -> bool {
        false
    }

    /// What to call a file in a message for people.
    fn path(&self, name: &str) -> PathBuf;
}

/// A file that is open for writing.
pub trait DiskFile: fmt::Debug + Send {
    /// Writes all of `bytes` at `offset`.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes everything that was written durable. After an error nobody knows what is.
    fn sync(&self) -> io::Result<()>;
}

impl dyn Disk + '_ {
    /// All of a file; nothing if there is none.
    pub(crate) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let Some(length) = self.length(name)? else { return Ok(None) };
        let length = usize::try_from(length).map_err(io::Error::other)?;
        self.read_at(name, 0, length)
    }

    /// Writes a small file so that it is there whole, or as it was before.
    pub(crate) fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let beside = format!("{name}.new");
        let file = self.create(&beside)?;
        file.write_at(content, 0)?;
        file.sync()?;
        drop(file);
        self.rename(&beside, name)?;
        self.sync()
    }

    /// Makes a file of `size` zeros. Written, not only reserved: so a later sync has nothing to note but the data.
    pub(crate) fn create_zeroed(&self, name: &str, size: u64) -> io::Result<()> {
        let file = self.create(name)?;
        let zeros = vec![0; 1 << 18];
        let mut written = 0;
        while written < size {
            let part = usize::try_from((size - written).min(zeros.len() as u64)).unwrap_or(zeros.len());
            file.write_at(&zeros[..part], written)?;
            written += part as u64;
        }
        file.sync()
    }
}

/// Whether the disk has no room, or its owner none on it.
pub(crate) fn is_storage_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
