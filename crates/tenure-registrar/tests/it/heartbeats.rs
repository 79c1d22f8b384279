//! A heartbeat that arrived in time counts, whatever the disk does meanwhile.

use tenure_registrar::BatchSettings;

use crate::scenario::{ScenarioRunner, run_scenario};

#[test]
fn a_renewal_that_arrives_in_time_succeeds_although_the_disk_stalls() {
    run_scenario(
        "
        0    start                      -> append resumed at 0
        0    wrote                      -> publish resumed at 0
        0    ann: acquire db ann 5      -> append issued 1 until 5
        0    wrote                      -> publish issued 1 until 5; ann: granted 1
        4    bob: acquire ci bob 60     -> append issued 2 until 64
        4.9  ann: renew 1               -> nothing
        # six seconds of stall, and the lease was over a long time ago if nobody had asked
        9.8  wrote                      -> publish issued 2 until 64; bob: granted 2; append renewed 1 until 9.9, marked 9.8
        9.8  wrote                      -> publish renewed 1 until 9.9, marked 9.8; ann: renewed 1 until 9.9
        ",
    );
}

#[test]
fn a_renewal_at_the_expiry_tick_is_rejected_after_the_expiry_is_published() {
    run_scenario(
        "
        0         start                 -> append resumed at 0
        0         wrote                 -> publish resumed at 0
        0         ann: acquire db ann 5 -> append issued 1 until 5
        0         wrote                 -> publish issued 1 until 5; ann: granted 1
        4.999999  bob: acquire ci bob 5 -> append issued 2 until 9.999999
        5         ann: renew 1          -> nothing
        6         wrote                 -> publish issued 2 until 9.999999; bob: granted 2; append expired 1 at 5, marked 6
        6         wrote                 -> publish expired 1 at 5, marked 6; ann: 1 is over
        ",
    );
}

#[test]
fn expiry_does_not_overtake_renewals_in_the_inbox() {
    // One request to a write: the second heartbeat is still in the inbox when the first batch is swept.
    let mut runner = ScenarioRunner::new(BatchSettings {
        max_waiting: 10,
        max_batch: 1,
        max_sweep: 10,
        ..BatchSettings::default()
    });
    runner.run(
        "
        0    start                      -> append resumed at 0
        0    ann: acquire db ann 5      -> nothing
        0    bob: acquire ci bob 5      -> nothing
        0    wrote                      -> publish resumed at 0; append issued 1 until 5
        0    wrote                      -> publish issued 1 until 5; ann: granted 1; append issued 2 until 5
        0    wrote                      -> publish issued 2 until 5; bob: granted 2
        3.9  eve: acquire os eve 60     -> append issued 3 until 63.9
        4    ann: renew 1               -> nothing
        4.1  bob: renew 2               -> nothing
        8    wrote                      -> publish issued 3 until 63.9; eve: granted 3; append renewed 1 until 9
        8    wrote                      -> publish renewed 1 until 9; ann: renewed 1 until 9; append renewed 2 until 9.1, marked 8
        8    wrote                      -> publish renewed 2 until 9.1, marked 8; bob: renewed 2 until 9.1
        ",
    );
}

#[test]
fn expiry_with_minimal_limits_keeps_leases_with_a_renewal_in_the_inbox() {
    let mut runner = ScenarioRunner::new(BatchSettings {
        max_waiting: 10,
        max_batch: 1,
        max_sweep: 1,
        ..BatchSettings::default()
    });
    runner.run(
        "
        0    start                      -> append resumed at 0
        0    ann: acquire db ann 5      -> nothing
        0    bob: acquire ci bob 5      -> nothing
        0    eve: acquire os eve 3      -> nothing
        0    wrote                      -> publish resumed at 0; append issued 1 until 5
        0    wrote                      -> publish issued 1 until 5; ann: granted 1; append issued 2 until 5
        0    wrote                      -> publish issued 2 until 5; bob: granted 2; append issued 3 until 3
        2    dan: release 9             -> nothing
        2.1  dan: release 9             -> nothing
        4.9  bob: renew 2               -> nothing
        # what eve had is over at 3, before bob's heartbeat; what ann had is over at 5, after it
        7    wrote                      -> publish issued 3 until 3; eve: too late; dan: no such lease; append expired 3 at 4.9
        7    wrote                      -> publish expired 3 at 4.9; dan: no such lease; append renewed 2 until 9.9, expired 1 at 7
        7    wrote                      -> publish renewed 2 until 9.9, expired 1 at 7; bob: renewed 2 until 9.9
        7    wake                       -> at 8
        ",
    );
}

#[test]
fn expiries_are_published_after_earlier_requests() {
    run_scenario(
        "
        0    start                      -> append resumed at 0
        0    wrote                      -> publish resumed at 0
        0    ann: acquire db ann 5      -> append issued 1 until 5
        0    wrote                      -> publish issued 1 until 5; ann: granted 1
        4.5  bob: acquire ci bob 5      -> append issued 2 until 9.5
        4.6  bob: acquire os bob 5      -> nothing
        5    wrote                      -> publish issued 2 until 9.5; bob: granted 2; append issued 3 until 9.6, expired 1 at 5
        ",
    );
}

#[test]
fn expiries_beyond_the_sweep_limit_are_published_in_the_next_writes() {
    let mut runner = ScenarioRunner::new(BatchSettings {
        max_waiting: 10,
        max_batch: 10,
        max_sweep: 2,
        ..BatchSettings::default()
    });
    runner.run(
        "
        0    start                              -> append resumed at 0
        0    wrote                              -> publish resumed at 0
        0    ann: acquire a+b+c+d+e ann 1       -> append issued 1 until 1, issued 2 until 1, issued 3 until 1, issued 4 until 1, issued 5 until 1
        0    wrote                              -> publish issued 1 until 1, issued 2 until 1, issued 3 until 1, issued 4 until 1, issued 5 until 1; ann: granted 1 2 3 4 5
        0    wake                               -> at 1
        1    woken                              -> append expired 1 at 1, expired 2 at 1
        1.2  wrote                              -> publish expired 1 at 1, expired 2 at 1; append expired 3 at 1.2, expired 4 at 1.2
        1.3  wrote                              -> publish expired 3 at 1.2, expired 4 at 1.2; append expired 5 at 1.3
        1.4  wrote                              -> publish expired 5 at 1.3
        1.4  wake                               -> never
        ",
    );
}

#[test]
fn serving_waiters_after_a_start_does_not_overtake_a_renewal_in_the_inbox() {
    // One request to a write: the heartbeat is still in the inbox when the waiters are served.
    let mut runner = ScenarioRunner::new(BatchSettings { max_batch: 1, ..BatchSettings::default() });
    runner.run(
        "
        0    start                           -> append resumed at 0
        0    wrote                           -> publish resumed at 0
        0    ann: acquire db ann 5           -> append issued 1 until 5
        0    wrote                           -> publish issued 1 until 5; ann: granted 1
        0    bob: acquire db bob 5 wait 60   -> append queued t1 until 60
        0    wrote                           -> publish queued t1 until 60; bob: waits as t1
        1    start                           -> append resumed at 1
        2    dan: release 9                  -> nothing
        4.9  ann: renew 1                    -> nothing
        6    wrote                           -> publish resumed at 1; dan: no such lease; append renewed 1 until 9.9, marked 6
        6    wrote                           -> publish renewed 1 until 9.9, marked 6; ann: renewed 1 until 9.9
        ",
    );
}
