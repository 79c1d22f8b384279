//! Nobody hears of anything that is not durable.

use tenure_core::kernel::Tick;
use tenure_registrar::{Effect, Input, Reply, RequestId};

use crate::scenario::{ScenarioRunner, run_scenario};

#[test]
fn no_request_is_answered_before_the_start_is_durable() {
    run_scenario(
        "
        0    start                      -> append resumed at 0
        0.1  ann: release 7             -> nothing
        0.2  bob: acquire db bob 10     -> nothing
        0.3  woken                      -> nothing
        0.3  wake                       -> never
        5    wrote                      -> publish resumed at 0; append issued 1 until 10.2, marked 5
        5.1  wrote                      -> publish issued 1 until 10.2, marked 5; ann: no such lease; bob: granted 1
        ",
    );
}

#[test]
fn a_grant_is_answered_only_after_its_write_came_back() {
    run_scenario(
        "
        0    start                      -> append resumed at 0
        0    wrote                      -> publish resumed at 0
        1    ann: acquire db ann 10     -> append issued 1 until 11
        1.2  woken                      -> nothing
        1.3  wrote                      -> publish issued 1 until 11; ann: granted 1
        ",
    );
}

#[test]
fn a_denial_is_answered_after_the_write_of_the_grant_it_rests_on() {
    // Told earlier, bob would know of a lease that a crash could still undo.
    run_scenario(
        "
        0    start                      -> append resumed at 0
        0    wrote                      -> publish resumed at 0
        1    ann: acquire db ann 10     -> append issued 1 until 11
        1.1  bob: acquire db bob 10     -> nothing
        1.2  wrote                      -> publish issued 1 until 11; ann: granted 1; bob: held by ann
        1.3  eve: acquire db eve 10     -> eve: held by ann
        ",
    );
}

#[test]
fn a_denial_in_the_batch_of_its_grant_is_answered_after_the_write() {
    run_scenario(
        "
        0    start                      -> append resumed at 0
        0.1  ann: acquire db ann 10     -> nothing
        0.2  bob: acquire db bob 10     -> nothing
        0.3  wrote                      -> publish resumed at 0; append issued 1 until 10.1
        0.4  wrote                      -> publish issued 1 until 10.1; ann: granted 1; bob: held by ann
        ",
    );
}

#[test]
fn durable_events_are_published_before_replies() {
    // Whoever asks a view after its own answer must find what it was told.
    run_scenario(
        "
        0    start                      -> append resumed at 0
        0    ann: acquire db ann 10     -> nothing
        0    bob: acquire ci bob 10     -> nothing
        0    wrote                      -> publish resumed at 0; append issued 1 until 10, issued 2 until 10
        0    wrote                      -> publish issued 1 until 10, issued 2 until 10; ann: granted 1; bob: granted 2
        ",
    );
}

#[test]
fn a_grant_expired_when_its_write_returns_is_answered_too_late() {
    run_scenario(
        "
        0    start                      -> append resumed at 0
        0    wrote                      -> publish resumed at 0
        1    ann: acquire db ann 5      -> append issued 1 until 6
        1    bob: acquire ci bob 6      -> nothing
        6    wrote                      -> publish issued 1 until 6; ann: too late; append issued 2 until 7, expired 1 at 6
        6.9  wrote                      -> publish issued 2 until 7, expired 1 at 6; bob: granted 2
        ",
    );
}

#[test]
fn a_renewal_expired_when_its_write_returns_is_answered_too_late() {
    run_scenario(
        "
        0    start                      -> append resumed at 0
        0    wrote                      -> publish resumed at 0
        0    ann: acquire db ann 5      -> append issued 1 until 5
        0    wrote                      -> publish issued 1 until 5; ann: granted 1
        1    ann: renew 1               -> append renewed 1 until 6
        9    wrote                      -> publish renewed 1 until 6; ann: too late; append expired 1 at 9
        ",
    );
}

#[test]
fn a_request_is_stamped_on_arrival() {
    let mut runner = ScenarioRunner::new(Default::default());
    runner.run("0 start -> append resumed at 0");
    runner.run("2 ann: acquire db ann 60 -> nothing");
    runner.run("30 wrote -> publish resumed at 0; append issued 1 until 62, marked 30");
    let mut registrar = runner.into_registrar();
    let effects = registrar.step(Input::Appended(Ok(())), 31_000_000);
    let stamps = effects.iter().filter_map(|effect| match effect {
        Effect::Answer { request: RequestId(0), reply: Reply::Answered { stamp, .. } } => Some(*stamp),
        _ => None,
    });
    assert_eq!(stamps.collect::<Vec<_>>(), [Tick(2_000_000)], "a holder counts its time from its sending");
}

#[test]
fn requests_without_events_are_answered_immediately() {
    run_scenario(
        "
        0    start                      -> append resumed at 0
        0    wrote                      -> publish resumed at 0
        1    ann: release 9             -> ann: no such lease
        2    ann: renew 9               -> ann: no such lease
        2    wake                       -> never
        ",
    );
}
