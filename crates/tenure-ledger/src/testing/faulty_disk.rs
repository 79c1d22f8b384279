//! A disk in memory that does what disks do at the worst moment.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::chance::Chance;
use super::content::{Content, SECTOR, room_for};
use super::faults::{Course, Faults, device_error, off};
use super::names::{Change, Names};
use crate::embedded::{Disk, DiskFile};

/// A disk that crashes, loses what was not synced, fills up, fails, stalls and lies, all by its seed.
///
/// Clones are the same disk. What was synced is always there after a power cut; of the rest, see
/// [`FaultyDisk::restart`].
#[derive(Clone)]
pub struct FaultyDisk(Arc<Mutex<Parts>>);

#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) names: Names,
    pub(crate) files: BTreeMap<u64, Content>,
    pub(crate) last_file: u64,
    pub(crate) faults: Faults,
    pub(crate) chance: Chance,
    /// Counts restarts: what a process had open is gone with it.
    pub(crate) process: u64,
    pub(crate) is_locked: bool,
}

impl FaultyDisk {
    /// An empty disk on which all goes well until it is told otherwise.
    pub fn new(seed: u64) -> FaultyDisk {
        Self::of(Parts {
            names: Names::default(),
            files: BTreeMap::new(),
            last_file: 0,
            faults: Faults::default(),
            chance: Chance::new(seed),
            process: 0,
            is_locked: false,
        })
    }

    pub(crate) fn of(parts: Parts) -> FaultyDisk {
        FaultyDisk(Arc::new(Mutex::new(parts)))
    }

    pub(crate) fn parts(&self) -> MutexGuard<'_, Parts> {
        self.0.lock()
    }
}

impl Parts {
    fn content(&self, name: &str) -> Option<&Content> {
        self.files.get(&self.names.get(name)?)
    }

    /// How many bytes are taken.
    pub(crate) fn used(&self) -> u64 {
        self.names.files().filter_map(|file| self.files.get(&file)).map(|content| content.room() as u64).sum()
    }

    fn free(&self) -> u64 {
        self.faults.capacity.map_or(u64::MAX, |capacity| capacity.saturating_sub(self.used()))
    }

    /// Forgets files that nobody can ever see again.
    pub(crate) fn forget_nameless(&mut self) {
        let known: std::collections::BTreeSet<u64> = self.names.files_ever().collect();
        self.files.retain(|file, _| known.contains(file));
    }

    /// Changes names. If the machine goes off meanwhile, it happened or it did not.
    fn change(&mut self, change: Change) -> io::Result<()> {
        let course = self.faults.begin()?;
        if course == Course::Well || self.chance.coin() {
            self.names.change(change);
        }
        if course == Course::Well { Ok(()) } else { Err(off()) }
    }

    fn create(&mut self, name: &str) -> io::Result<u64> {
        self.faults.check_is_on()?;
        if self.names.get(name).is_none() && self.free() < SECTOR as u64 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.last_file += 1;
        let file = self.last_file;
        // What was there under this name is still there after a power cut, if this is not synced.
        self.files.insert(file, Content::default());
        self.change(Change::Made { name: name.to_owned(), file })?;
        Ok(file)
    }

    fn write(&mut self, file: u64, bytes: &[u8], offset: u64) -> io::Result<()> {
        let course = self.faults.begin_write()?;
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let free = self.free();
        let content = self.files.get_mut(&file).ok_or_else(off)?;
        // What does not fit is cut off; what the machine was at when it went off, or failed, anywhere.
        let most = usize::try_from(free).unwrap_or(usize::MAX).saturating_add(content.room());
        let fits = most.saturating_sub(offset).min(bytes.len());
        let whole = room_for(offset + bytes.len()) <= most || offset + bytes.len() <= content.length();
        let done = match course {
            Course::Well if whole => bytes.len(),
            Course::Well => fits,
            Course::Cut | Course::Failing => {
                (self.chance.below(bytes.len().div_ceil(SECTOR) + 1) * SECTOR).min(fits)
            }
        };
        content.write(&bytes[..done], offset);
        match course {
            Course::Well if whole => Ok(()),
            Course::Well => Err(io::ErrorKind::StorageFull.into()),
            Course::Cut => Err(off()),
            Course::Failing => Err(device_error()),
        }
    }

