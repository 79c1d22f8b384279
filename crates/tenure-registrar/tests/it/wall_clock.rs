//! A wall clock that is set by decades, between runs and during them: no lease notices, and the times that people read
//! never go back.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenure_core::kernel::{Command, CommandOutcome, Fence, KernelState, LeaseCredential, Rejection, Tick};
use tenure_registrar::Reply;
use tenure_registrar::runtime::{Clock, RegistrarService, ServiceOptions};

use crate::ledger_store::ledger_store;
use crate::runtime::acquire;

const SECOND: u64 = 1_000_000;
const YEARS: u64 = 20 * 365 * 24 * 60 * 60 * 1_000_000_000;
const TODAY: u64 = 1_790_000_000_000_000_000;

/// Ticks that go on as they should, and a wall clock that anybody sets.
struct AdjustableClock {
    microseconds: AtomicU64,
    wall: AtomicU64,
}

impl AdjustableClock {
    fn advance(&self, seconds: u64) {
        self.microseconds.fetch_add(seconds * SECOND, Ordering::SeqCst);
    }
}

impl Clock for AdjustableClock {
    fn id(&self) -> Arc<str> {
        "set".into()
    }

    fn microseconds(&self) -> u64 {
        self.microseconds.load(Ordering::SeqCst)
    }

    fn wall_nanoseconds(&self) -> u64 {
        self.wall.load(Ordering::SeqCst)
    }
}

fn open(data: &Path, clock: &Arc<AdjustableClock>) -> RegistrarService {
    let ledger = ledger_store(data, 1 << 16, 0);
    RegistrarService::open(data, &ledger, ServiceOptions::default(), clock.clone()).expect("it opens")
}

fn answer(service: &RegistrarService, command: Command) -> CommandOutcome {
    match service.handle().submit_and_wait(command).reply {
        Reply::Answered { answer, .. } => answer,
        other => panic!("no answer: {other:?}"),
    }
}

/// What people are told of `tick`.
fn wall_of(state: &KernelState, tick: Tick) -> u64 {
    state.clock().expect("a writer has started").anchor.wall_time_of(tick)
}

/// A lease that `ann` has, when it ends, and what people were told about that.
struct WatchedLease {
    fence: Fence,
    ends: Tick,
    announced_end: u64,
    /// The newest time that anybody read.
    newest: u64,
}

impl WatchedLease {
    /// Everything about the lease is as it was, and the times of people went forwards.
    fn check(&mut self, service: &RegistrarService, when: &str) {
        let refused = answer(service, acquire("db", "bob", 60));
        assert!(matches!(refused, CommandOutcome::Rejected(Rejection::Held { .. })), "{when}: {refused:?}");
        let now = service.view().now();
        let (ends, announced_end, newest) = service.view().read(|state| {
            let ends = state.lease(self.fence).expect("the lease lives").terms.expires_at;
            (ends, wall_of(state, ends), wall_of(state, now))
        });
        assert_eq!(ends, self.ends, "{when}: the lease ends when it ended");
        assert!(announced_end >= self.announced_end, "{when}: what people are told of its end went back");
        assert!(newest >= self.newest, "{when}: the time of people went back");
        (self.announced_end, self.newest) = (announced_end, newest);
    }

    /// Ten seconds after it was granted or renewed: so much is added, stopped or not.
    fn renew(&mut self, service: &RegistrarService) {
        let renewed = answer(
            service,
            Command::Renew { lease: self.fence, credential: LeaseCredential::Token, ttl: None },
        );
        let CommandOutcome::Renewed { expires_at, .. } = renewed else { panic!("not renewed: {renewed:?}") };
        assert_eq!(expires_at.0 - self.ends.0, 10 * SECOND, "the time that has passed, no more");
        self.ends = expires_at;
    }
}

// S2-32, S2-38
#[test]
fn setting_the_wall_clock_by_decades_changes_no_lease_and_keeps_displayed_times_monotonic() {
    let folder = tempfile::tempdir().unwrap();
    let clock =
        Arc::new(AdjustableClock { microseconds: AtomicU64::new(SECOND), wall: AtomicU64::new(TODAY) });
    let mut service = open(folder.path(), &clock);
    let granted = answer(&service, acquire("db", "ann", 600));
    let CommandOutcome::Granted { leases } = granted else { panic!("not granted: {granted:?}") };
    let fence = leases[0];
    let ends = service.view().read(|state| state.lease(fence).unwrap().terms.expires_at);
    let mut watched = WatchedLease { fence, ends, announced_end: 0, newest: 0 };
    watched.check(&service, "at first");

    for wall in [TODAY + YEARS, TODAY - YEARS, TODAY, TODAY + 2 * YEARS, 0, u64::MAX / 2, TODAY] {
        let last = watched.newest;
        // During the run nobody reads it.
        clock.wall.store(wall, Ordering::SeqCst);
        clock.advance(10);
        watched.check(&service, &format!("set to {wall} while it runs"));
        assert_eq!(watched.newest, last + 10 * SECOND * 1_000, "ten seconds are ten seconds");

        watched.renew(&service);

        service.stop().unwrap();
        clock.advance(10);
        service = open(folder.path(), &clock);
        watched.check(&service, &format!("set to {wall} before a start"));
        watched.renew(&service);
    }

    // One tick before its end it lives, and at its end it is over, whatever year it is.
    clock.microseconds.fetch_add(600 * SECOND - 1, Ordering::SeqCst);
    watched.check(&service, "just before its end");
    clock.microseconds.fetch_add(1, Ordering::SeqCst);
    assert!(matches!(answer(&service, acquire("db", "bob", 60)), CommandOutcome::Granted { .. }));
    service.stop().unwrap();
}
