//! A disk that fills up: what there is room for is said before, nothing is lost, and it goes on when there is room.

use tenure_faulty_disk::FaultyDisk;
use tenure_ledger::embedded::{Disk, EmbeddedLedger, LedgerOptions};
use tenure_ledger::{AppendError, Ledger, SpaceLevel};

use crate::expected_ledger::{ExpectedLedger, prune};
use crate::ledger_suite::small_options;

/// A ledger with all its blank files on a disk that has no more room than they take.
fn ledger_on_full_disk(seed: u64) -> (FaultyDisk, ExpectedLedger, EmbeddedLedger) {
    let (disk, mut history) = (FaultyDisk::new(seed), ExpectedLedger::default());
    let ledger = history.open_and_check(&disk).expect("there is room");
    ledger.maintenance().prepare_space().expect("there is room");
    disk.set_capacity(Some(disk.used_bytes()));
    (disk, history, ledger)
}

/// Appends until there is no room; says what was said of the room before each append, without repetition.
fn fill(history: &mut ExpectedLedger, ledger: &mut EmbeddedLedger) -> Vec<SpaceLevel> {
    let mut levels = Vec::new();
    for _ in 0..1_000 {
        let level = ledger.space_level(0);
        if levels.last() != Some(&level) {
            levels.push(level);
        }
        let before = ledger.head();
        match history.append(ledger, 5) {
            Ok(()) => {}
            Err(AppendError::NoSpace) if level == SpaceLevel::Exhausted => {
                assert_eq!(ledger.head(), before, "nothing was written");
                return levels;
            }
            Err(error) => panic!("with room for {level:?}: {error:?}"),
        }
        // As the upkeep does, which is told of each rotation.
        let _ = ledger.maintenance().prepare_space();
    }
    panic!("a full disk has room for a thousand batches");
}

const ALL_LEVELS: [SpaceLevel; 4] =
    [SpaceLevel::Plenty, SpaceLevel::EndsAndRenewals, SpaceLevel::EndsOnly, SpaceLevel::Exhausted];

#[test]
fn space_level_falls_stepwise_and_appends_succeed_until_it_is_exhausted() {
    let (disk, mut history, mut ledger) = ledger_on_full_disk(1);
    assert_eq!(fill(&mut history, &mut ledger), ALL_LEVELS);
    history.check(&ledger);
    assert!(matches!(history.append(&mut ledger, 5), Err(AppendError::NoSpace)), "still no room");
    disk.set_capacity(Some(disk.used_bytes() + 20 * 4_096));
    ledger.maintenance().prepare_space().expect("there is room again");
    assert_eq!(ledger.space_level(0), SpaceLevel::Plenty);
    assert_eq!(fill(&mut history, &mut ledger), ALL_LEVELS);
    drop(ledger);
    disk.set_capacity(None);
    history.open_and_check(&disk).expect("it opens");
}

#[test]
fn pruning_restores_the_space_level() {
    let (disk, mut history, mut ledger) = ledger_on_full_disk(2);
    disk.set_capacity(Some(disk.used_bytes() + 20 * 4_096));
    for _ in 0..2 {
        for _ in 0..60 {
            history.append(&mut ledger, 5).expect("there is room");
        }
        history.checkpoint(&ledger).expect("there is room");
    }
    fill(&mut history, &mut ledger);
    assert!(prune(&ledger));
    ledger.maintenance().prepare_space().expect("there is room for all again");
    assert_eq!(ledger.space_level(0), SpaceLevel::Plenty);
    history.append(&mut ledger, 5).expect("there is room");
    history.check(&ledger);
}