    fn sync_file(&mut self, file: u64) -> io::Result<()> {
        let course = self.faults.begin_sync()?;
        let content = self.files.get_mut(&file).ok_or_else(off)?;
        match course {
            Course::Well if self.faults.lies => Ok(()),
            Course::Well => {
                content.sync();
                Ok(())
            }
            Course::Cut => Err(off()),
            Course::Failing => {
                content.fail_to_sync(&mut self.chance);
                Err(device_error())
            }
        }
    }

    /// A failed sync of names leaves them pending: a journal that cannot be written forgets nothing by itself.
    fn sync_names(&mut self) -> io::Result<()> {
        match self.faults.begin_sync()? {
            Course::Well if self.faults.lies => Ok(()),
            Course::Well => {
                self.names.sync();
                self.forget_nameless();
                Ok(())
            }
            Course::Cut => Err(off()),
            Course::Failing => Err(device_error()),
        }
    }
}

impl Disk for FaultyDisk {
    fn lock(&self) -> io::Result<Option<Box<dyn Send>>> {
        let mut parts = self.parts();
        parts.faults.check_is_on()?;
        if std::mem::replace(&mut parts.is_locked, true) {
            return Ok(None);
        }
        Ok(Some(Box::new(Lock { disk: self.clone(), process: parts.process })))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let parts = self.parts();
        parts.faults.check_is_on()?;
        Ok(parts.names.list())
    }

    fn length(&self, name: &str) -> io::Result<Option<u64>> {
        let parts = self.parts();
        parts.faults.check_is_on()?;
        Ok(parts.content(name).map(|content| content.length() as u64))
    }

    fn read_at(&self, name: &str, offset: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
        let mut parts = self.parts();
        parts.faults.check_is_on()?;
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let Some(bytes) = parts.content(name).map(|content| content.read(offset, length)) else {
            return Ok(None);
        };
        let Parts { faults, chance, .. } = &mut *parts;
        Ok(Some(faults.spoil(bytes, chance)))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut parts = self.parts();
        let (file, process) = (parts.create(name)?, parts.process);
        Ok(Box::new(FaultyFile { disk: self.clone(), file, process }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let parts = self.parts();
        parts.faults.check_is_on()?;
        let file = parts.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(FaultyFile { disk: self.clone(), file, process: parts.process }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut parts = self.parts();
        parts.faults.check_is_on()?;
        parts.names.get(from).ok_or(io::ErrorKind::NotFound)?;
        parts.change(Change::Renamed { from: from.to_owned(), to: to.to_owned() })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut parts = self.parts();
        parts.faults.check_is_on()?;
        if parts.names.get(name).is_none() {
            return Ok(());
        }
        parts.change(Change::Removed { name: name.to_owned() })
    }

    fn sync(&self) -> io::Result<()> {
        self.parts().sync_names()
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
    fn parts(&self) -> io::Result<MutexGuard<'_, Parts>> {
        let parts = self.disk.parts();
        if parts.process == self.process { Ok(parts) } else { Err(off()) }
    }
}

impl DiskFile for FaultyFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.parts()?.write(self.file, bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.parts()?.sync_file(self.file)
    }
}

struct Lock {
    disk: FaultyDisk,
    process: u64,
}

impl Drop for Lock {
    fn drop(&mut self) {
        let mut parts = self.disk.parts();
        if parts.process == self.process {
            parts.is_locked = false;
        }
    }
}

impl fmt::Debug for FaultyDisk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "FaultyDisk({:?})", self.parts().names.list())
    }
}
