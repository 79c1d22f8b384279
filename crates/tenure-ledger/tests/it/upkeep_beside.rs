//! The upkeep does its work in the middle of what the writer does.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tenure_ledger::Ledger;
use tenure_ledger::embedded::{Disk, DiskFile, Opening, Upkeep};
use tenure_ledger::testing::FaultyDisk;

use crate::suite::{all, append, append_many, small};

/// Lets the upkeep make blank files right before a segment gets its name.
#[derive(Debug)]
struct Interrupting {
    disk: FaultyDisk,
    upkeep: Mutex<Option<Upkeep>>,
}

impl Disk for Interrupting {
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        if to.ends_with(".segment") {
            let upkeep = self.upkeep.lock().unwrap().clone();
            upkeep.map_or(Ok(()), |upkeep| upkeep.make_blanks())?;
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
    let disk = Arc::new(Interrupting { disk: FaultyDisk::new(1), upkeep: Mutex::new(None) });
    let mut ledger = Opening::begin_on(disk.clone(), small()).unwrap().finish().unwrap();
    append(&mut ledger, 1);
    *disk.upkeep.lock().unwrap() = Some(ledger.upkeep());
    append_many(&mut ledger, 40, 3);
    let written = all(&ledger);
    drop(ledger);
    *disk.upkeep.lock().unwrap() = None;
    let ledger = Opening::begin_on(disk, small()).unwrap().finish().unwrap();
    assert_eq!(all(&ledger), written);
    assert_eq!(ledger.head().seq.0, 121);
}
