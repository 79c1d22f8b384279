//! A disk that says that all is well when it is not. What it lost is lost; it must be noticed where it can be, and
//! nothing may be made up.

use std::sync::Arc;

use tenure_ledger::embedded::{OpenError, Opening, Options};
use tenure_ledger::testing::FaultyDisk;
use tenure_ledger::{Batch, Ledger, Seq};

use crate::history::{History, prune};
use crate::suite::small;

/// A ledger of several segments with checkpoints. From the batch `lies_from` on, its disk keeps nothing.
fn written(seed: u64, lies_from: u64, options: &Options) -> (FaultyDisk, History) {
    let (disk, mut history) = (FaultyDisk::new(seed), History::default());
    let mut ledger = history.open_with(&disk, options.clone()).unwrap();
    for number in 0..40 {
        if number == lies_from {
            disk.set_lying(true);
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
    disk.set_lying(false);
    disk.restart();
    (disk, history)
}

/// What a start hands out, or why there is none.
fn found(disk: &FaultyDisk, options: &Options) -> Result<(Seq, Vec<Batch>), OpenError> {
    let mut opening = Opening::begin_on(Arc::new(disk.clone()), options.clone())?;
    let after = opening.take_checkpoint().map_or(Seq(0), |checkpoint| checkpoint.head.head.seq);
    let mut batches = Vec::new();
    while let Some(batch) = opening.next_batch()? {
        batches.push(batch);
    }
    opening.finish()?;
    Ok((after, batches))
}

#[test]
fn after_ignored_syncs_a_ledger_holds_a_prefix_or_does_not_open() {
    let (mut opened, mut refused) = (0, 0);
    for seed in 0..400 {
        let (disk, history) = written(seed, seed % 40, &small());
        match found(&disk, &small()) {
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
        let options = Options { witness: Some(folder.path().join(seed.to_string())), ..small() };
        let (disk, history) = written(seed, seed % 40, &options);
        let witnessed = history.head().seq;
        match found(&disk, &options) {
            Ok((after, batches)) => {
                let last = batches.last().map_or(after, Batch::last);
                assert_eq!(last, witnessed, "seed {seed}: something is missing and nobody noticed");
            }
            Err(OpenError::Behind { witnessed: seen, .. }) => assert_eq!(seen, witnessed, "seed {seed}"),
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
        let (disk, history) = written(seed % 20, u64::MAX, &small());
        let disk = disk.fork(seed);
        disk.flip_bit_after(seed % 30);
        match found(&disk, &small()) {
            Ok((after, batches)) => {
                opened += 1;
                let expected = history.batches.iter().filter(|batch| batch.last() > after);
                assert_eq!(batches, expected.cloned().collect::<Vec<_>>(), "seed {seed}");
            }
            Err(OpenError::Damaged(_) | OpenError::Newer { .. } | OpenError::Foreign) => refused += 1,
            Err(other) => panic!("seed {seed}: {other:?}"),
        }
        // It was only read wrong.
        disk.heal();
        disk.restart_process();
        let mut opening = Opening::begin_on(Arc::new(disk), small()).unwrap();
        while opening.next_batch().unwrap().is_some() {}
        assert_eq!(opening.finish().unwrap().head(), history.head(), "seed {seed}");
    }
    assert!(opened > 20 && refused > 20, "{opened} opened, {refused} refused");
}
