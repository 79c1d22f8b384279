//! Fences: rejects requests of stale holders, in memory and across restarts.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::{fmt, io};

use rustix::fs::{FlockOperation, flock};
use tenure_core::kernel::Fence;
use thiserror::Error;

/// The resource's side of a lease. Keep it where the resource keeps its data, as durably as that.
///
/// ```
/// use tenure_client::FenceGate;
/// use tenure_core::kernel::Fence;
/// let mut gate = FenceGate::default();
/// assert!(gate.admit(Fence(7)).is_ok());
/// assert!(gate.admit(Fence(7)).is_ok(), "the same holder again");
/// assert!(gate.admit(Fence(9)).is_ok(), "the next holder");
/// assert!(gate.admit(Fence(7)).is_err(), "the first one was paused and is late");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FenceGate {
    highest: Fence,
}

/// Somebody newer has been here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaleFence {
    /// What was presented.
    pub presented: Fence,
    /// The highest that was seen before.
    pub highest: Fence,
}

impl FenceGate {
    /// A gate that has already seen `highest`.
    pub fn with_highest(highest: Fence) -> Self {
        Self { highest }
    }

    /// Lets a writer with this fence in, unless a newer one was here before.
    pub fn admit(&mut self, fence: Fence) -> Result<(), StaleFence> {
        if fence < self.highest {
            return Err(StaleFence { presented: fence, highest: self.highest });
        }
        self.highest = fence;
        Ok(())
    }
}

impl fmt::Display for StaleFence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { presented, highest } = self;
        write!(
            formatter,
            "fence {} is stale: {} was here since; the lease was lost, stop and acquire it again",
            presented.0, highest.0
        )
    }
}

impl std::error::Error for StaleFence {}

/// A [`FenceGate`] that outlives its process: the highest fence stands in a file, and is on the disk before anybody is
/// let in.
///
/// Several processes may use the same file, each with its own `FenceFile`: one of them looks at a time.
///
/// ```
/// use tenure_client::{Fence, FenceFile};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("database.fence");
/// let mut gate = FenceFile::open(&path)?;
/// gate.admit(Fence(9))?;
/// drop(gate);
/// assert!(FenceFile::open(&path)?.admit(Fence(7)).is_err(), "late, and from before the restart");
/// # Ok::<_, tenure_client::FenceFileError>(())
/// ```
#[derive(Debug)]
pub struct FenceFile {
    file: File,
}

/// Why nobody was let in.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FenceFileError {
    /// Somebody newer has been here.
    #[error(transparent)]
    Stale(#[from] StaleFence),
    /// The file cannot be read or written: whether somebody newer was here cannot be known, or would be forgotten.
    #[error("the file with the highest fence cannot be used: {0}; let nobody write until it can")]
    Disk(#[from] io::Error),
    /// The file holds something else.
    #[error("the file with the highest fence holds something else; look at what it is before you remove it")]
    Damaged,
}

/// The number in as many digits as the largest has, and the end of the line: always as long, so that a write replaces
/// the one before in place.
const FILE_LENGTH: usize = 21;

impl FenceFile {
    /// Opens the file, or makes it; then nobody was here yet.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        // Its name must be on the disk before what is in it counts.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(Self { file })
    }

    /// Lets a writer with this fence in, unless a newer one was here before. When it returns, the fence is on the disk.
    pub fn admit(&mut self, fence: Fence) -> Result<(), FenceFileError> {
        flock(&self.file, FlockOperation::LockExclusive).map_err(io::Error::from)?;
        let admitted = self.admit_locked(fence);
        // If it cannot be let go of, it is let go of with the file.
        let _ = flock(&self.file, FlockOperation::Unlock);
        admitted
    }

    fn admit_locked(&mut self, fence: Fence) -> Result<(), FenceFileError> {
        let highest = self.highest()?;
        let mut gate = highest.map_or_else(FenceGate::default, FenceGate::with_highest);
        gate.admit(fence)?;
        if highest != Some(fence) {
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(format!("{:020}\n", fence.0).as_bytes())?;
        }
        // Also when it stood there already: whoever wrote it may have ended before it was on the disk.
        self.file.sync_data()?;
        Ok(())
    }

    fn highest(&mut self) -> Result<Option<Fence>, FenceFileError> {
        let mut text = String::new();
        self.file.seek(SeekFrom::Start(0))?;
        let limit = u64::try_from(FILE_LENGTH).unwrap_or(u64::MAX) + 1;
        (&self.file).take(limit).read_to_string(&mut text).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => FenceFileError::Damaged,
            _ => error.into(),
        })?;
        if text.is_empty() {
            return Ok(None);
        }
        let digits = text.strip_suffix('\n').filter(|digits| digits.len() + 1 == FILE_LENGTH);
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let number = digits.and_then(|digits| digits.parse().ok()).ok_or(FenceFileError::Damaged)?;
        Ok(Some(Fence(number)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn fence_file_shares_the_highest_fence_between_processes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("fence");
        let (mut one, mut other) =
            (FenceFile::open(&path).expect("made"), FenceFile::open(&path).expect("opened"));
        one.admit(Fence(7)).expect("the first");
        one.admit(Fence(7)).expect("the same again");
        other.admit(Fence(u64::MAX)).expect("the next");
        let stale = one.admit(Fence(7)).expect_err("late");
        assert!(
            matches!(stale, FenceFileError::Stale(StaleFence { highest: Fence(u64::MAX), .. })),
            "{stale:?}"
        );
    }

    #[test]
    fn damaged_fence_file_rejects_every_fence_and_is_not_modified() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("fence");
        for text in
            ["7", "00000000000000000007", "0000000000000000000x\n", "00000000000000000007\n8", "\u{fffd}"]
        {
            fs::write(&path, text).expect("written");
            let refused = FenceFile::open(&path).expect("opened").admit(Fence(9)).expect_err("damaged");
            assert!(matches!(refused, FenceFileError::Damaged), "{text:?}: {refused:?}");
            assert_eq!(fs::read_to_string(&path).expect("read"), text);
        }
    }
}
