//! A ledger that is read beside its writer, without its lock.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use tenure_ledger::embedded::EmbeddedLedger;
use tenure_ledger::{Damage, Ledger, OpenError, ReadOnlyLedger, Seq, open_read_only};

use crate::ledger_suite::{append, small_options};

fn segments(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut segments: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "segment")).collect();
    segments.sort();
    segments
}

#[test]
fn a_read_only_ledger_beside_a_writer_returns_every_batch_once_with_its_offset() {
    let folder = tempfile::tempdir().unwrap();
    // An unclean end: the next segment begins with a copy of the last record.
    append(&mut EmbeddedLedger::open(folder.path(), small_options()).unwrap(), 3);
    let mut ledger = EmbeddedLedger::open(folder.path(), small_options()).unwrap();
    append(&mut ledger, 2);
    append(&mut ledger, 1);
    let archive = open_read_only(folder.path()).unwrap();
    assert!(archive.oldest_checkpoint().is_none());
    let mut batches = archive.batches();
    let mut found = Vec::new();
    while let Some(placed) = batches.next_batch().unwrap() {
        let bytes = fs::read(&placed.file).unwrap();
        assert_eq!(bytes[usize::try_from(placed.offset).unwrap()], 0x5D, "a record begins there");
        found.push((placed.batch.first, placed.batch.last()));
    }
    assert_eq!(found, [(Seq(1), Seq(3)), (Seq(4), Seq(5)), (Seq(6), Seq(6))]);
    assert_eq!(batches.progress(), (2, 2));
    assert_eq!(batches.finish().unwrap().head, ledger.head());
}

#[test]
fn damage_in_the_last_segment_is_retried_beside_a_writer_and_reported_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        append(&mut EmbeddedLedger::open(folder.path(), small_options()).unwrap(), 3);
    }
    let segments = segments(folder.path());
    let flip = |path: &Path| {
        let mut bytes = fs::read(path).unwrap();
        bytes[700] ^= 1;
        fs::write(path, bytes).unwrap();
    };
    let last = segments.last().unwrap();
    flip(last);
    let read = |archive: Box<dyn ReadOnlyLedger>| archive.batches().finish();
    let hasty = read(open_read_only(folder.path()).unwrap());
    assert!(matches!(&hasty, Err(OpenError::Damaged(Damage { file, .. })) if file == last), "{hasty:?}");
    let patient = read(open_read_only(folder.path()).unwrap().tolerate_active_writer());
    assert!(matches!(patient, Err(OpenError::Damaged(_))), "it stays damaged");
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::park_timeout(Duration::from_millis(60));
            flip(last);
        });
        read(open_read_only(folder.path()).unwrap().tolerate_active_writer())
            .expect("the write was finished meanwhile");
    });
    flip(&segments[0]);
    let found = read(open_read_only(folder.path()).unwrap().tolerate_active_writer());
    assert!(
        matches!(&found, Err(OpenError::Damaged(Damage { file, .. })) if *file == segments[0]),
        "{found:?}"
    );
}
