//! An older copy of a ledger put back, or a copy on another machine, must not be written.

use std::fs;
use std::path::{Path, PathBuf};

use tenure_ledger::embedded::{EmbeddedLedger, EmbeddedStore, LedgerOptions};
use tenure_ledger::{Ledger, OpenError, Seq};

use crate::ledger_suite::{append, small_options};

fn options(folder: &Path) -> LedgerOptions {
    LedgerOptions { witness: Some(folder.join("elsewhere")), ..small_options() }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

#[test]
fn an_older_copy_put_back_does_not_open_and_names_the_restored_command() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    append(&mut EmbeddedLedger::open(&data, options(folder.path())).unwrap(), 2);
    copy(&data, &folder.path().join("backup"));
    append(&mut EmbeddedLedger::open(&data, options(folder.path())).unwrap(), 3);

    fs::remove_dir_all(&data).unwrap();
    copy(&folder.path().join("backup"), &data);
    let error =
        EmbeddedLedger::open(&data, options(folder.path())).expect_err("it is older than its witness");
    assert!(matches!(error, OpenError::OutdatedCopy { found: Seq(2), witnessed: Seq(5) }), "{error:?}");
    assert!(error.to_string().contains("tenure ledger restored"), "{error}");
}

#[test]
fn a_copy_that_diverged_from_its_witness_does_not_open() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    append(&mut EmbeddedLedger::open(&data, options(folder.path())).unwrap(), 2);
    copy(&data, &folder.path().join("other"));
    append(&mut EmbeddedLedger::open(&data, options(folder.path())).unwrap(), 1);
    // The copy goes on by itself, with another batch under the same numbers, and further.
    let mut other = EmbeddedLedger::open(&folder.path().join("other"), small_options()).unwrap();
    append(&mut other, 4);
    drop(other);
    let error = EmbeddedLedger::open(&folder.path().join("other"), options(folder.path()));
    assert!(matches!(error, Err(OpenError::OutdatedCopy { .. })), "{error:?}");
}

#[test]
fn a_copy_beside_the_original_does_not_open_while_the_original_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let (data, beside) = (folder.path().join("data"), folder.path().join("beside"));
    let mut original = EmbeddedLedger::open(&data, options(folder.path())).unwrap();
    append(&mut original, 2);
    copy(&data, &beside);
    let error = EmbeddedLedger::open(&beside, options(folder.path())).expect_err("the original is open");
    assert!(matches!(error, OpenError::OpenElsewhere), "{error:?}");
}

#[test]
fn a_ledger_that_is_ahead_of_its_witness_opens() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    append(&mut EmbeddedLedger::open(&data, options(folder.path())).unwrap(), 2);
    let witness = fs::read_dir(folder.path().join("elsewhere")).unwrap().next().unwrap().unwrap().path();
    let earlier = fs::read(&witness).unwrap();
    append(&mut EmbeddedLedger::open(&data, options(folder.path())).unwrap(), 3);
    // A power cut may take the newest word of the witness, never of the ledger.
    fs::write(&witness, earlier).unwrap();
    let ledger = EmbeddedLedger::open(&data, options(folder.path())).unwrap();
    assert_eq!(ledger.head().seq, Seq(5));
}

#[test]
fn a_ledger_of_another_machine_does_not_open_and_names_the_moved_command() {
    let folder = tempfile::tempdir().unwrap();
    append(&mut EmbeddedLedger::open(folder.path(), small_options()).unwrap(), 2);
    let path = folder.path().join("identity");
    let text = fs::read_to_string(&path).unwrap();
    let (before, _) = text.split_once("machine ").unwrap();
    let fields = format!("{before}machine {}\n", "0".repeat(31) + "1");
    fs::write(&path, format!("{fields}sum {:08x}\n", crc32c::crc32c(fields.as_bytes()))).unwrap();
    let error = EmbeddedLedger::open(folder.path(), small_options()).expect_err("another machine's");
    assert!(matches!(error, OpenError::OtherMachine), "{error:?}");
    assert!(error.to_string().contains("tenure ledger moved"), "{error}");
}

#[test]
fn segments_without_an_identity_file_do_not_open() {
    let folder = tempfile::tempdir().unwrap();
    append(&mut EmbeddedLedger::open(folder.path(), small_options()).unwrap(), 2);
    fs::remove_file(folder.path().join("identity")).unwrap();
    let error = EmbeddedLedger::open(folder.path(), small_options()).expect_err("part of it is missing");
    assert!(matches!(error, OpenError::NoIdentity(_)), "{error:?}");
}

#[test]
fn a_copy_does_not_open_before_restore_and_a_failed_copy_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (data, to) = (folder.path().join("data"), folder.path().join("copy"));
    append(&mut EmbeddedLedger::open(&data, options(folder.path())).unwrap(), 3);
    let report = EmbeddedStore::new(&data).copy_to(&to).unwrap();
    assert_eq!(report.head.seq, Seq(3));
    let error = EmbeddedLedger::open(&to, options(folder.path())).expect_err("it is a copy");
    assert!(matches!(error, OpenError::Copy(_)) && error.to_string().contains("ledger restored"), "{error}");
    let again = EmbeddedStore::new(&data).copy_to(&to).expect_err("something is there");
    assert!(again.to_string().contains("exists already"), "{again}");

    fs::remove_dir_all(&to).unwrap();
    let segment = data.join("0000000000000001.segment");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[700] ^= 1;
    fs::write(&segment, bytes).unwrap();
    EmbeddedStore::new(&data).copy_to(&to).expect_err("what is damaged is not copied");
    assert!(!to.exists(), "the next try would find it in its way");
}
