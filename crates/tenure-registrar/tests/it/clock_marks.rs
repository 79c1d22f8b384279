//! How time is written down, when the registrar wakes, and clocks that behave badly.

use tenure_core::kernel::{ClockReading, KernelState, Tick};
use tenure_registrar::{BatchSettings, Effect, Input, Registrar, RequestId};

use crate::scenario::{LEDGER, WALL, run_scenario};
use crate::scenario_syntax;

#[test]
fn time_is_marked_every_second_while_a_short_lease_is_active() {
    run_scenario(
        "
        0    start                      -> append resumed at 0
        0    wrote                      -> publish resumed at 0
        0    wake                       -> never
        0.5  ann: acquire db ann 3      -> append issued 1 until 3.5
        0.5  wrote                      -> publish issued 1 until 3.5; ann: granted 1
        0.5  wake                       -> at 1.5
        1.4  woken                      -> nothing
        1.5  woken                      -> append marked 1.5
        1.5  wrote                      -> publish marked 1.5
        1.5  wake                       -> at 2.5
        2    ann: renew 1               -> append renewed 1 until 5
        2    wrote                      -> publish renewed 1 until 5; ann: renewed 1 until 5
        # what was written at 2 said how late it was
        2    wake                       -> at 3
        3    woken                      -> append marked 3
        3    wrote                      -> publish marked 3
        4    ann: release 1             -> append released 1
        4    wrote                      -> publish released 1; ann: released 1
        4    wake                       -> never
        9    woken                      -> nothing
        ",
    );
}

#[test]
fn the_shortest_active_ttl_sets_the_mark_interval() {
    run_scenario(
        "
        0    start                      -> append resumed at 0
        0    wrote                      -> publish resumed at 0
        0    ann: acquire db ann 86400  -> append issued 1 until 86400
        0    wrote                      -> publish issued 1 until 86400; ann: granted 1
        0    wake                       -> at 60
        0    bob: acquire ci bob 1000   -> append issued 2 until 1000
        0    wrote                      -> publish issued 2 until 1000; bob: granted 2
        0    wake                       -> at 10
        5    bob: release 2             -> append released 2
        5    wrote                      -> publish released 2; bob: released 2
        5    wake                       -> at 65
        64   woken                      -> nothing
        65   woken                      -> append marked 65
        ",
    );
}

#[test]
fn time_is_marked_while_only_denied_requests_arrive() {
    run_scenario(
        "
        0    start                      -> append resumed at 0
        0    wrote                      -> publish resumed at 0
        0    ann: acquire db ann 60     -> append issued 1 until 60
        0    wrote                      -> publish issued 1 until 60; ann: granted 1
        0.6  bob: acquire db bob 60     -> bob: held by ann
        1.2  bob: acquire db bob 60     -> append marked 1.2
        1.2  wrote                      -> publish marked 1.2; bob: held by ann
        ",
    );
}

#[test]
fn the_timer_is_never_set_past_the_next_expiry() {
    run_scenario(
        "
        0    start                      -> append resumed at 0
        0    wrote                      -> publish resumed at 0
        0    ann: acquire db ann 1.5    -> append issued 1 until 1.5
        0    wrote                      -> publish issued 1 until 1.5; ann: granted 1
        1    woken                      -> append marked 1
        1    wake                       -> never
        1    wrote                      -> publish marked 1
        1    wake                       -> at 1.5
        1.5  woken                      -> append expired 1 at 1.5
        1.5  wrote                      -> publish expired 1 at 1.5
        1.5  wake                       -> never
        ",
    );
}

#[test]
fn an_early_or_late_wake_up_is_harmless() {
    run_scenario(
        "
        0         start                  -> append resumed at 0
        0         wrote                  -> publish resumed at 0
        0         ann: acquire db ann 1  -> append issued 1 until 1
        0         wrote                  -> publish issued 1 until 1; ann: granted 1
        0.999999  woken                  -> nothing
        0.999999  wake                   -> at 1
        7         woken                  -> append expired 1 at 7
        ",
    );
}

#[test]
fn a_clock_moving_backwards_expires_nothing_early_and_does_not_spin() {
    run_scenario(
        "
        100  start                      -> append resumed at 0
        100  wrote                      -> publish resumed at 0
        110  ann: acquire db ann 5      -> append issued 1 until 15
        110  wrote                      -> publish issued 1 until 15; ann: granted 1
        # the reading falls behind: time stands still until the clock is there again
        40   woken                      -> nothing
        40   wake                       -> at 111
        41   ann: renew 1               -> ann: renewed 1 until 15
        50   bob: acquire ci bob 5      -> append issued 2 until 15
        50   wrote                      -> publish issued 2 until 15; bob: granted 2
        50   wake                       -> at 111
        115  woken                      -> append expired 1 at 15, expired 2 at 15
        ",
    );
}

#[test]
fn clock_readings_near_the_maximum_do_not_overflow() {
    let reading = ClockReading { clock: "boot-a".into(), microseconds: u64::MAX - 5 };
    let settings = BatchSettings::default();
    let (mut registrar, _) =
        Registrar::start(LEDGER, KernelState::default(), reading, WALL, settings).expect("a start");
    let ask = |caller, text: &str| Input::Request {
        caller: RequestId(caller),
        command: scenario_syntax::parse_command(&text.split(' ').collect::<Vec<_>>()),
    };
    registrar.step(Input::Appended(Ok(())), u64::MAX - 5);
    assert_eq!(registrar.step(ask(1, "acquire db ann 10"), u64::MAX - 4).len(), 1);
    registrar.step(Input::Appended(Ok(())), u64::MAX - 3);
    assert_eq!(registrar.state().now(), Tick(1));
    assert_eq!(registrar.wake_at(), Some(u64::MAX));
    assert_eq!(registrar.step(Input::Woken, u64::MAX), []);
}

#[test]
fn at_the_last_tick_all_leases_are_expired_and_acquire_is_rejected() {
    let reading = ClockReading { clock: "boot-a".into(), microseconds: 0 };
    let settings = BatchSettings::default();
    let (mut registrar, _) =
        Registrar::start(LEDGER, KernelState::default(), reading, u64::MAX, settings).expect("a start");
    let ask = |caller, text: &str| Input::Request {
        caller: RequestId(caller),
        command: scenario_syntax::parse_command(&text.split(' ').collect::<Vec<_>>()),
    };
    registrar.step(Input::Appended(Ok(())), 0);
    registrar.step(ask(1, "acquire db ann 86400"), 1);
    let effects = registrar.step(Input::Appended(Ok(())), u64::MAX);
    assert!(matches!(effects.as_slice(), [Effect::Publish(_), Effect::Answer { .. }, Effect::Append(_)]));
    registrar.step(Input::Appended(Ok(())), u64::MAX);
    assert_eq!(registrar.state().lease_count(), 0);
    let effects = registrar.step(ask(2, "acquire db bob 1"), u64::MAX);
    assert!(matches!(effects.as_slice(), [Effect::Answer { .. }]), "{effects:?}");
    assert_eq!(registrar.wake_at(), None);
}
