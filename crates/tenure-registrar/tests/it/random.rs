//! Random requests, stalls, failures and crashes, through random bounds.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use tenure_core::kernel::{
    Acquire, Command, ContentionPolicy, Fence, Holder, LeaseCredential, Principal, TickDuration,
};
use tenure_core::lease::ReleaseReason;
use tenure_registrar::{AppendFailure, BatchSettings};

use crate::harness::RegistrarHarness;
use crate::scenario_syntax;

/// Few names and few lengths, so that requests meet; whole quarters of a second, so that ends are hit exactly.
#[derive(Debug, Clone)]
enum Action {
    Acquire { resource: u8, holder: u8, quarters: u64, shared: bool, wait: Option<u64> },
    Renew { lease: u64, quarters: Option<u64> },
    Release { lease: u64 },
    WriteReturns,
    WriteFails(AppendFailure),
    Wake,
    WakeWhenDue,
    Crash { write_kept: bool, reboot: bool },
}

const QUARTER: u64 = 250_000;

/// What was found is tried again on the next run; the file is not part of the repository.
fn config() -> ProptestConfig {
    let file = FileFailurePersistence::Direct("proptest-regressions/registrar.txt");
    ProptestConfig { failure_persistence: Some(Box::new(file)), ..ProptestConfig::default() }
}

fn settings() -> impl Strategy<Value = BatchSettings> {
    (1..12_usize, 1..5_usize, 1..4_usize).prop_map(|(inbox, batch, sweep)| BatchSettings {
        max_waiting: inbox,
        max_batch: batch,
        max_sweep: sweep,
        ..BatchSettings::default()
    })
}

/// Mostly no time at all, so that requests gather; sometimes so much that leases run out.
fn delay() -> impl Strategy<Value = u64> {
    prop_oneof![6 => Just(0), 3 => 1..3_u64, 1 => 3..12_u64].prop_map(|quarters| quarters * QUARTER)
}

fn request() -> impl Strategy<Value = Action> {
    let wait = prop_oneof![Just(None), (1..12_u64).prop_map(Some)];
    prop_oneof![
        4 => (0..3_u8, 0..4_u8, 4..10_u64, any::<bool>(), wait)
            .prop_map(|(resource, holder, quarters, shared, wait)| {
                Action::Acquire { resource, holder, quarters, shared, wait }
            }),
        4 => (0..4_u64, proptest::option::of(4..10_u64))
            .prop_map(|(lease, quarters)| Action::Renew { lease, quarters }),
        1 => (0..4_u64).prop_map(|lease| Action::Release { lease }),
    ]
}

/// A disk that works, however slowly.
fn any_slow_disk_action() -> impl Strategy<Value = Action> {
    prop_oneof![8 => request(), 4 => Just(Action::WriteReturns), 1 => Just(Action::Wake), 2 => Just(Action::WakeWhenDue)]
}

/// A disk that also fails, and a process that dies.
fn any_failing_disk_action() -> impl Strategy<Value = Action> {
    use AppendFailure::{NotWritten, OutcomeUnknown, Overtaken};
    let failure = prop_oneof![Just(Overtaken), Just(NotWritten), Just(OutcomeUnknown)];
    let crash = any::<(bool, bool)>().prop_map(|(write_kept, reboot)| Action::Crash { write_kept, reboot });
    prop_oneof![40 => any_slow_disk_action(), 1 => failure.prop_map(Action::WriteFails), 2 => crash]
}

fn perform(world: &mut RegistrarHarness, act: &Action) {
    // The newest leases: those that are still being written among them.
    let lease = |back: u64| Fence(world.last_fence().saturating_sub(back));
    match act {
        Action::Acquire { resource, holder, quarters, shared, wait } => {
            let mode = if *shared { "shared" } else { "exclusive" };
            let name = format!("holder-{holder}");
            world.request(Command::Acquire(Acquire {
                principal: Principal::parse(&name).expect("a principal"),
                holder: Holder::parse(&name).expect("a holder"),
                requests: vec![scenario_syntax::parse_lease_request(
                    &format!("thing-{resource}/{mode}"),
                    TickDuration(quarters * QUARTER),
                )],
                contention_policy: wait.map_or(ContentionPolicy::Deny, |quarters| ContentionPolicy::Queue {
                    wait_timeout: TickDuration(quarters * QUARTER),
                }),
                key: None,
            }));
        }
        Action::Renew { lease: back, quarters } => {
            let ttl = quarters.map(|quarters| TickDuration(quarters * QUARTER));
            world.request(Command::Renew { lease: lease(*back), credential: LeaseCredential::Token, ttl });
        }
        Action::Release { lease: back } => {
            let reason = ReleaseReason::Completed;
            world.request(Command::Release { lease: lease(*back), claim: LeaseCredential::Token, reason });
        }
        Action::WriteReturns => world.complete_write(),
        Action::WriteFails(failure) => world.fail_write(*failure),
        Action::Wake => world.wake(),
        Action::WakeWhenDue => world.wake_when_due(),
        Action::Crash { write_kept, reboot } => world.crash(*write_kept, *reboot),
    }
}

fn run(settings: BatchSettings, acts: &[(u64, Action)]) {
    let mut world = RegistrarHarness::new(settings);
    for (delay, act) in acts {
        world.advance_clock(*delay);
        perform(&mut world, act);
    }
    world.complete_all_writes();
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_request_is_answered_once_and_timely_renewals_succeed_on_a_slow_disk(
        settings in settings(),
        acts in proptest::collection::vec((delay(), any_slow_disk_action()), 1..120),
    ) {
        // S2-3: what was acknowledged, replayed, is the state.
        run(settings, &acts);
    }

    #[test]
    fn acknowledged_results_survive_failed_writes_and_crashes(
        settings in settings(),
        acts in proptest::collection::vec((delay(), any_failing_disk_action()), 1..120),
    ) {
        run(settings, &acts);
    }
}

/// A random world found this: after a start, whose turn has come is looked at once more, and that must not pass the inbox.
#[test]
fn a_timely_renewal_succeeds_right_after_a_restart() {
    let settings = BatchSettings { max_waiting: 5, max_batch: 2, max_sweep: 1, ..BatchSettings::default() };
    let acquire =
        |resource, quarters, wait| Action::Acquire { resource, holder: 0, quarters, shared: false, wait };
    let renew = |lease| Action::Renew { lease, quarters: None };
    let acts = [
        (0, acquire(2, 4, None)),
        (0, acquire(2, 4, Some(1))),
        (0, acquire(0, 9, None)),
        (0, Action::WriteReturns),
        (0, Action::WriteReturns),
        (0, Action::WriteReturns),
        (0, Action::Crash { write_kept: false, reboot: false }),
        (QUARTER, Action::Wake),
        (7 * QUARTER, acquire(0, 4, Some(2))),
        (0, acquire(1, 4, None)),
        (0, renew(2)),
        (0, acquire(0, 4, None)),
        (0, renew(1)),
        (QUARTER, Action::WriteReturns),
        (0, Action::WriteReturns),
        (0, acquire(0, 4, None)),
    ];
    run(settings, &acts);
}
