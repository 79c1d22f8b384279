//! The machine goes off in the middle of every single operation of a ledger's life: nothing that was acknowledged is
//! ever missing, nothing else is ever there, and the ledger goes on.

use tenure_faulty_disk::FaultyDisk;
use tenure_ledger::Ledger as _;
use tenure_ledger::embedded::EmbeddedLedger;

use crate::expected_ledger::{ExpectedLedger, prune};

/// How a machine comes back.
#[derive(Debug, Clone, Copy)]
enum RestartKind {
    /// After a power cut.
    PowerCut,
    /// Only the process was gone.
    Killed,
    /// The process first, and then the power, before the system wrote anything by itself.
    KilledThenPowerCut,
}

const RESTARTS: [RestartKind; 5] = [
    RestartKind::PowerCut,
    RestartKind::PowerCut,
    RestartKind::PowerCut,
    RestartKind::Killed,
    RestartKind::KilledThenPowerCut,
];

/// Says whether it came to its end. Whatever fails before a crash is a failure of the test.
fn run_workload(disk: &FaultyDisk, history: &mut ExpectedLedger) -> bool {
    // The first after a start takes several sectors, so that it can be torn.
    let sizes = [30, 1, 3, 40, 1, 1, 30, 2, 25, 1, 9, 14];
    let lived = || -> Option<()> {
        for round in 0..3 {
            let mut ledger = history.open_and_check(disk).ok()?;
            ledger.maintenance().prepare_space().ok()?;
            for (index, count) in sizes.into_iter().enumerate() {
                history.append(&mut ledger, count).ok()?;
                match index {
                    3 | 8 => history.checkpoint(&ledger).ok()?,
                    6 => ledger.maintenance().prepare_space().ok()?,
                    // Right after another one, with no change of a segment in between.
                    9 => {
                        history.checkpoint(&ledger).ok()?;
                        prune(&ledger).then_some(())?;
                    }
                    _ => {}
                }
            }
            // The second end is not an orderly one.
            if round != 1 {
                ledger.close().ok()?;
            }
        }
        Some(())
    };
    let is_done = { lived }().is_some();
    assert!(is_done || disk.is_powered_off(), "something failed on a disk that did not");
    is_done
}

/// The ledger on a disk that came back holds what it must, and goes on, through another end and another start.
fn append_reopen_and_check(disk: &FaultyDisk, history: &mut ExpectedLedger) {
    let mut ledger = open_or_panic(disk, history);
    // One small record, and then a look at all behind it: nothing of what was torn may be left there.
    history.append(&mut ledger, 2).expect("it goes on");
    drop(ledger);
    let mut ledger = open_or_panic(disk, history);
    for count in [33, 1, 17] {
        history.append(&mut ledger, count).expect("it goes on");
    }
    history.check(&ledger);
    ledger.close().expect("an orderly end");
    open_or_panic(disk, history);
}

fn open_or_panic(disk: &FaultyDisk, history: &mut ExpectedLedger) -> EmbeddedLedger {
    history.open_and_check(disk).unwrap_or_else(|error| panic!("it does not open: {error:?}"))
}

fn restart(disk: &FaultyDisk, back: RestartKind, history: &mut ExpectedLedger) {
    match back {
        RestartKind::PowerCut => disk.restart_after_power_cut(),
        RestartKind::Killed => disk.restart_process(),
        RestartKind::KilledThenPowerCut => {
            disk.restart_process();
            let mut ledger = open_or_panic(disk, history);
            for count in [20, 1] {
                history.append(&mut ledger, count).expect("it goes on");
            }
            drop(ledger);
            disk.restart_after_power_cut();
        }
    }
}

/// Every point at which the machine can go off in a life, with the disk as it is then.
fn for_each_crash_point(mut visit: impl FnMut(u64, FaultyDisk, ExpectedLedger)) {
    for at in 0.. {
        let (disk, mut history) = (FaultyDisk::new(at), ExpectedLedger::default());
        disk.crash_after(at);
        let is_done = run_workload(&disk, &mut history);
        if is_done {
            assert!(at > 200, "a life has many operations, not {at}");
            return;
        }
        visit(at, disk, history);
    }
}

// S2-4, S2-14: what was acknowledged survives a crash at any point.
#[test]
fn acknowledged_batches_survive_a_crash_at_every_disk_operation() {
    for_each_crash_point(|at, disk, history| {
        for (seed, back) in (0..).zip(RESTARTS) {
            let (disk, mut history) = (disk.fork(at * 100 + seed), history.clone());
            let context = format!("operation {at}, seed {seed}, {back:?}");
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                restart(&disk, back, &mut history);
                append_reopen_and_check(&disk, &mut history);
            }));
            assert!(outcome.is_ok(), "{context}");
        }
    });
}

#[test]
fn acknowledged_batches_survive_a_second_crash_during_recovery() {
    for_each_crash_point(|at, disk, history| {
        if at % 3 != 0 {
            return;
        }
        for again in 0.. {
            let (disk, mut history) = (disk.fork(at * 100 + again), history.clone());
            let back = RESTARTS[usize::try_from(at + again).unwrap() % RESTARTS.len()];
            if at % 2 == 0 {
                disk.restart_after_power_cut()
            } else {
                disk.restart_process()
            }
            disk.crash_after(again);
            let is_done = history.open_and_check(&disk).is_ok();
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                restart(&disk, back, &mut history);
                append_reopen_and_check(&disk, &mut history);
            }));
            assert!(outcome.is_ok(), "operation {at}, then operation {again} of the start, {back:?}");
            if is_done {
                break;
            }
        }
    });
}
