//! Those who wait are told once, after they know that they wait, and never of what is over.

use tenure_registrar::BatchSettings;

use crate::scenario::{ScenarioRunner, run_scenario};

#[test]
fn a_waiter_is_served_only_when_its_grant_is_durable() {
    run_scenario(
        "
        0    start                            -> append resumed at 0
        0    wrote                            -> publish resumed at 0
        0    ann: acquire db ann 10           -> append issued 1 until 10
        0    wrote                            -> publish issued 1 until 10; ann: granted 1
        0.1  bob: acquire db bob 10 wait 20   -> append queued t1 until 20.1
        0.1  wrote                            -> publish queued t1 until 20.1; bob: waits as t1
        0.2  ann: release 1                   -> append released 1, issued 2 until 10.2
        0.9  wrote                            -> publish released 1, issued 2 until 10.2; ann: released 1; t1 served 2
        ",
    );
}

#[test]
fn a_waiter_receives_its_ticket_before_its_grant() {
    // Both in one write. The other way round nobody knows whose ticket that is, and the waiter waits on for
    // what it has.
    run_scenario(
        "
        0    start                            -> append resumed at 0
        0    wrote                            -> publish resumed at 0
        0    ann: acquire db ann 10           -> append issued 1 until 10
        0    bob: acquire db bob 10 wait 20   -> nothing
        0    ann: release 1                   -> nothing
        0    wrote                            -> publish issued 1 until 10; ann: granted 1; append queued t1 until 20, released 1, issued 2 until 10
        0    wrote                            -> publish queued t1 until 20, released 1, issued 2 until 10; bob: waits as t1; ann: released 1; t1 served 2
        ",
    );
}

#[test]
fn a_waiting_request_is_answered_too_late_if_its_grant_expired_during_the_write() {
    run_scenario(
        "
        0    start                            -> append resumed at 0
        0    wrote                            -> publish resumed at 0
        0    ann: acquire db ann 10           -> append issued 1 until 10
        0    wrote                            -> publish issued 1 until 10; ann: granted 1
        0    bob: acquire db bob 2 wait 20    -> append queued t1 until 20
        0    wrote                            -> publish queued t1 until 20; bob: waits as t1
        0.5  ann: release 1                   -> append released 1, issued 2 until 2.5
        # the disk stalls for longer than bob's whole lease
        6    wrote                            -> publish released 1, issued 2 until 2.5; ann: released 1; t1 too late; append expired 2 at 6
        ",
    );
}

#[test]
fn a_timed_out_waiter_is_notified_and_not_granted_later() {
    run_scenario(
        "
        0    start                            -> append resumed at 0
        0    wrote                            -> publish resumed at 0
        0    ann: acquire db ann 10           -> append issued 1 until 10
        0    wrote                            -> publish issued 1 until 10; ann: granted 1
        0    bob: acquire db bob 10 wait 0.5  -> append queued t1 until 0.5
        0    wrote                            -> publish queued t1 until 0.5; bob: waits as t1
        0    wake                             -> at 0.5
        0.5  woken                            -> append left t1 at 0.5
        0.5  wrote                            -> publish left t1 at 0.5; t1 unserved TimedOut
        0.6  ann: release 1                   -> append released 1
        ",
    );
}

#[test]
fn an_expiry_grants_the_next_waiter_without_a_request() {
    run_scenario(
        "
        0    start                            -> append resumed at 0
        0    wrote                            -> publish resumed at 0
        0    ann: acquire a+b ann 1           -> append issued 1 until 1, issued 2 until 1
        0    wrote                            -> publish issued 1 until 1, issued 2 until 1; ann: granted 1 2
        0    bob: acquire a+b bob 10 wait 20  -> append queued t1 until 20
        0    wrote                            -> publish queued t1 until 20; bob: waits as t1
        1    woken                            -> append expired 1 at 1, expired 2 at 1, issued 3 until 11, issued 4 until 11
        1    wrote                            -> publish expired 1 at 1, expired 2 at 1, issued 3 until 11, issued 4 until 11; t1 served 3 4
        ",
    );
}

#[test]
fn a_stalled_disk_does_not_time_out_a_waiter_granted_in_time() {
    let mut runner = ScenarioRunner::new(BatchSettings {
        max_waiting: 10,
        max_batch: 1,
        max_sweep: 10,
        ..BatchSettings::default()
    });
    runner.run(
        "
        0    start                            -> append resumed at 0
        0    wrote                            -> publish resumed at 0
        0    ann: acquire db ann 60           -> append issued 1 until 60
        0    wrote                            -> publish issued 1 until 60; ann: granted 1
        0    bob: acquire db bob 60 wait 2    -> append queued t1 until 2
        1    dan: acquire ci dan 60           -> nothing
        1.9  ann: release 1                   -> nothing
        6    wrote                            -> publish queued t1 until 2; bob: waits as t1; append issued 2 until 61
        6    wrote                            -> publish issued 2 until 61; dan: granted 2; append released 1, issued 3 until 61.9, marked 6
        6    wrote                            -> publish released 1, issued 3 until 61.9, marked 6; ann: released 1; t1 served 3
        ",
    );
}
