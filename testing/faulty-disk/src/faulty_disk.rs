//! A disk in memory that does what disks do at the worst moment.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tenure_ledger::embedded::{Disk, DiskFile, EmbeddedRecovery, LedgerOptions};
use tenure_ledger::{LedgerRecovery, LedgerStore, OpenError};

use super::directory_entries::{DirectoryChange, DirectoryEntries};
use super::faults::{Faults, OperationOutcome, device_error, powered_off_error};
use super::file_content::{FileContent, SECTOR, allocated_size_for};
use super::rng::FaultRng;

/// A disk that crashes, loses what was not synced, fills up, fails, stalls and lies, all by its seed.
///
/// Clones are the same disk. What was synced is always there after a power cut; of the rest, see
/// [`FaultyDisk::restart_after_power_cut`].
#[derive(Clone)]
pub struct FaultyDisk(Arc<Mutex<DiskState>>);

#[derive(Clone)]
pub(crate) struct DiskState {
    pub(crate) entries: DirectoryEntries,
    pub(crate) files: BTreeMap<u64, FileContent>,
    pub(crate) last_file: u64,
    pub(crate) faults: Faults,
    pub(crate) rng: FaultRng,
    /// Counts restarts: what a process had open is gone with it.
    pub(crate) process: u64,
    pub(crate) is_locked: bool,
}

/// A ledger with the default options on this disk.
impl LedgerStore for FaultyDisk {
    fn open(&self) -> Result<Box<dyn LedgerRecovery>, OpenError> {
        Ok(Box::new(EmbeddedRecovery::begin_on(Arc::new(self.clone()), LedgerOptions::default())?))
    }
}

impl FaultyDisk {
    /// The length of a file, if there is one.
    pub fn file_length(&self, name: &str) -> io::Result<Option<u64>> {
        Disk::length(self, name)
    }

    /// An empty disk on which all goes well until it is told otherwise.
    pub fn new(seed: u64) -> FaultyDisk {
        Self::from_state(DiskState {
            entries: DirectoryEntries::default(),
            files: BTreeMap::new(),
            last_file: 0,
            faults: Faults::default(),
            rng: FaultRng::new(seed),
            process: 0,
            is_locked: false,
        })
    }

    pub(crate) fn from_state(parts: DiskState) -> FaultyDisk {
        FaultyDisk(Arc::new(Mutex::new(parts)))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, DiskState> {
        self.0.lock()
    }
}

impl DiskState {
    fn content(&self, name: &str) -> Option<&FileContent> {
        self.files.get(&self.entries.get(name)?)
    }

    /// How many bytes are taken.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.entries
            .files()
            .filter_map(|file| self.files.get(&file))
            .map(|content| content.allocated_size() as u64)
            .sum()
    }

    fn free(&self) -> u64 {
        self.faults.capacity.map_or(u64::MAX, |capacity| capacity.saturating_sub(self.used_bytes()))
    }

    /// Forgets files that nobody can ever see again.
    pub(crate) fn drop_unlinked_files(&mut self) {
        let known: std::collections::BTreeSet<u64> = self.entries.reachable_files().collect();
        self.files.retain(|file, _| known.contains(file));
    }

    /// Changes names. If the machine goes off meanwhile, it happened or it did not.
    fn change(&mut self, change: DirectoryChange) -> io::Result<()> {
        let outcome = self.faults.begin_operation()?;
        if outcome == OperationOutcome::Success || self.rng.random_bool() {
            self.entries.change(change);
        }
        if outcome == OperationOutcome::Success { Ok(()) } else { Err(powered_off_error()) }
    }

    fn create(&mut self, name: &str) -> io::Result<u64> {
        self.faults.check_powered_on()?;
        if self.entries.get(name).is_none() && self.free() < SECTOR as u64 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.last_file += 1;
        let file = self.last_file;
        // What was there under this name is still there after a power cut, if this is not synced.
        self.files.insert(file, FileContent::default());
        self.change(DirectoryChange::Created { name: name.to_owned(), file })?;
        Ok(file)
    }

    fn write(&mut self, file: u64, bytes: &[u8], offset: u64) -> io::Result<()> {
        let outcome = self.faults.begin_write()?;
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let free = self.free();
        let content = self.files.get_mut(&file).ok_or_else(powered_off_error)?;
        // What does not fit is cut off; what the machine was at when it went off, or failed, anywhere.
        let max_bytes = usize::try_from(free).unwrap_or(usize::MAX).saturating_add(content.allocated_size());
        let fits = max_bytes.saturating_sub(offset).min(bytes.len());
        let whole =
            allocated_size_for(offset + bytes.len()) <= max_bytes || offset + bytes.len() <= content.length();
        let done = match outcome {
            OperationOutcome::Success if whole => bytes.len(),
            OperationOutcome::Success => fits,
            OperationOutcome::Crash | OperationOutcome::DeviceError => {
                (self.rng.below(bytes.len().div_ceil(SECTOR) + 1) * SECTOR).min(fits)
            }
        };
        content.write(&bytes[..done], offset);
        match outcome {
            OperationOutcome::Success if whole => Ok(()),
            OperationOutcome::Success => Err(io::ErrorKind::StorageFull.into()),
            OperationOutcome::Crash => Err(powered_off_error()),
            OperationOutcome::DeviceError => Err(device_error()),
        }
    }

