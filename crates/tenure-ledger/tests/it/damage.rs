//! Every bit of a small ledger is flipped, and every file cut at every byte: nothing that was acknowledged is
//! ever dropped in silence, and whatever is wrong is named.

use std::fs;
use std::path::{Path, PathBuf};

use tenure_ledger::embedded::EmbeddedLedger;
use tenure_ledger::{Damage, Ledger, OpenError, Seq, verify};

use crate::ledger_suite::{append, append_many, read_all, small_options};

/// Two segments, after an unclean end, with a record of several sectors in each.
fn small_ledger() -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let mut ledger = EmbeddedLedger::open(folder.path(), small_options()).unwrap();
        append(&mut ledger, 1);
        append(&mut ledger, 20);
        append(&mut ledger, 1);
    }
    let mut files: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "segment"))
        .collect();
    files.sort();
    assert_eq!(files.len(), 2);
    (folder, files)
}

fn found(directory: &Path) -> Damage {
    match verify(directory) {
        Err(OpenError::Damaged(damage)) => damage,
        other => panic!("not found: {other:?}"),
    }
}

/// Every bit of one segment is flipped beside the code that reads it; here the whole way, for one in many.
#[test]
fn a_flipped_bit_in_a_ledger_is_reported_at_or_before_its_sector() {
    let (folder, files) = small_ledger();
    for path in files {
        let whole = fs::read(&path).unwrap();
        for bit in (0..whole.len() * 8).step_by(31) {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bytes).unwrap();
            let damage = found(folder.path());
            let sector = (bit / 8 / 512 * 512) as u64;
            assert!(damage.offset <= sector, "bit {bit}: {damage}");
        }
        fs::write(&path, &whole).unwrap();
    }
    verify(folder.path()).expect("whole again");
}

#[test]
fn a_truncated_or_extended_segment_is_damage() {
    let (folder, files) = small_ledger();
    for path in files {
        let whole = fs::read(&path).unwrap();
        for length in (0..whole.len()).step_by(7) {
            fs::write(&path, &whole[..length]).unwrap();
            found(folder.path());
        }
        fs::write(&path, [&whole[..], &[0; 512]].concat()).unwrap();
        found(folder.path());
        fs::write(&path, &whole).unwrap();
    }
}

#[test]
fn a_damaged_ledger_does_not_open_and_is_not_changed() {
    let (folder, files) = small_ledger();
    let mut bytes = fs::read(&files[0]).unwrap();
    bytes[600] ^= 1;
    fs::write(&files[0], &bytes).unwrap();
    let error = EmbeddedLedger::open(folder.path(), small_options()).expect_err("it is damaged");
    assert!(error.to_string().contains("is damaged at byte"), "{error}");
    assert_eq!(fs::read(&files[0]).unwrap(), bytes);
    assert_eq!(fs::read_dir(folder.path()).unwrap().filter(is_segment).count(), 2);
}

fn is_segment(entry: &std::io::Result<fs::DirEntry>) -> bool {
    entry.as_ref().is_ok_and(|entry| entry.path().extension().is_some_and(|extension| extension == "segment"))
}

#[test]
fn a_missing_swapped_or_duplicated_segment_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = EmbeddedLedger::open(folder.path(), small_options()).unwrap();
    append_many(&mut ledger, 60, 3);
    drop(ledger);
    let path = |number: u64| folder.path().join(format!("{number:016}.segment"));
    let (second, third) = (fs::read(path(2)).unwrap(), fs::read(path(3)).unwrap());

    fs::remove_file(path(2)).unwrap();
    found(folder.path());
    fs::write(path(2), &third).unwrap();
    found(folder.path());
    fs::write(path(3), &second).unwrap();
    found(folder.path());
    fs::write(path(2), &second).unwrap();
    found(folder.path());
    fs::write(path(3), &third).unwrap();
    verify(folder.path()).expect("as it was");

    fs::remove_file(path(1)).unwrap();
    found(folder.path());
}

#[test]
fn a_segment_of_another_ledger_is_damage() {
    let (folder, files) = small_ledger();
    let (_other, foreign) = small_ledger();
    fs::copy(&foreign[1], &files[1]).unwrap();
    assert_eq!(found(folder.path()).reason, "the segment belongs to another ledger");
}

#[test]
fn a_ledger_with_a_changed_identity_file_does_not_open() {
    let (folder, _) = small_ledger();
    let path = folder.path().join("identity");
    let whole = fs::read(&path).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &bytes).unwrap();
        let opened = EmbeddedLedger::open(folder.path(), small_options());
        assert!(opened.is_err(), "bit {bit}");
    }
}

#[test]
fn reading_missing_durable_records_beside_the_writer_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = EmbeddedLedger::open(folder.path(), small_options()).unwrap();
    append_many(&mut ledger, 40, 2);
    assert_eq!(read_all(&ledger).len(), 40);
    // The last record of a segment that is full reads as if it had never been written.
    let path = folder.path().join("0000000000000001.segment");
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.chunks(512).rposition(|sector| sector[0] != 0).unwrap();
    bytes[last * 512..(last + 1) * 512].fill(0);
    fs::write(&path, bytes).unwrap();
    let error = ledger.reader().read(Seq(0)).find_map(Result::err).expect("a gap is no end");
    assert!(error.to_string().contains("records that were durable are missing"), "{error}");
}
