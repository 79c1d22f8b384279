//! A copy in the place of its original, on the library's level; the program's tests tell the whole story.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure_core::kernel::{CommandOutcome, Fence, HashSeed, KernelState, Limits, Rejection};
use tenure_core::ledger::EventRecord;
use tenure_ledger::signing::LedgerSigningKey;
use tenure_ledger::{Batch, ChainHash, Seq};
use tenure_registrar::Reply;
use tenure_registrar::runtime::{
    Clock, RegistrarService, Replay, ReplayError, RestoreOptions, RestoreReport, ServiceOptions,
    key_file_path, restore,
};

use crate::ledger_store::ledger_store;
use crate::runtime::acquire;
use crate::scenario::LEDGER;

/// A clock with a name, that stands still until it is moved.
struct NamedClock(&'static str, AtomicU64);

impl Clock for NamedClock {
    fn id(&self) -> Arc<str> {
        self.0.into()
    }

    fn microseconds(&self) -> u64 {
        self.1.load(Ordering::SeqCst)
    }

    fn wall_nanoseconds(&self) -> u64 {
        1_790_000_000_000_000_000
    }
}

fn clock(name: &'static str, seconds: u64) -> Arc<NamedClock> {
    Arc::new(NamedClock(name, AtomicU64::new(seconds * 1_000_000)))
}

fn open(data: &Path, clock: Arc<NamedClock>) -> RegistrarService {
    let ledger = ledger_store(data, 1 << 16, 0);
    RegistrarService::open(data, &ledger, ServiceOptions::default(), clock).expect("it opens")
}

fn ask(service: &RegistrarService, resource: &str) -> CommandOutcome {
    match service.handle().submit_and_wait(acquire(resource, "ann", 3_600)).reply {
        Reply::Answered { answer, .. } => answer,
        other => panic!("no answer: {other:?}"),
    }
}

/// A ledger in which one lease was granted at ten seconds of the clock `first`, and a copy of it.
fn copied_ledger() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let service = open(&folder.path().join("data"), clock("first", 10));
    assert_eq!(ask(&service, "db"), CommandOutcome::Granted { leases: vec![Fence(1)] });
    service.stop().unwrap();
    let ledger = ledger_store(&folder.path().join("data"), 1 << 16, 0);
    ledger.copy_to(&folder.path().join("copy")).unwrap();
    folder
}

fn restore_copy(
    data: &Path,
    clock: &NamedClock,
) -> Result<RestoreReport, tenure_registrar::runtime::RestoreFailure> {
    let recovery = ledger_store(data, 1 << 16, 0).begin_restore().unwrap();
    restore(data, recovery, Limits::default(), RestoreOptions::default(), clock)
}

fn is_held_back(answer: &CommandOutcome) -> bool {
    matches!(answer, CommandOutcome::Rejected(Rejection::RestoreHold { .. }))
}

#[test]
fn the_hold_after_a_restore_counts_from_the_restore_on_its_own_clock() {
    let folder = copied_ledger();
    let copy = folder.path().join("copy");
    // On another machine's clock, two hours after the copy by the first.
    restore_copy(&copy, &clock("second", 500)).unwrap();
    // Back on the first: of the time in between nothing may be taken off.
    let day = 24 * 3_600;
    for seconds in [7_200, day + 9] {
        let service = open(&copy, clock("first", seconds));
        assert!(is_held_back(&ask(&service, "other")), "{seconds} s on the first clock");
        service.stop().unwrap();
    }
}

#[test]
fn the_hold_after_a_restore_ends_with_time() {
    let folder = copied_ledger();
    let copy = folder.path().join("copy");
    let report = restore_copy(&copy, &clock("second", 500)).unwrap();
    assert_eq!((report.epoch, report.held_back_ms), (2, 24 * 3_600 * 1_000));
    let day = 24 * 3_600;
    let service = open(&copy, clock("second", 500 + day - 1));
    assert!(is_held_back(&ask(&service, "other")));
    service.stop().unwrap();
    let service = open(&copy, clock("second", 500 + day));
    assert_eq!(ask(&service, "other"), CommandOutcome::Granted { leases: vec![Fence(report.fence.0 + 1)] });
    service.stop().unwrap();
}

#[test]
fn a_second_restore_skips_the_fences_of_the_first() {
    let folder = copied_ledger();
    let copies = ["copy", "same"].map(|name| folder.path().join(name));
    ledger_store(&folder.path().join("data"), 1 << 16, 0).copy_to(&copies[1]).unwrap();
    let fences = copies.map(|copy| {
        // Only the witness knows that the other copy was restored.
        let mut ledger = ledger_store(&copy, 1 << 16, 0);
        ledger.options.witness = Some(folder.path().join("witness"));
        let recovery = ledger.begin_restore().unwrap();
        let options = RestoreOptions { no_holders: true, ..RestoreOptions::default() };
        restore(&copy, recovery, Limits::default(), options, &*clock("second", 500)).unwrap();
        let service = open(&copy, clock("second", 501));
        let CommandOutcome::Granted { leases } = ask(&service, "other") else { panic!("nothing is held") };
        service.stop().unwrap();
        leases[0]
    });
    assert!(fences[1] > fences[0], "{fences:?}");
}

#[test]
fn restore_with_a_foreign_key_fails_and_can_be_retried_with_the_right_key() {
    let folder = copied_ledger();
    let copy = folder.path().join("copy");
    let (own, aside) = (key_file_path(&copy), folder.path().join("aside"));
    std::fs::rename(&own, &aside).unwrap();
    LedgerSigningKey::create(&own).unwrap();
    let refused = restore_copy(&copy, &clock("second", 500)).expect_err("nobody vouches for this key");
    assert!(refused.to_string().contains("is not one of this ledger's"), "{refused}");
    std::fs::rename(&aside, &own).unwrap();
    restore_copy(&copy, &clock("second", 500)).expect("nothing was written by the first try");
    open(&copy, clock("second", 501)).stop().unwrap();
}

#[test]
fn replay_detects_a_gap_between_batches() {
    let mut replay =
        Replay::new(LEDGER, KernelState::new(LEDGER.tag(), Limits::default(), HashSeed::default()));
    let batch = |first| Batch {
        first: Seq(first),
        records: vec![EventRecord::new("song.claimed", "", "somebody", [1])],
        signature: Vec::new(),
        hash: ChainHash([7; 32]),
    };
    replay.apply(&batch(1)).expect("the first");
    let gap = replay.apply(&batch(3)).expect_err("the second is missing");
    assert!(matches!(gap, ReplayError::Gap { after: Seq(1), found: Seq(3) }), "{gap}");
    replay.apply(&batch(2)).expect("nothing was changed by the wrong one");
}
