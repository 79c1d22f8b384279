//! The upkeep does its work in the middle of what the writer does.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tenure_faulty_disk::FaultyDisk;
use tenure_ledger::embedded::{Disk, DiskFile, EmbeddedRecovery};
use tenure_ledger::{Ledger, LedgerMaintenance};

use crate::ledger_suite::{append, append_many, read_all, small_options};

/// Lets the maintenance make blank files right before a segment gets its name.
struct InterruptingDisk {
    disk: FaultyDisk,
    maintenance: Mutex<Option<Arc<dyn LedgerMaintenance>>>,
}

impl fmt::Debug for InterruptingDisk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "InterruptingDisk({:?})", self.disk)
    }
}

impl Disk for InterruptingDisk {
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        if to.ends_with(".segment") {
            let maintenance = self.maintenance.lock().unwrap().clone();
            maintenance.map_or(Ok(()), |maintenance| maintenance.prepare_space())?;
        }
        self.disk.rename(from, to)
    }

    fn lock(&self) -> io::Result<Option<Box<dyn Send>>> {
        self.disk.lock()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn length(&self, name: &str) -> io::Result<Option<u64>> {
        self.disk.length(name)
    }

    fn read_at(&self, name: &str, offset: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
        self.disk.read_at(name, offset, length)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk.create(name)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.disk.open(name)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.sync()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.disk.path(name)
    }
}

#[test]
fn filling_the_segment_pool_during_a_rotation_does_not_reuse_the_new_segment() {
    let disk = Arc::new(InterruptingDisk { disk: FaultyDisk::new(1), maintenance: Mutex::new(None) });
    let mut ledger = EmbeddedRecovery::begin_on(disk.clone(), small_options()).unwrap().finish().unwrap();
    append(&mut ledger, 1);
    *disk.maintenance.lock().unwrap() = Some(ledger.maintenance());
    append_many(&mut ledger, 40, 3);
    let written = read_all(&ledger);
    drop(ledger);
    *disk.maintenance.lock().unwrap() = None;
    let ledger = EmbeddedRecovery::begin_on(disk, small_options()).unwrap().finish().unwrap();
    assert_eq!(read_all(&ledger), written);
    assert_eq!(ledger.head().seq.0, 121);
}
