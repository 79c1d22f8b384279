//! When not everything may be granted: a disk that is full, a ledger that was put back from a copy.

use tenure_core::kernel::{
    AdmissionLevel, ApplyError, Command, CommandOutcome, Event, Fence, KernelState, LeaseCredential, Limits,
    Tick,
};
use tenure_core::lease::ReleaseReason;

use crate::scenario::ScenarioWorld;

/// alice holds, bob and carol wait, dora reads.
fn contended() -> ScenarioWorld {
    let mut world = ScenarioWorld::new(Limits::default());
    world.play(
        "
         0  acquire db alice 60            -> granted 1
         1  acquire db bob 30 wait 600     -> queued t1 place 1 behind alice until 601
         2  acquire db carol 30 wait 600   -> queued t2 place 2 behind alice bob until 602
         3  acquire docs/shared dora 60    -> granted 2
    ",
    );
    world
}

#[test]
fn renewals_only_level_rejects_new_leases() {
    let mut world = contended();
    world.state.set_admission_level(AdmissionLevel::Renewals);
    world.play(
        "
         4  acquire cache erin 30          -> no space
         4  acquire db erin 30             -> held by alice until 60, 2 waiting
         4  acquire db erin 30 wait 9      -> no space
         5  renew 1                        -> renewed 1 until 65
         6  transfer 1 to erin             -> no space
         6  downgrade 1 shared             -> no space
         7  acquire docs/shared dora 60 refresh  -> granted 2
         8  release 1                      -> released 1
         9  acquire db erin 30             -> held by bob until 601, 2 waiting
    ",
    );
}

#[test]
fn nothing_level_only_lets_leases_end() {
    let mut world = contended();
    world.state.set_admission_level(AdmissionLevel::Nothing);
    world.play(
        "
         4  renew 1                        -> no space
         5  acquire docs/shared dora 60 refresh  -> no space
         5  acquire docs/shared dora 30 refresh  -> granted 2
         6  withdraw t2 by carol           -> left t2 Withdrawn, withdrawn
        60  expire                         -> expired 1, swept
        63  renew 2                        -> expired 2, 2 is over: expired
        64  serve 10                       -> no space
    ",
    );
}

#[test]
fn waiters_are_served_when_admission_returns() {
    let mut world = contended();
    world.state.set_admission_level(AdmissionLevel::Renewals);
    world.play("10  release 1                      -> released 1");
    world.state.set_admission_level(AdmissionLevel::Everything);
    world.play(
        "
        11  serve 10                       -> served t1 with 3, swept
        12  serve 10                       -> swept
        13  release 3                      -> served t2 with 4, released 3
    ",
    );
}

#[test]
fn serve_is_limited_to_a_number_of_waiters() {
    let mut world = ScenarioWorld::new(Limits::default());
    world.play(
        "
         0  acquire a one 60               -> granted 1
         0  acquire b two 60               -> granted 2
         1  acquire a bob 30 wait 600      -> queued t1 place 1 behind one until 601
         1  acquire b carol 30 wait 600    -> queued t2 place 1 behind two until 601
    ",
    );
    world.state.set_admission_level(AdmissionLevel::Renewals);
    world.play("2 release 1 -> released 1\n 2 release 2 -> released 2");
    world.state.set_admission_level(AdmissionLevel::Everything);
    world.play("3 serve 1 -> served t1 with 3, swept, more\n 4 serve 1 -> served t2 with 4, swept");
}

#[test]
fn idempotent_replay_requires_no_space() {
    let mut world = ScenarioWorld::new(Limits::default());
    world.play("0  acquire db alice 60 key k          -> granted 1");
    world.state.set_admission_level(AdmissionLevel::Nothing);
    world.play(
        "
         1  acquire db alice 60 key k          -> granted 1
         2  acquire db alice 60 key k body b   -> key reused
    ",
    );
}

/// What `tenure ledger restored` appends.
fn restored_event(at: u64, fence: u64, hold_until: u64) -> Event {
    let seconds = |seconds: u64| Tick(seconds * 1_000_000);
    Event::Restored { at: seconds(at), epoch: 2, fence: Fence(fence), hold_until: seconds(hold_until) }
}

#[test]
fn restore_skips_used_fences_and_holds_grants() {
    let mut world = contended();
    world.apply(&restored_event(4, 1 << 40, 100));
    world.play(
        "
         5  acquire cache erin 30          -> held back until 100
         5  renew 1                        -> held back until 100
         5  renew 1 for 1                  -> held back until 100
         5  acquire docs/shared dora 1 refresh  -> held back until 100
         6  transfer 1 to erin             -> held back until 100
         6  acquire db erin 30 wait 9      -> held back until 100
         7  release 1                      -> released 1
        63  expire                         -> expired 2, swept
        99.999999  acquire cache erin 30   -> held back until 100
        99.999999  serve 10                -> held back until 100
       100  serve 10                       -> served t1 with 1099511627777, swept
       100  acquire cache erin 30          -> granted 1099511627778
    ",
    );
}

// The original may have ended this lease and given its resource to another.
#[test]
fn idempotent_replay_is_rejected_during_the_restore_hold() {
    let mut world = ScenarioWorld::new(Limits::default());
    world.play("0  acquire db alice 60 key k          -> granted 1");
    world.apply(&restored_event(4, 1 << 40, 50));
    world.play(
        "
         5  acquire db alice 60 key k          -> held back until 50
        50  acquire db alice 60 key k          -> granted 1
    ",
    );
}

#[test]
fn restore_event_with_a_lower_fence_is_rejected() {
    let mut state = KernelState::default();
    state.apply(&restored_event(4, 1 << 40, 4)).expect("a copy was put back");
    let before = state.to_comparable();
    assert_eq!(state.apply(&restored_event(5, (1 << 40) - 1, 5)), Err(ApplyError("it takes fences back")));
    assert_eq!(state.apply(&restored_event(5, 1 << 53, 5)), Err(ApplyError("it takes fences back")));
    let hold = Err(ApplyError("it holds grants back until before it happened"));
    assert_eq!(state.apply(&restored_event(6, 1 << 40, 5)), hold);
    assert_eq!(state.to_comparable(), before);
    assert_eq!(state.restore_quarantine_until(Tick(4_000_000)), None, "nobody holds anything");
}

#[test]
fn many_waiters_are_served_in_order_in_several_decisions() {
    let mut world = ScenarioWorld::new(Limits::default());
    world.play("0  acquire db writer 60               -> granted 1");
    for reader in 0..700 {
        let behind = "behind writer until 600";
        let place = reader + 1;
        world.play(&format!(
            "1 acquire db/shared r{reader} 60 wait 599 -> queued t{place} place {place} {behind}"
        ));
    }
    let release =
        Command::Release { lease: Fence(1), claim: LeaseCredential::Token, reason: ReleaseReason::Completed };
    let decision = world.decide_and_apply(&release, Tick(2_000_000));
    assert_eq!(decision.events.len(), 1 + 512, "a release, and as many as fit into one decision");
    assert!(decision.has_more_waiters);
    world.play("3 acquire db late 60 -> held by r0 until 62, 188 waiting");
    let decision = world.decide_and_apply(&Command::ServeWaiters { max_waiters: 1_000 }, Tick(4_000_000));
    assert_eq!((decision.events.len(), decision.outcome), (188, CommandOutcome::Swept { more: false }));
    assert!(!decision.has_more_waiters);
}
