//! How a writer starts and how it ends.

use tenure_core::kernel::{ClockReading, Event, KernelState, Tick};
use tenure_registrar::{BatchSettings, Registrar, StartFailure};

use crate::scenario::{ScenarioRunner, TAG, WALL, run_scenario};

#[test]
fn after_an_append_that_was_not_written_requests_are_unavailable() {
    run_scenario(
        "
        0    start                      -> append resumed at 0
        0    wrote                      -> publish resumed at 0
        1    ann: acquire db ann 10     -> append issued 1 until 11
        1    bob: acquire ci bob 10     -> nothing
        2    failed not-written         -> ann: unavailable; bob: unavailable; step down NotWritten
        2    wake                       -> never
        3    ann: acquire db ann 10     -> ann: unavailable
        4    woken                      -> nothing
        ",
    );
}

#[test]
fn an_overtaken_writer_answers_pending_requests_unavailable() {
    run_scenario(
        "
        0    start                      -> append resumed at 0
        0    wrote                      -> publish resumed at 0
        1    ann: acquire db ann 10     -> append issued 1 until 11
        2    failed overtaken           -> ann: unavailable; step down Overtaken
        3    ann: release 1             -> ann: unavailable
        ",
    );
}

#[test]
fn after_an_append_of_unknown_outcome_its_requests_are_answered_outcome_unknown() {
    run_scenario(
        "
        0    start                      -> append resumed at 0
        0    wrote                      -> publish resumed at 0
        1    ann: acquire db ann 10     -> append issued 1 until 11
        1    bob: acquire db bob 10     -> nothing
        2    failed unknown             -> ann: outcome unknown; bob: unavailable; step down OutcomeUnknown
        ",
    );
}

#[test]
fn a_failed_start_answers_requests_unavailable() {
    run_scenario(
        "
        0    start                      -> append resumed at 0
        1    ann: acquire db ann 10     -> nothing
        2    failed unknown             -> ann: unavailable; step down OutcomeUnknown
        ",
    );
}

#[test]
fn the_state_of_a_failed_writer_is_not_fully_durable() {
    let mut runner = ScenarioRunner::new(BatchSettings::default());
    runner.run(
        "
        0    start                      -> append resumed at 0
        0    wrote                      -> publish resumed at 0
        1    ann: acquire db ann 10     -> append issued 1 until 11
        2    failed not-written         -> ann: unavailable; step down NotWritten
        ",
    );
    assert_eq!(runner.registrar().state().lease_count(), 1);
    assert!(!runner.registrar().is_fully_durable(), "its state has a lease that no ledger has");
}

#[test]
fn a_restart_on_the_same_clock_counts_the_downtime() {
    run_scenario(
        "
        50   start                      -> append resumed at 0
        50   wrote                      -> publish resumed at 0
        51   ann: acquire db ann 10     -> append issued 1 until 11
        51   wrote                      -> publish issued 1 until 11; ann: granted 1
        # the process was gone for six seconds; ann's time went on
        57   start                      -> append resumed at 7
        57   wrote                      -> publish resumed at 7
        58   ann: renew 1               -> append renewed 1 until 18
        58   wrote                      -> publish renewed 1 until 18; ann: renewed 1 until 18
        ",
    );
}

#[test]
fn a_lease_that_expired_during_downtime_is_published_after_the_start() {
    run_scenario(
        "
        50   start                      -> append resumed at 0
        50   wrote                      -> publish resumed at 0
        51   ann: acquire db ann 10     -> append issued 1 until 11
        51   wrote                      -> publish issued 1 until 11; ann: granted 1
        90   start                      -> append resumed at 40
        90   wrote                      -> publish resumed at 40; append expired 1 at 40
        ",
    );
}

#[test]
fn a_restart_on_another_clock_counts_no_downtime() {
    run_scenario(
        "
        50   start                      -> append resumed at 0
        50   wrote                      -> publish resumed at 0
        51   ann: acquire db ann 10     -> append issued 1 until 11
        51   wrote                      -> publish issued 1 until 11; ann: granted 1
        53   woken                      -> append marked 3
        53   wrote                      -> publish marked 3
        # whatever another clock says, it says nothing about the time in between
        90   start on boot-b            -> append resumed at 3
        90   wrote                      -> publish resumed at 3
        90   wake                       -> at 91
        97   ann: renew 1               -> append renewed 1 until 20
        97   wrote                      -> publish renewed 1 until 20; ann: renewed 1 until 20
        9    start on boot-c            -> append resumed at 10
        9    wrote                      -> publish resumed at 10
        9    wake                       -> at 10
        ",
    );
}

#[test]
fn an_unacknowledged_grant_is_gone_after_a_crash() {
    run_scenario(
        "
        0    start                      -> append resumed at 0
        0    wrote                      -> publish resumed at 0
        1    ann: acquire db ann 10     -> append issued 1 until 11
        2    start                      -> append resumed at 2
        2    wrote                      -> publish resumed at 2
        3    bob: acquire db bob 10     -> append issued 1 until 13
        3    wrote                      -> publish issued 1 until 13; bob: granted 1
        ",
    );
}

#[test]
fn a_wall_clock_set_back_between_starts_stays_monotonic() {
    let mut runner = ScenarioRunner::new(BatchSettings::default());
    let wall_now = |runner: &ScenarioRunner| {
        let state = runner.replayed_state();
        state.clock().expect("a writer has started").anchor.wall_time_of(state.now())
    };
    runner.run("0 start -> append resumed at 0");
    runner.run("0 wrote -> publish resumed at 0");
    runner.run("1 ann: acquire db ann 86400 -> append issued 1 until 86401");
    runner.run("1 wrote -> publish issued 1 until 86401; ann: granted 1");
    runner.run("2 start at wall -99999999 -> append resumed at 2");
    runner.run("2 wrote -> publish resumed at 2");
    assert_eq!(wall_now(&runner), WALL + 2_000_000_000, "never back");
    runner.run("3 start at wall 99999999 -> append resumed at 3");
    runner.run("3 wrote -> publish resumed at 3");
    assert_eq!(wall_now(&runner), WALL + 99_999_999_000_000_000, "forwards, to what the clock says");
    // Through all of this the lease ends when it was going to.
    runner.run("4 ann: renew 1 for 1 -> ann: renewed 1 until 86401");
}

#[test]
fn start_fails_when_the_last_tick_leaves_no_time() {
    let mut state = KernelState::new(TAG, Default::default(), Default::default());
    let reading = ClockReading { clock: "boot-a".into(), microseconds: 5 };
    let at = Tick(u64::MAX - 1_000);
    state
        .apply(&Event::Resumed { at, reading: reading.clone(), wall_anchor: WALL, wall_clock: WALL })
        .expect("a first start");
    let started = Registrar::start(crate::scenario::LEDGER, state, reading, WALL, BatchSettings::default());
    assert_eq!(started.err(), Some(StartFailure::TimeExhausted));
}