    fn sync_file(&mut self, file: u64) -> io::Result<()> {
        let outcome = self.faults.begin_sync()?;
        let content = self.files.get_mut(&file).ok_or_else(powered_off_error)?;
        match outcome {
            OperationOutcome::Success if self.faults.ignores_syncs => Ok(()),
            OperationOutcome::Success => {
                content.sync();
                Ok(())
            }
            OperationOutcome::Crash => Err(powered_off_error()),
            OperationOutcome::DeviceError => {
                content.persist_random_sectors(&mut self.rng);
                Err(device_error())
            }
        }
    }

    /// A failed sync of names leaves them pending: a journal that cannot be written forgets nothing by itself.
    fn sync_names(&mut self) -> io::Result<()> {
        match self.faults.begin_sync()? {
            OperationOutcome::Success if self.faults.ignores_syncs => Ok(()),
            OperationOutcome::Success => {
                self.entries.sync();
                self.drop_unlinked_files();
                Ok(())
            }
            OperationOutcome::Crash => Err(powered_off_error()),
            OperationOutcome::DeviceError => Err(device_error()),
        }
    }
}

impl Disk for FaultyDisk {
    fn lock(&self) -> io::Result<Option<Box<dyn Send>>> {
        let mut parts = self.state();
        parts.faults.check_powered_on()?;
        if std::mem::replace(&mut parts.is_locked, true) {
            return Ok(None);
        }
        Ok(Some(Box::new(DiskLock { disk: self.clone(), process: parts.process })))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let parts = self.state();
        parts.faults.check_powered_on()?;
        Ok(parts.entries.list())
    }

    fn length(&self, name: &str) -> io::Result<Option<u64>> {
        let parts = self.state();
        parts.faults.check_powered_on()?;
        Ok(parts.content(name).map(|content| content.length() as u64))
    }

    fn read_at(&self, name: &str, offset: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
        let mut parts = self.state();
        parts.faults.check_powered_on()?;
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let Some(bytes) = parts.content(name).map(|content| content.read(offset, length)) else {
            return Ok(None);
        };
        let DiskState { faults, rng, .. } = &mut *parts;
        Ok(Some(faults.corrupt_read(bytes, rng)))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut parts = self.state();
        let (file, process) = (parts.create(name)?, parts.process);
        Ok(Box::new(FaultyFile { disk: self.clone(), file, process }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let parts = self.state();
        parts.faults.check_powered_on()?;
        let file = parts.entries.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(FaultyFile { disk: self.clone(), file, process: parts.process }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut parts = self.state();
        parts.faults.check_powered_on()?;
        parts.entries.get(from).ok_or(io::ErrorKind::NotFound)?;
        parts.change(DirectoryChange::Renamed { from: from.to_owned(), to: to.to_owned() })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut parts = self.state();
        parts.faults.check_powered_on()?;
        if parts.entries.get(name).is_none() {
            return Ok(());
        }
        parts.change(DirectoryChange::Removed { name: name.to_owned() })
    }

    fn sync(&self) -> io::Result<()> {
        self.state().sync_names()
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from("faulty-disk").join(name)
    }
}

/// A file that a process has open. After a restart it is nobody's.
#[derive(Debug)]
struct FaultyFile {
    disk: FaultyDisk,
    file: u64,
    process: u64,
}

impl FaultyFile {
    fn state(&self) -> io::Result<MutexGuard<'_, DiskState>> {
        let parts = self.disk.state();
        if parts.process == self.process { Ok(parts) } else { Err(powered_off_error()) }
    }
}

impl DiskFile for FaultyFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.state()?.write(self.file, bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.state()?.sync_file(self.file)
    }
}

struct DiskLock {
    disk: FaultyDisk,
    process: u64,
}

impl Drop for DiskLock {
    fn drop(&mut self) {
        let mut parts = self.disk.state();
        if parts.process == self.process {
            parts.is_locked = false;
        }
    }
}

impl fmt::Debug for FaultyDisk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "FaultyDisk({:?})", self.state().entries.list())
    }
}