#[test]
fn acknowledged_batches_survive_a_restart_at_any_point_of_filling_the_disk() {
    let (disk, mut history, mut ledger) = ledger_on_full_disk(3);
    let operations = disk.operation_count();
    fill(&mut history, &mut ledger);
    let count = disk.operation_count() - operations;
    assert!(count > 50);
    for at in 0..count {
        let (disk, mut history, mut ledger) = ledger_on_full_disk(at);
        disk.crash_after(at);
        while history.append(&mut ledger, 5).is_ok() {
            let _ = ledger.maintenance().prepare_space();
        }
        drop(ledger);
        for seed in 0..4 {
            let (disk, mut history) = (disk.fork(at * 10 + seed), history.clone());
            if seed == 3 {
                disk.restart_process()
            } else {
                disk.restart_after_power_cut()
            }
            // The start itself may need a file. With none to be had it says so, and loses nothing.
            let names = disk.list().expect("it is on");
            if !names.iter().any(|name| name == "spare" || name.starts_with("reserve")) {
                disk.set_capacity(None);
            }
            let mut ledger =
                history.open_and_check(&disk).unwrap_or_else(|error| panic!("at {at}: {error:?}"));
            disk.set_capacity(None);
            ledger.maintenance().prepare_space().expect("there is room again");
            history.append(&mut ledger, 40).expect("there is room again");
            drop(ledger);
            disk.restart_after_power_cut();
            history.open_and_check(&disk).unwrap_or_else(|error| panic!("at {at}: {error:?}"));
        }
    }
}

/// What a start copied into a file of the reserve must not be found in the reserve again.
#[test]
fn a_crash_while_recovering_into_a_reserve_file_leaves_the_reserve_blank() {
    for (at, again, seed) in
        (0..2).flat_map(|at| (0..12).flat_map(move |again| (0..8).map(move |seed| (at, again, seed))))
    {
        let (disk, mut history, mut ledger) = ledger_on_full_disk(seed);
        while ledger.space_level(0) == SpaceLevel::Plenty {
            history.append(&mut ledger, 1).expect("there is room");
            let _ = ledger.maintenance().prepare_space();
        }
        // A large record in doubt after a small one, then a start that copies it, then a power cut that takes both.
        disk.crash_after(at);
        history.append(&mut ledger, 40).expect_err("the machine goes off");
        drop(ledger);
        disk.restart_process();
        disk.crash_after(again);
        let _ = history.open_and_check(&disk);
        disk.restart_after_power_cut();
        let fail = |error| panic!("{at}, {again}, {seed}: {error:?}");
        let mut ledger = history.open_and_check(&disk).unwrap_or_else(fail);
        let _ = history.append(&mut ledger, 1);
        drop(ledger);
        disk.restart_after_power_cut();
        disk.set_capacity(None);
        history.open_and_check(&disk).unwrap_or_else(fail);
    }
}

#[test]
fn repeated_restarts_on_a_full_disk_do_not_consume_the_reserve() {
    let (disk, mut history, mut ledger) = ledger_on_full_disk(4);
    history.append(&mut ledger, 5).expect("there is room");
    disk.set_capacity(Some(disk.used_bytes()));
    drop(ledger);
    for _ in 0..20 {
        disk.restart_after_power_cut();
        disk.set_capacity(Some(disk.used_bytes()));
        let ledger = history.open_and_check(&disk).expect("there is the reserve");
        let _ = ledger.maintenance().prepare_space();
    }
    let mut ledger = history.open_and_check(&disk).expect("there is the reserve");
    let _ = ledger.maintenance().prepare_space();
    assert!(fill(&mut history, &mut ledger).len() > 1, "there is room for something");
}

#[test]
fn recovery_removes_unfinished_files() {
    let options = || LedgerOptions { reserve: Some(8 * 4_096), ..small_options() };
    for at in 0..32 {
        let (disk, mut history) = (FaultyDisk::new(at), ExpectedLedger::default());
        let mut ledger = history.open_and_check_with(&disk, options()).expect("there is room");
        history.append(&mut ledger, 5).expect("there is room");
        disk.crash_after(at);
        let _ = ledger.maintenance().prepare_space();
        let _ = history.checkpoint(&ledger);
        drop(ledger);
        disk.restart_process();
        history.open_and_check_with(&disk, options()).expect("it opens");
        let names = disk.list().unwrap();
        assert!(!names.iter().any(|name| name.ends_with(".new") || name == "taken"), "at {at}: {names:?}");
    }
}
