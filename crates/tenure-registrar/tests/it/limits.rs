//! What gathers is bounded, and whatever the bounds are, everybody is answered.

use tenure_registrar::BatchSettings;

use crate::scenario::{ScenarioRunner, run_scenario};

#[test]
fn a_request_beyond_the_inbox_limit_is_answered_busy() {
    let mut runner = ScenarioRunner::new(BatchSettings {
        max_waiting: 2,
        max_batch: 10,
        max_sweep: 10,
        ..BatchSettings::default()
    });
    runner.run(
        "
        0    start                      -> append resumed at 0
        0    ann: acquire db ann 10     -> nothing
        0    bob: acquire ci bob 10     -> nothing
        0    eve: acquire os eve 10     -> eve: busy
        0    wrote                      -> publish resumed at 0; append issued 1 until 10, issued 2 until 10
        # what is being written no longer takes up room
        1    eve: acquire os eve 10     -> nothing
        1    wrote                      -> publish issued 1 until 10, issued 2 until 10; ann: granted 1; bob: granted 2; append issued 3 until 11
        1    wrote                      -> publish issued 3 until 11; eve: granted 3
        ",
    );
}

#[test]
fn requests_beyond_the_batch_limit_go_into_the_next_write() {
    let mut runner = ScenarioRunner::new(BatchSettings {
        max_waiting: 10,
        max_batch: 2,
        max_sweep: 10,
        ..BatchSettings::default()
    });
    runner.run(
        "
        0    start                      -> append resumed at 0
        0    ann: acquire a ann 10      -> nothing
        0    ann: acquire b ann 10      -> nothing
        0    ann: acquire c ann 10      -> nothing
        0    wrote                      -> publish resumed at 0; append issued 1 until 10, issued 2 until 10
        0    wrote                      -> publish issued 1 until 10, issued 2 until 10; ann: granted 1; ann: granted 2; append issued 3 until 10
        0    wrote                      -> publish issued 3 until 10; ann: granted 3
        ",
    );
}

#[test]
fn the_batch_limit_counts_events_of_multi_lease_requests() {
    let mut runner = ScenarioRunner::new(BatchSettings {
        max_waiting: 10,
        max_batch: 2,
        max_sweep: 10,
        ..BatchSettings::default()
    });
    runner.run(
        "
        0    start                      -> append resumed at 0
        0    ann: acquire a+b+c ann 10  -> nothing
        0    bob: acquire d bob 10      -> nothing
        0    wrote                      -> publish resumed at 0; append issued 1 until 10, issued 2 until 10, issued 3 until 10
        0    wrote                      -> publish issued 1 until 10, issued 2 until 10, issued 3 until 10; ann: granted 1 2 3; append issued 4 until 10
        0    wrote                      -> publish issued 4 until 10; bob: granted 4
        ",
    );
}

#[test]
fn requests_behind_a_batch_without_events_are_answered() {
    // The first batch holds nothing but refusals, so that no write comes back to go on with the rest.
    let mut runner = ScenarioRunner::new(BatchSettings {
        max_waiting: 10,
        max_batch: 2,
        max_sweep: 10,
        ..BatchSettings::default()
    });
    runner.run(
        "
        0    start                      -> append resumed at 0
        0    ann: release 7             -> nothing
        0    bob: release 7             -> nothing
        0    eve: release 7             -> nothing
        0    dan: acquire db dan 10     -> nothing
        0    fay: acquire db fay 10     -> nothing
        0    wrote                      -> publish resumed at 0; ann: no such lease; bob: no such lease; append issued 1 until 10
        0    wrote                      -> publish issued 1 until 10; eve: no such lease; dan: granted 1; fay: held by dan
        ",
    );
}

#[test]
fn limits_of_zero_neither_stop_the_writer_nor_make_it_spin() {
    let mut runner = ScenarioRunner::new(BatchSettings {
        max_waiting: 10,
        max_batch: 0,
        max_sweep: 0,
        ..BatchSettings::default()
    });
    runner.run(
        "
        0    start                      -> append resumed at 0
        0    wrote                      -> publish resumed at 0
        0    ann: acquire db ann 1      -> append issued 1 until 1
        0    wrote                      -> publish issued 1 until 1; ann: granted 1
        1    woken                      -> append expired 1 at 1
        1    wrote                      -> publish expired 1 at 1
        ",
    );
}

#[test]
fn requests_beyond_the_batch_byte_limit_go_into_the_next_write() {
    // One grant alone is more: then it is written alone.
    let mut runner = ScenarioRunner::new(BatchSettings { max_batch_bytes: 200, ..BatchSettings::default() });
    runner.run(
        "
        0    start                      -> append resumed at 0
        0    ann: acquire a ann 10      -> nothing
        0    ann: acquire b ann 10      -> nothing
        0    wrote                      -> publish resumed at 0; append issued 1 until 10
        0    wrote                      -> publish issued 1 until 10; ann: granted 1; append issued 2 until 10
        0    wrote                      -> publish issued 2 until 10; ann: granted 2
        ",
    );
}

#[test]
fn low_disk_space_admits_renewals_and_releases_then_releases_only() {
    run_scenario(
        "
        0    start                      -> append resumed at 0
        0    wrote                      -> publish resumed at 0
        0    ann: acquire db ann 10     -> append issued 1 until 10
        0    wrote                      -> publish issued 1 until 10; ann: granted 1
        0.1  space ends-and-renewals    -> nothing
        0.1  bob: acquire ci bob 10     -> bob: no space
        0.2  ann: renew 1               -> append renewed 1 until 10.2
        0.2  wrote                      -> publish renewed 1 until 10.2; ann: renewed 1 until 10.2
        0.3  space ends-only            -> nothing
        0.3  ann: renew 1               -> ann: no space
        0.4  ann: release 1             -> append released 1
        0.4  wrote                      -> publish released 1; ann: released 1
        0.5  space plenty               -> nothing
        0.5  bob: acquire ci bob 10     -> append issued 2 until 10.5
        ",
    );
}
