//! A device that fails: nobody knows what it holds, so nobody goes on as if they did.

use tenure_faulty_disk::FaultyDisk;
use tenure_ledger::embedded::EmbeddedLedger;
use tenure_ledger::{AppendError, Ledger};

use crate::expected_ledger::{ExpectedLedger, prune};

/// Appends until the device fails; then nothing is written any more.
fn append_until_it_fails(disk: &FaultyDisk, history: &mut ExpectedLedger, ledger: &mut EmbeddedLedger) {
    let failed = (0..60).find_map(|number| history.append(ledger, 1 + number % 9 * 4).err());
    let Some(error) = failed else { return };
    match error {
        AppendError::OutcomeUnknown { at, .. } => assert_eq!(at.0, ledger.head().seq.0 + 1),
        // A blank file could not be made; nothing was written.
        AppendError::Unavailable(_) => return,
        other => panic!("{other:?}"),
    }
    let (before, in_doubt) = (disk.operation_count(), history.in_doubt.clone());
    for _ in 0..3 {
        let again = history.append(ledger, 1);
        assert!(matches!(again, Err(AppendError::Unavailable(_))), "{again:?}");
    }
    assert_eq!(disk.operation_count(), before, "nothing is tried again");
    assert_eq!(history.in_doubt, in_doubt);
}

fn assert_survives(make_it_fail: impl Fn(&FaultyDisk, u64)) {
    for at in 0..150 {
        let (disk, mut history) = (FaultyDisk::new(at), ExpectedLedger::default());
        let mut ledger = history.open_and_check(&disk).unwrap();
        make_it_fail(&disk, at);
        append_until_it_fails(&disk, &mut history, &mut ledger);
        drop(ledger);
        disk.clear_faults();
        for seed in 0..6 {
            let (disk, mut history) = (disk.fork(at * 10 + seed), history.clone());
            // The process starts again, perhaps several times, and then the power is cut.
            for _ in 0..seed % 3 {
                disk.restart_process();
                let mut ledger =
                    history.open_and_check(&disk).unwrap_or_else(|error| panic!("{at}, {seed}: {error:?}"));
                history.append(&mut ledger, 20).expect("the device works again");
            }
            disk.restart_after_power_cut();
            let mut ledger =
                history.open_and_check(&disk).unwrap_or_else(|error| panic!("{at}, {seed}: {error:?}"));
            history.append(&mut ledger, 20).expect("the device works again");
        }
    }
}

#[test]
fn a_failed_sync_stops_all_writes_and_loses_no_acknowledged_batch() {
    assert_survives(|disk, at| disk.fail_sync_after(at));
}

#[test]
fn a_failed_write_stops_all_writes_and_loses_no_acknowledged_batch() {
    assert_survives(|disk, at| disk.fail_write_after(at));
}

#[test]
fn close_after_a_failed_sync_writes_no_clean_shutdown_marker() {
    let (disk, mut history) = (FaultyDisk::new(1), ExpectedLedger::default());
    let mut ledger = history.open_and_check(&disk).unwrap();
    history.append(&mut ledger, 1).unwrap();
    disk.fail_sync_after(0);
    history.append(&mut ledger, 20).expect_err("the sync fails");
    let operations = disk.operation_count();
    ledger.close().expect("there is nothing to do");
    assert_eq!(disk.operation_count(), operations, "nobody vouches for what is in doubt");
}

#[test]
fn a_failed_and_retried_prune_leaves_contiguous_segments_after_a_crash() {
    for (at, crash) in (0..4).flat_map(|at| (0..8).map(move |crash| (at, crash))) {
        let (disk, mut history) = (FaultyDisk::new(at), ExpectedLedger::default());
        let mut ledger = history.open_and_check(&disk).unwrap();
        for _ in 0..2 {
            (0..40).for_each(|_| history.append(&mut ledger, 5).unwrap());
            history.checkpoint(&ledger).unwrap();
        }
        disk.fail_sync_after(at);
        assert!(!prune(&ledger), "the sync fails");
        disk.crash_after(crash);
        prune(&ledger);
        drop(ledger);
        for seed in 0..10 {
            let (disk, mut history) = (disk.fork(crash * 100 + seed), history.clone());
            disk.restart_after_power_cut();
            assert_contiguous_segments(&disk);
            history.open_and_check(&disk).unwrap_or_else(|error| panic!("{at}, {crash}, {seed}: {error:?}"));
        }
    }
}

/// The numbers of the segments follow each other.
fn assert_contiguous_segments(disk: &FaultyDisk) {
    let names = tenure_ledger::embedded::Disk::list(disk).unwrap();
    let numbers: Vec<u64> =
        names.iter().filter_map(|name| name.strip_suffix(".segment")?.parse().ok()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
}
