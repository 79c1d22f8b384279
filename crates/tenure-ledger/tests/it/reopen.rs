//! Ends, orderly and not, and what is there afterwards.

use std::path::Path;

use tenure_ledger::embedded::EmbeddedLedger;
use tenure_ledger::{Ledger, OpenError, Seq, verify};

use crate::ledger_suite::{append, append_many, read_all, small_options};

fn open(directory: &Path) -> EmbeddedLedger {
    EmbeddedLedger::open(directory, small_options()).expect("the ledger opens")
}

fn segments(directory: &Path) -> usize {
    verify(directory).expect("the ledger is whole").segments
}

#[test]
fn reopening_after_close_continues_in_the_same_segment() {
    let folder = tempfile::tempdir().unwrap();
    for round in 1..=4 {
        let mut ledger = open(folder.path());
        append(&mut ledger, 2);
        assert_eq!(ledger.head().seq, Seq(round * 2));
        ledger.close().unwrap();
    }
    assert_eq!(segments(folder.path()), 1);
    assert_eq!(read_all(&open(folder.path())).len(), 4);
}

#[test]
fn after_an_unclean_shutdown_the_last_record_is_copied_into_a_new_segment() {
    let folder = tempfile::tempdir().unwrap();
    let mut written = Vec::new();
    for round in 1..=5 {
        let mut ledger = open(folder.path());
        assert_eq!(read_all(&ledger), written, "round {round}");
        append(&mut ledger, round);
        append(&mut ledger, 1);
        written = read_all(&ledger);
    }
    let report = verify(folder.path()).unwrap();
    assert_eq!(report.segments, 5, "each start after an unclean end begins a segment");
    assert_eq!(report.batches, 10);
    assert_eq!(report.head.seq, Seq(20));
}

#[test]
fn a_crash_before_the_first_append_adds_no_segment() {
    let folder = tempfile::tempdir().unwrap();
    (0..5).for_each(|_| drop(open(folder.path())));
    assert_eq!(segments(folder.path()), 1);
}

#[test]
fn a_second_writer_is_rejected_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let _first = open(folder.path());
    let error = EmbeddedLedger::open(folder.path(), small_options()).expect_err("it is in use");
    assert!(matches!(error, OpenError::Locked(_)));
    assert!(error.to_string().contains("another process is using"), "{error}");
}

#[test]
fn batches_across_many_segments_are_all_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = open(folder.path());
    append_many(&mut ledger, 200, 5);
    let before = read_all(&ledger);
    ledger.close().unwrap();
    assert!(segments(folder.path()) > 10);
    let ledger = open(folder.path());
    assert_eq!(read_all(&ledger), before);
    assert_eq!(ledger.head().seq, Seq(1_000));
}

#[test]
fn a_partly_written_spare_file_is_not_reused_as_blank() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = open(folder.path());
    append(&mut ledger, 3);
    ledger.maintenance().prepare_space().unwrap();
    drop(ledger);
    let spare = folder.path().join("spare");
    let mut bytes = std::fs::read(&spare).unwrap();
    // Behind what a start copies there.
    bytes[3_000] = 1;
    std::fs::write(&spare, bytes).unwrap();
    let mut ledger = open(folder.path());
    append(&mut ledger, 1);
    drop(ledger);
    assert_eq!(verify(folder.path()).unwrap().head.seq, Seq(4));
}

#[test]
fn an_invalid_segment_size_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    for size in [0, 512, 4_095, 5_000] {
        let options = tenure_ledger::embedded::LedgerOptions { segment_size: size, ..small_options() };
        let error = EmbeddedLedger::open(folder.path(), options).expect_err("too small, or not in sectors");
        assert!(matches!(error, OpenError::SegmentSize(_)), "{size}: {error}");
    }
}

#[test]
fn a_larger_or_smaller_segment_size_takes_effect_with_the_next_segment() {
    let folder = tempfile::tempdir().unwrap();
    for size in [8_192, 4_096, 16_384, 4_096] {
        let options = tenure_ledger::embedded::LedgerOptions { segment_size: size, ..small_options() };
        let mut ledger = EmbeddedLedger::open(folder.path(), options).unwrap();
        append_many(&mut ledger, 30, 2);
    }
    assert_eq!(read_all(&open(folder.path())).len(), 120);
}

#[test]
fn a_segment_keeps_its_own_size_after_an_orderly_end() {
    let folder = tempfile::tempdir().unwrap();
    for size in [4_096, 16_384, 4_096] {
        let options = tenure_ledger::embedded::LedgerOptions { segment_size: size, ..small_options() };
        let mut ledger = EmbeddedLedger::open(folder.path(), options).expect("a new size damages nothing");
        append_many(&mut ledger, 30, 2);
        ledger.close().unwrap();
    }
    assert_eq!(read_all(&open(folder.path())).len(), 90);
}
