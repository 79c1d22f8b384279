//! A disk that says that all is well when it is not. What it lost is lost; it must be noticed where it can be, and
//! nothing may be made up.

use std::sync::Arc;

use tenure_faulty_disk::FaultyDisk;
use tenure_ledger::embedded::{EmbeddedRecovery, LedgerOptions};
use tenure_ledger::{Batch, Ledger, LedgerRecovery as _, OpenError, Seq};

use crate::expected_ledger::{ExpectedLedger, prune};
use crate::ledger_suite::small_options;

/// A ledger of several segments with checkpoints. From the batch `lies_from` on, its disk keeps nothing.
fn write_ledger(seed: u64, lies_from: u64, options: &LedgerOptions) -> (FaultyDisk, ExpectedLedger) {
    let (disk, mut history) = (FaultyDisk::new(seed), ExpectedLedger::default());
    let mut ledger = history.open_and_check_with(&disk, options.clone()).unwrap();
    for number in 0..40 {
        if number == lies_from {
            disk.set_ignoring_syncs(true);
        }
        history.append(&mut ledger, 1 + number % 7 * 4).unwrap();
        if number % 12 == 11 {
            history.checkpoint(&ledger).unwrap();
        }
        if number == 30 {
            assert!(prune(&ledger));
        }
    }
    drop(ledger);
    disk.set_ignoring_syncs(false);
    disk.restart_after_power_cut();
    (disk, history)
}

/// What a start hands out, or why there is none.
fn recover(disk: &FaultyDisk, options: &LedgerOptions) -> Result<(Seq, Vec<Batch>), OpenError> {
    let mut recovery = EmbeddedRecovery::begin_on(Arc::new(disk.clone()), options.clone())?;
    let after = recovery.take_checkpoint().map_or(Seq(0), |checkpoint| checkpoint.header.head.seq);
    let mut batches = Vec::new();
    while let Some(batch) = recovery.next_batch()? {
        batches.push(batch);
    }
    recovery.finish()?;
    Ok((after, batches))
}

#[test]
fn after_ignored_syncs_a_ledger_holds_a_prefix_or_does_not_open() {
    let (mut opened, mut refused) = (0, 0);
    for seed in 0..400 {
        let (disk, history) = write_ledger(seed, seed % 40, &small_options());
        match recover(&disk, &small_options()) {
            Ok((after, batches)) => {
                opened += 1;
                let expected = history.batches.iter().filter(|batch| batch.last() > after);
                let expected: Vec<Batch> = expected.take(batches.len()).cloned().collect();
                assert_eq!(batches, expected, "seed {seed}");
            }
            Err(OpenError::Damaged(_) | OpenError::NoIdentity(_)) => refused += 1,
            Err(other) => panic!("seed {seed}: {other:?}"),
        }
    }
    assert!(opened > 20 && refused > 20, "{opened} opened, {refused} refused");
}

#[test]
fn a_witness_on_another_disk_detects_every_ignored_sync() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..80 {
        let options =
            LedgerOptions { witness: Some(folder.path().join(seed.to_string())), ..small_options() };
        let (disk, history) = write_ledger(seed, seed % 40, &options);
        let witnessed = history.head().seq;
        match recover(&disk, &options) {
            Ok((after, batches)) => {
                let last = batches.last().map_or(after, Batch::last);
                assert_eq!(last, witnessed, "seed {seed}: something is missing and nobody noticed");
            }
            Err(OpenError::OutdatedCopy { witnessed: seen, .. }) => {
                assert_eq!(seen, witnessed, "seed {seed}")
            }
            Err(OpenError::Damaged(_) | OpenError::NoIdentity(_)) => {}
            Err(other) => panic!("seed {seed}: {other:?}"),
        }
    }
}

#[test]
fn a_bit_flipped_during_a_read_is_detected_or_harmless() {
    let (mut opened, mut refused) = (0, 0);
    for seed in 0..600 {
        // Honest up to the end.
        let (disk, history) = write_ledger(seed % 20, u64::MAX, &small_options());
        let disk = disk.fork(seed);
        disk.flip_bit_after(seed % 30);
        match recover(&disk, &small_options()) {
            Ok((after, batches)) => {
                opened += 1;
                let expected = history.batches.iter().filter(|batch| batch.last() > after);
                assert_eq!(batches, expected.cloned().collect::<Vec<_>>(), "seed {seed}");
            }
            Err(OpenError::Damaged(_) | OpenError::NewerVersion { .. } | OpenError::OtherMachine) => {
                refused += 1
            }
            Err(other) => panic!("seed {seed}: {other:?}"),
        }
        // It was only read wrong.
        disk.clear_faults();
        disk.restart_process();
        let mut recovery = EmbeddedRecovery::begin_on(Arc::new(disk), small_options()).unwrap();
        while recovery.next_batch().unwrap().is_some() {}
        assert_eq!(recovery.finish().unwrap().head(), history.head(), "seed {seed}");
    }
    assert!(opened > 20 && refused > 20, "{opened} opened, {refused} refused");
}
