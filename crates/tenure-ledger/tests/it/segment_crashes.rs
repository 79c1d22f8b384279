//! The machine goes off while the ledger begins a segment that is larger than the one before.

use std::sync::Arc;

use tenure_core::ledger::EventRecord;
use tenure_faulty_disk::FaultyDisk;
use tenure_ledger::embedded::{Disk as _, EmbeddedLedger, EmbeddedRecovery, LedgerOptions};
use tenure_ledger::{AppendError, Head, Ledger};

use crate::ledger_suite::read_all;

const MIB: u64 = 1 << 20;

fn open(disk: &FaultyDisk) -> EmbeddedLedger {
    // Without a reserve, which is in no way part of this.
    let options = LedgerOptions { reserve: Some(0), ..LedgerOptions::default() };
    EmbeddedRecovery::begin_on(Arc::new(disk.clone()), options).unwrap().finish().expect("the ledger opens")
}

fn append_large(ledger: &mut EmbeddedLedger) -> Result<Head, AppendError> {
    let at = ledger.head().seq;
    let payload = vec![u8::try_from(at.0 % 251).unwrap(); 400_000];
    ledger.append(at, &[EventRecord::new("lease.issued", "", "registrar", payload)], b"sealed")
}

/// The sizes of the segments, in MiB.
fn segments(disk: &FaultyDisk) -> Vec<u64> {
    let mut names = disk.list().unwrap();
    names.retain(|name| name.ends_with(".segment"));
    names.sort();
    names.iter().map(|name| disk.length(name).unwrap().unwrap() / MIB).collect()
}

/// Crashes at every operation of the append that begins the next segment, and checks what is there after a restart.
fn crash_during_the_next_append(full: &FaultyDisk, sizes: &[u64]) {
    for at in 0.. {
        let disk = full.fork(at);
        let mut ledger = open(&disk);
        let acknowledged = ledger.head();
        disk.crash_after(at);
        let appended = append_large(&mut ledger);
        let acknowledged = appended.as_ref().map_or(acknowledged, |head| *head);
        let is_crashed = disk.is_powered_off();
        assert!(is_crashed || appended.is_ok(), "something failed on a disk that did not");
        drop(ledger);
        if at % 3 == 2 {
            disk.restart_process()
        } else {
            disk.restart_after_power_cut()
        }
        let mut ledger = open(&disk);
        let in_doubt = u64::from(appended.is_err());
        let found = ledger.head().seq.0;
        let expected = acknowledged.seq.0..=acknowledged.seq.0 + in_doubt;
        assert!(expected.contains(&found), "{sizes:?}, operation {at}: {found} of {expected:?}");
        append_large(&mut ledger).expect("it goes on");
        let written = read_all(&ledger);
        assert_eq!(written.len() as u64, found + 1, "{sizes:?}, operation {at}");
        drop(ledger);
        disk.restart_after_power_cut();
        assert_eq!(read_all(&open(&disk)), written, "{sizes:?}, operation {at}");
        if !is_crashed {
            assert_eq!(segments(&disk)[..sizes.len()], *sizes);
            assert!(at > 5, "a change of segments has several operations, not {at}");
            return;
        }
    }
}

/// How many batches are appended until the ledger has two segments, three, and so on up to `count`.
fn batches_before_each_change(count: usize) -> Vec<u64> {
    let disk = FaultyDisk::new(1);
    let mut ledger = open(&disk);
    let mut batches = Vec::new();
    while batches.len() + 1 < count {
        append_large(&mut ledger).unwrap();
        if segments(&disk).len() == batches.len() + 2 {
            batches.push(ledger.head().seq.0 - 1);
        }
    }
    batches
}

// S2-4, S2-14: what was acknowledged survives a crash at any point.
#[test]
fn acknowledged_batches_survive_a_crash_during_each_change_to_a_larger_segment() {
    let (disk, sizes) = (FaultyDisk::new(1), [1, 2, 4, 8, 16, 16]);
    for (count, batches) in (2..).zip(batches_before_each_change(sizes.len())) {
        let mut ledger = open(&disk);
        while ledger.head().seq.0 < batches {
            append_large(&mut ledger).unwrap();
        }
        ledger.maintenance().prepare_space().unwrap();
        ledger.close().unwrap();
        crash_during_the_next_append(&disk, &sizes[..count]);
    }
}
