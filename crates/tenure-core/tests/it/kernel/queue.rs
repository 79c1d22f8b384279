//! Stories of waiting: order, patience, and what is never waited for.

use tenure_core::kernel::Limits;

use crate::scenario::{ScenarioWorld, check_scenario};

#[test]
fn waiters_are_served_in_fifo_order() {
    check_scenario(
        "
         0  acquire db alice 10             -> granted 1
         1  acquire db bob 10 wait 60       -> queued t1 place 1 behind alice until 61
         2  acquire db carol 10 wait 60     -> queued t2 place 2 behind alice bob until 62
         3  acquire db dave 10              -> held by alice until 10, 2 waiting
         4  release 1                       -> served t1 with 2, released 1
         5  release 2                       -> served t2 with 3, released 2
         6  release 3                       -> released 3
    ",
    );
}

#[test]
fn acquire_at_expiry_does_not_overtake_a_waiter() {
    check_scenario(
        "
         0  acquire db alice 10             -> granted 1
         1  acquire db bob 10 wait 60       -> queued t1 place 1 behind alice until 61
        10  acquire db carol 10             -> expired 1, served t1 with 2, held by bob until 20, 0 waiting
    ",
    );
}

#[test]
fn shared_requests_do_not_starve_a_queued_exclusive_request() {
    check_scenario(
        "
         0  acquire db/shared alice 10          -> granted 1
         1  acquire db bob 10 wait 60           -> queued t1 place 1 behind alice until 61
         2  acquire db/shared carol 10          -> held by bob until 61, 1 waiting
         2  acquire db/shared carol 10 wait 60  -> queued t2 place 2 behind bob until 62
         2  acquire db/shared dave 10 wait 60   -> queued t3 place 3 behind bob until 62
         3  release 1                           -> served t1 with 2, released 1
         4  release 2                           -> served t2 with 3, served t3 with 4, released 2
    ",
    );
}

#[test]
fn waiter_is_not_served_after_its_timeout() {
    check_scenario(
        "
         0  acquire db alice 10             -> granted 1
         0  acquire db bob 10 wait 5        -> queued t1 place 1 behind alice until 5
         0  acquire db carol 10 wait 10     -> queued t2 place 2 behind alice bob until 10
         5  release 1                       -> served t2 with 2, released 1
         6  acquire db dave 1               -> left t1 TimedOut, held by carol until 15, 0 waiting
    ",
    );
    check_scenario(
        "
         0  acquire db alice 10             -> granted 1
         0  acquire db bob 10 wait 10       -> queued t1 place 1 behind alice until 10
        10  expire                          -> expired 1, left t1 TimedOut, swept
    ",
    );
}

#[test]
fn zero_wait_timeout_is_denied_at_once() {
    check_scenario(
        "
         0  acquire db alice 10             -> granted 1
         0  acquire db bob 10 wait 0        -> held by alice until 10, 0 waiting
    ",
    );
}

#[test]
fn queued_batch_is_granted_atomically() {
    check_scenario(
        "
         0  acquire a alice 10              -> granted 1
         0  acquire b bob 20                -> granted 2
         1  acquire a+b carol 10 wait 60    -> queued t1 place 1 behind alice bob until 61
         2  release 1                       -> released 1
         3  acquire a dave 10               -> held by carol until 61, 1 waiting
         4  release 2                       -> served t1 with 3, served t1 with 4, released 2
    ",
    );
}

#[test]
fn withdrawn_waiter_unblocks_the_waiters_behind_it() {
    check_scenario(
        "
         0  acquire db/shared alice 10          -> granted 1
         0  acquire db bob 10 wait 60           -> queued t1 place 1 behind alice until 60
         0  acquire db/shared carol 10 wait 60  -> queued t2 place 2 behind bob until 60
         1  withdraw t1 by carol                -> no such ticket
         1  withdraw t1 by bob                  -> left t1 Withdrawn, served t2 with 2, withdrawn
         2  withdraw t1 by bob                  -> gone before
         2  withdraw t2 by carol                -> gone before
         2  withdraw t9 by bob                  -> no such ticket
    ",
    );
}

