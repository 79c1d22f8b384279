//! Random requests, stalls, failures and crashes, through random bounds.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use tenure_core::kernel::{Acquire, Claim, Command, Contention, Fence, Holder, Principal, Span};
use tenure_core::lease::ReleaseReason;
use tenure_registrar::{AppendFailure, Settings};

use crate::model::World;
use crate::words;

/// Few names and few lengths, so that requests meet; whole quarters of a second, so that ends are hit exactly.
#[derive(Debug, Clone)]
enum Act {
    Acquire { resource: u8, holder: u8, quarters: u64, shared: bool, wait: Option<u64> },
    Renew { lease: u64, quarters: Option<u64> },
    Release { lease: u64 },
    WriteReturns,
    WriteFails(AppendFailure),
    Wake,
    WakeWhenAsked,
    Crash { write_kept: bool, reboot: bool },
}

const QUARTER: u64 = 250_000;

/// What was found is tried again on the next run; the file is not part of the repository.
fn config() -> ProptestConfig {
    let file = FileFailurePersistence::Direct("proptest-regressions/registrar.txt");
    ProptestConfig { failure_persistence: Some(Box::new(file)), ..ProptestConfig::default() }
}

fn settings() -> impl Strategy<Value = Settings> {
    (1..12_usize, 1..5_usize, 1..4_usize).prop_map(|(inbox, batch, sweep)| Settings {
        inbox,
        batch,
        sweep,
        ..Settings::default()
    })
}

/// Mostly no time at all, so that requests gather; sometimes so much that leases run out.
fn delay() -> impl Strategy<Value = u64> {
    prop_oneof![6 => Just(0), 3 => 1..3_u64, 1 => 3..12_u64].prop_map(|quarters| quarters * QUARTER)
}

fn request() -> impl Strategy<Value = Act> {
    let wait = prop_oneof![Just(None), (1..12_u64).prop_map(Some)];
    prop_oneof![
        4 => (0..3_u8, 0..4_u8, 4..10_u64, any::<bool>(), wait)
            .prop_map(|(resource, holder, quarters, shared, wait)| {
                Act::Acquire { resource, holder, quarters, shared, wait }
            }),
        4 => (0..4_u64, proptest::option::of(4..10_u64))
            .prop_map(|(lease, quarters)| Act::Renew { lease, quarters }),
        1 => (0..4_u64).prop_map(|lease| Act::Release { lease }),
    ]
}

/// A disk that works, however slowly.
fn slow() -> impl Strategy<Value = Act> {
    prop_oneof![8 => request(), 4 => Just(Act::WriteReturns), 1 => Just(Act::Wake), 2 => Just(Act::WakeWhenAsked)]
}

/// A disk that also fails, and a process that dies.
fn broken() -> impl Strategy<Value = Act> {
    use AppendFailure::{NotWritten, Overtaken, Unknown};
    let failure = prop_oneof![Just(Overtaken), Just(NotWritten), Just(Unknown)];
    let crash = any::<(bool, bool)>().prop_map(|(write_kept, reboot)| Act::Crash { write_kept, reboot });
    prop_oneof![40 => slow(), 1 => failure.prop_map(Act::WriteFails), 2 => crash]
}

fn happen(world: &mut World, act: &Act) {
    // The newest leases: those that are still being written among them.
    let lease = |back: u64| Fence(world.last_fence().saturating_sub(back));
    match act {
        Act::Acquire { resource, holder, quarters, shared, wait } => {
            let mode = if *shared { "shared" } else { "exclusive" };
            let name = format!("holder-{holder}");
            world.ask(Command::Acquire(Acquire {
                principal: Principal::parse(&name).expect("a principal"),
                holder: Holder::parse(&name).expect("a holder"),
                wants: vec![words::want(&format!("thing-{resource}/{mode}"), Span(quarters * QUARTER))],
                contention: wait.map_or(Contention::Refuse, |quarters| Contention::Queue {
                    patience: Span(quarters * QUARTER),
                }),
                key: None,
            }));
        }
        Act::Renew { lease: back, quarters } => {
            let ttl = quarters.map(|quarters| Span(quarters * QUARTER));
            world.ask(Command::Renew { lease: lease(*back), claim: Claim::Token, ttl });
        }
        Act::Release { lease: back } => {
            let reason = ReleaseReason::Completed;
            world.ask(Command::Release { lease: lease(*back), claim: Claim::Token, reason });
        }
        Act::WriteReturns => world.write_returns(),
        Act::WriteFails(failure) => world.write_fails(*failure),
        Act::Wake => world.wake(),
        Act::WakeWhenAsked => world.wake_when_asked(),
        Act::Crash { write_kept, reboot } => world.crash(*write_kept, *reboot),
    }
}

fn run(settings: Settings, acts: &[(u64, Act)]) {
    let mut world = World::new(settings);
    for (delay, act) in acts {
        world.pass(*delay);
        happen(&mut world, act);
    }
    world.settle();
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_request_is_answered_once_and_timely_renewals_succeed_on_a_slow_disk(
        settings in settings(),
        acts in proptest::collection::vec((delay(), slow()), 1..120),
    ) {
        // S2-3: what was acknowledged, replayed, is the state.
        run(settings, &acts);
    }

    #[test]
    fn acknowledged_results_survive_failed_writes_and_crashes(
        settings in settings(),
        acts in proptest::collection::vec((delay(), broken()), 1..120),
    ) {
        run(settings, &acts);
    }
}

/// A random world found this: after a start, whose turn has come is looked at once more, and that must not pass the inbox.
#[test]
fn a_timely_renewal_succeeds_right_after_a_restart() {
    let settings = Settings { inbox: 5, batch: 2, sweep: 1, ..Settings::default() };
    let acquire =
        |resource, quarters, wait| Act::Acquire { resource, holder: 0, quarters, shared: false, wait };
    let renew = |lease| Act::Renew { lease, quarters: None };
    let acts = [
        (0, acquire(2, 4, None)),
        (0, acquire(2, 4, Some(1))),
        (0, acquire(0, 9, None)),
        (0, Act::WriteReturns),
        (0, Act::WriteReturns),
        (0, Act::WriteReturns),
        (0, Act::Crash { write_kept: false, reboot: false }),
        (QUARTER, Act::Wake),
        (7 * QUARTER, acquire(0, 4, Some(2))),
        (0, acquire(1, 4, None)),
        (0, renew(2)),
        (0, acquire(0, 4, None)),
        (0, renew(1)),
        (QUARTER, Act::WriteReturns),
        (0, Act::WriteReturns),
        (0, acquire(0, 4, None)),
    ];
    run(settings, &acts);
}
