//! Segments start small and double: their sizes, and that nothing depends on their being equal.

use std::fs;
use std::path::Path;

use tenure_core::kernel::{Tick, TickDuration};
use tenure_core::ledger::EventRecord;
use tenure_ledger::embedded::{EmbeddedLedger, EmbeddedStore, LedgerOptions};
use tenure_ledger::signing::{KeyAdded, KeyEntry, LedgerSigningKey};
use tenure_ledger::{Checkpoint, CheckpointParts, Ledger, Retention, Seq, verify};

use crate::ledger_suite::read_all;

const MIB: u64 = 1 << 20;

/// The sizes of the segments in a directory, in MiB, oldest first.
fn segment_sizes(directory: &Path) -> Vec<u64> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let mut segments: Vec<_> =
        entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(".segment")).collect();
    segments.sort_by_key(fs::DirEntry::file_name);
    segments.iter().map(|entry| entry.metadata().unwrap().len() / MIB).collect()
}

/// Appends a batch with one event of `bytes` bytes.
fn append_large(ledger: &mut EmbeddedLedger, bytes: u64) {
    let at = ledger.head().seq;
    let payload = vec![u8::try_from(at.0 % 251).unwrap(); usize::try_from(bytes).unwrap()];
    let record = EventRecord::new("lease.issued", "", "registrar", payload);
    ledger.append(at, &[record], b"sealed").expect("a batch that fits is appended");
}

/// Appends until there are `count` segments, and lets the maintenance prepare the next one each time.
fn append_until(ledger: &mut EmbeddedLedger, directory: &Path, count: usize) {
    while segment_sizes(directory).len() < count {
        ledger.maintenance().prepare_space().unwrap();
        append_large(ledger, 300_000);
    }
}

/// Stores a checkpoint of everything that was appended, signed by a key that it names.
fn store_checkpoint(ledger: &EmbeddedLedger) {
    let (head, reader, key) = (ledger.head(), ledger.reader(), LedgerSigningKey::from_secret(&[7; 32]));
    let added = KeyEntry::Added(KeyAdded::new(reader.ledger(), key.public_key(), &key));
    let keys = [(1, added.to_record())];
    let parts = CheckpointParts {
        ledger: reader.ledger(),
        epoch: reader.epoch(),
        head,
        keys: &keys,
        state: b"state",
    };
    ledger.maintenance().store_checkpoint(head, &Checkpoint::write(parts, &key)).unwrap();
}

fn open(directory: &Path, options: &LedgerOptions) -> EmbeddedLedger {
    EmbeddedLedger::open(directory, options.clone()).expect("the ledger opens")
}

fn options(segment_size: u64) -> LedgerOptions {
    LedgerOptions { segment_size, ..LedgerOptions::default() }
}

#[test]
fn segments_start_at_1_mib_and_double_up_to_16_mib() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = open(folder.path(), &LedgerOptions::default());
    append_until(&mut ledger, folder.path(), 7);
    assert_eq!(segment_sizes(folder.path()), [1, 2, 4, 8, 16, 16, 16]);
}

#[test]
fn segments_double_up_to_the_configured_size() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = open(folder.path(), &options(3 * MIB));
    append_until(&mut ledger, folder.path(), 4);
    assert_eq!(segment_sizes(folder.path()), [1, 2, 3, 3]);
}

#[test]
fn doubling_continues_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    for count in 1..=4 {
        let mut ledger = open(folder.path(), &LedgerOptions::default());
        append_until(&mut ledger, folder.path(), count);
        ledger.close().unwrap();
    }
    assert_eq!(segment_sizes(folder.path()), [1, 2, 4, 8]);
}

#[test]
fn segments_larger_than_the_configured_size_stay_readable() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = open(folder.path(), &LedgerOptions::default());
    append_until(&mut ledger, folder.path(), 5);
    let written = read_all(&ledger);
    ledger.close().unwrap();
    let mut ledger = open(folder.path(), &options(MIB));
    assert_eq!(read_all(&ledger), written);
    append_until(&mut ledger, folder.path(), 6);
    assert_eq!(segment_sizes(folder.path()), [1, 2, 4, 8, 16, 1]);
}

#[test]
fn a_record_larger_than_the_next_segment_gets_one_that_holds_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = open(folder.path(), &LedgerOptions::default());
    ledger.maintenance().prepare_space().unwrap();
    append_large(&mut ledger, 5 * MIB);
    append_large(&mut ledger, 1_000);
    assert_eq!(segment_sizes(folder.path()), [1, 8]);
    append_large(&mut ledger, 15 * MIB);
    assert_eq!(segment_sizes(folder.path()), [1, 8, 16]);
    let written = read_all(&ledger);
    drop(ledger);
    assert_eq!(read_all(&open(folder.path(), &LedgerOptions::default())), written);
}

#[test]
fn a_ledger_with_segments_of_different_sizes_is_copied_verified_and_pruned() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    let mut ledger = open(&data, &LedgerOptions::default());
    for count in [2, 3, 5] {
        append_until(&mut ledger, &data, count);
        store_checkpoint(&ledger);
    }
    assert_eq!(segment_sizes(&data), [1, 2, 4, 8, 16]);
    let written = read_all(&ledger);
    let report = verify(&data).unwrap();
    assert_eq!((report.segments, report.head, report.after), (5, ledger.head(), Seq(0)));
    EmbeddedStore::new(&data).copy_to(&copy).unwrap();
    assert_eq!(segment_sizes(&copy), [1, 2, 4, 8, 16]);

    // What is retained is counted in bytes: the segments of 1 and 2 MiB are more than 29 of 31 MiB leave space for.
    let retention = Retention { age: TickDuration::from_secs(1 << 30), bytes: 29 * MIB };
    ledger.maintenance().prune(retention, Tick(0)).unwrap();
    assert_eq!(segment_sizes(&data), [4, 8, 16]);
    let first = ledger.reader().pruned_through();
    let kept: Vec<_> = ledger.reader().read(first).collect::<Result<_, _>>().unwrap();
    assert_eq!(kept, written[written.len() - kept.len()..]);
    let report = verify(&data).unwrap();
    assert_eq!((report.segments, report.head, report.after), (3, ledger.head(), first));
    drop(ledger);
    let ledger = open(&data, &LedgerOptions::default());
    let reread: Vec<_> = ledger.reader().read(first).collect::<Result<_, _>>().unwrap();
    assert_eq!(reread, kept);

    let mut restored = EmbeddedStore::new(&copy).begin_restore().unwrap();
    while restored.next_batch().unwrap().is_some() {}
    assert_eq!(read_all(&*restored.finish().unwrap()), written);
}
