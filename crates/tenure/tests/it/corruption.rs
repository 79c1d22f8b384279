//! Every bit of a ledger is flipped, by way of the library: running the program that often would take hours.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::thread;
use std::time::Duration;

use tenure_ledger::{open_read_only, verify};
use tenure_registrar::runtime::{verify_ledger, verify_ledger_directory};
use tenure_testkit::sample_ledger::{SampleLedger, acquire, start_server};

/// Flips bit after bit of a file, and sees that each is found.
fn flip_all(path: &Path, is_found: impl Fn() -> bool) -> u64 {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let length = file.metadata().unwrap().len();
    for offset in 0..length {
        let mut byte = [0];
        file.read_exact_at(&mut byte, offset).unwrap();
        for bit in 0..8 {
            file.write_all_at(&[byte[0] ^ 1 << bit], offset).unwrap();
            assert!(is_found(), "bit {bit} of byte {offset} of {}", path.display());
        }
        file.write_all_at(&byte, offset).unwrap();
    }
    length * 8
}

#[test]
fn every_flipped_bit_of_a_ledger_is_found() {
    let history = SampleLedger::create(&[("TENURE_LEDGER_SEGMENT_SIZE", "4096")]);
    let data = history.data();
    verify_ledger_directory(&data, &mut |_, _| {}).expect("whole");
    let segments = history.ledger_files(".segment");
    let flipped: u64 = segments.iter().map(|path| flip_all(path, || verify(&data).is_err())).sum();
    assert_eq!(flipped, segments.len() as u64 * 32_768);
    flip_all(&data.join("identity"), || verify(&data).is_err());
    verify_ledger_directory(&data, &mut |_, _| {}).expect("whole again");
}

#[test]
fn every_flipped_bit_of_a_checkpoint_is_found() {
    let history = SampleLedger::create(&[]);
    let settings = [("TENURE_LEDGER_CHECKPOINT_AFTER", "1")];
    let served = start_server(history.folder.path(), &settings);
    for number in 0.. {
        acquire(&served, &format!("thing:{number}"), "a", 60_000);
        if !history.ledger_files("checkpoint-").is_empty() {
            break;
        }
        thread::park_timeout(Duration::from_millis(20));
    }
    served.stop();
    let data = history.data();
    let look = || verify_ledger(&*open_read_only(&data)?, &mut |_, _| {});
    assert!(look().expect("whole").report.checkpoints > 0);
    for path in history.ledger_files("checkpoint-") {
        flip_all(&path, || look().is_err());
    }
    look().expect("whole again");
    // As if the end of the ledger had never been written: a checkpoint knows better.
    let segment = history.ledger_files(".segment").pop().unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[1_024..].fill(0);
    std::fs::write(&segment, bytes).unwrap();
    let found = look().expect_err("the checkpoint is ahead of the ledger").to_string();
    assert!(found.contains("ahead of the ledger"), "{found}");
}
