//! A write that was cut short by a power cut: any of its sectors may be missing.

use std::fs;
use std::path::Path;

use tenure_ledger::embedded::EmbeddedLedger;
use tenure_ledger::{Ledger, OpenError, Seq, verify};

use crate::ledger_suite::{append, read_all, small_options};

const SECTOR: usize = 512;

/// A ledger with one acknowledged batch, and the sectors of a second one that was being written.
fn interrupted_write() -> (tempfile::TempDir, Vec<u8>, std::ops::Range<usize>) {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = EmbeddedLedger::open(folder.path(), small_options()).unwrap();
    append(&mut ledger, 1);
    let before = fs::read(segment(folder.path())).unwrap();
    append(&mut ledger, 50);
    drop(ledger);
    let after = fs::read(segment(folder.path())).unwrap();
    let changed: Vec<usize> =
        (0..after.len() / SECTOR).filter(|index| sector(&before, *index) != sector(&after, *index)).collect();
    assert!(changed.len() >= 3, "the second batch takes several sectors");
    (folder, after, changed[0]..changed[changed.len() - 1] + 1)
}

fn segment(directory: &Path) -> std::path::PathBuf {
    directory.join("0000000000000001.segment")
}

fn sector(bytes: &[u8], index: usize) -> &[u8] {
    &bytes[index * SECTOR..(index + 1) * SECTOR]
}

#[test]
fn a_last_write_with_any_missing_sectors_is_dropped() {
    let (folder, whole, written) = interrupted_write();
    let count = written.len();
    for present in 0..(1_u32 << count) - 1 {
        let mut bytes = whole.clone();
        for (bit, index) in written.clone().enumerate().filter(|(bit, _)| present & (1 << bit) == 0) {
            let _ = bit;
            bytes[index * SECTOR..(index + 1) * SECTOR].fill(0);
        }
        fs::write(segment(folder.path()), &bytes).unwrap();
        let report = verify(folder.path()).expect("a torn tail is no damage");
        assert_eq!(report.head.seq, Seq(1), "sectors present: {present:b}");
        assert_eq!(report.has_torn_tail, present != 0);
    }
}

#[test]
fn appends_continue_after_a_torn_write_without_losing_acknowledged_batches() {
    let (folder, mut bytes, written) = interrupted_write();
    let last = written.end - 1;
    bytes[last * SECTOR..(last + 1) * SECTOR].fill(0);
    fs::write(segment(folder.path()), &bytes).unwrap();

    let mut ledger = EmbeddedLedger::open(folder.path(), small_options()).unwrap();
    assert_eq!(ledger.head().seq, Seq(1));
    append(&mut ledger, 2);
    append(&mut ledger, 3);
    let before = read_all(&ledger);
    drop(ledger);
    let ledger = EmbeddedLedger::open(folder.path(), small_options()).unwrap();
    assert_eq!(read_all(&ledger), before);
    assert_eq!(ledger.head().seq, Seq(6));
}

#[test]
fn a_missing_sector_before_the_last_record_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = EmbeddedLedger::open(folder.path(), small_options()).unwrap();
    append(&mut ledger, 40);
    append(&mut ledger, 1);
    drop(ledger);
    let whole = fs::read(segment(folder.path())).unwrap();
    for index in 1..3 {
        let mut bytes = whole.clone();
        bytes[index * SECTOR..(index + 1) * SECTOR].fill(0);
        fs::write(segment(folder.path()), &bytes).unwrap();
        let verdict = verify(folder.path());
        assert!(matches!(verdict, Err(OpenError::Damaged(_))), "sector {index}: {verdict:?}");
    }
}

#[test]
fn a_changed_record_length_is_damage_and_not_a_torn_write() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = EmbeddedLedger::open(folder.path(), small_options()).unwrap();
    append(&mut ledger, 1);
    drop(ledger);
    let whole = fs::read(segment(folder.path())).unwrap();
    // The length stands right behind the marker of the first record.
    for byte in SECTOR + 1..SECTOR + 5 {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[byte] ^= 1 << bit;
            fs::write(segment(folder.path()), &bytes).unwrap();
            let verdict = verify(folder.path());
            assert!(matches!(verdict, Err(OpenError::Damaged(_))), "byte {byte}, bit {bit}: {verdict:?}");
        }
    }
}