#[test]
fn timed_out_waiter_unblocks_the_waiters_behind_it() {
    check_scenario(
        "
         0  acquire db/shared alice 50          -> granted 1
         0  acquire db bob 10 wait 5            -> queued t1 place 1 behind alice until 5
         0  acquire db/shared carol 10 wait 60  -> queued t2 place 2 behind bob until 60
         5  expire                              -> left t1 TimedOut, served t2 with 2, swept
    ",
    );
}

#[test]
fn deadlock_is_rejected_with_its_cycle() {
    check_scenario(
        "
         0  acquire a alice 100             -> granted 1
         0  acquire b bob 100               -> granted 2
         0  acquire c carol 100             -> granted 3
         1  acquire b alice 10 wait 60      -> queued t1 place 1 behind bob until 61
         1  acquire c bob 10 wait 60        -> queued t2 place 1 behind carol until 61
         1  acquire a carol 10 wait 60      -> deadlock carol alice bob
         1  acquire a carol 10              -> held by alice until 100, 0 waiting
         2  withdraw t1 by alice            -> left t1 Withdrawn, withdrawn
         2  acquire a carol 10 wait 60      -> queued t3 place 1 behind alice until 62
    ",
    );
}

#[test]
fn cycle_through_an_older_waiter_is_detected() {
    check_scenario(
        "
         0  acquire a alice 100             -> granted 1
         0  acquire b bob 100               -> granted 2
         1  acquire a carol 10 wait 60      -> queued t1 place 1 behind alice until 61
         1  acquire b carol 10 wait 60      -> queued t2 place 1 behind bob until 61
         2  acquire a bob 10 wait 60        -> deadlock bob carol
    ",
    );
}

#[test]
fn waiting_for_an_own_lease_is_not_a_deadlock() {
    check_scenario(
        "
         0  acquire a ci 10                 -> granted 1
         0  acquire a ci 10 wait 60         -> queued t1 place 1 behind ci until 60
        10  expire                          -> expired 1, served t1 with 2, swept
    ",
    );
}

#[test]
fn transfer_that_closes_a_cycle_is_rejected() {
    check_scenario(
        "
         0  acquire r alice 100             -> granted 1
         0  acquire q bob 100               -> granted 2
         0  acquire r bob 10 wait 60        -> queued t1 place 1 behind alice until 60
         0  acquire q nina 10 wait 60       -> queued t2 place 1 behind bob until 60
         1  transfer 1 to nina alice        -> deadlock nina bob
         1  transfer 1 to oscar alice       -> revoked 1 Transferred, 1 continues as 3
    ",
    );
}

#[test]
fn waiters_per_resource_and_principal_are_limited() {
    let mut world = ScenarioWorld::new(Limits {
        max_waiters_per_resource: 2,
        max_waiters_per_principal: 2,
        ..Limits::default()
    });
    world.play("
         0  acquire db alice 10                 -> granted 1
         0  acquire x alice 10                  -> granted 2
         0  acquire y alice 10                  -> granted 3
         0  acquire db bob 10 wait 5            -> queued t1 place 1 behind alice until 5
         0  acquire db carol 10 wait 60         -> queued t2 place 2 behind alice bob until 60
         0  acquire db dave 10 wait 60          -> queue full at 2
         0  acquire x bob 10 wait 5             -> queued t3 place 1 behind alice until 5
         0  acquire y bob 10 wait 60            -> queue full at 2
         6  acquire y bob 10 wait 60            -> queued t4 place 1 behind alice until 66
         6  acquire db dave 10 wait 60          -> left t1 TimedOut, queued t5 place 2 behind alice carol until 66
    ");
}
