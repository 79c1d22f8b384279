//! Stories of waiting: order, patience, and what is never waited for.

use tenure_core::kernel::Limits;

use crate::story::{World, check};

#[test]
fn waiters_are_served_in_the_order_they_came() {
    check(
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
fn who_comes_when_a_lease_is_over_stands_behind_who_waited() {
    check(
        "
         0  acquire db alice 10             -> granted 1
         1  acquire db bob 10 wait 60       -> queued t1 place 1 behind alice until 61
        10  acquire db carol 10             -> expired 1, served t1 with 2, held by bob until 20, 0 waiting
    ",
    );
}

#[test]
fn readers_do_not_starve_a_writer_that_waits() {
    check(
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
fn nobody_is_served_after_its_patience() {
    check(
        "
         0  acquire db alice 10             -> granted 1
         0  acquire db bob 10 wait 5        -> queued t1 place 1 behind alice until 5
         0  acquire db carol 10 wait 10     -> queued t2 place 2 behind alice bob until 10
         5  release 1                       -> served t2 with 2, released 1
         6  acquire db dave 1               -> left t1 TimedOut, held by carol until 15, 0 waiting
    ",
    );
    check(
        "
         0  acquire db alice 10             -> granted 1
         0  acquire db bob 10 wait 10       -> queued t1 place 1 behind alice until 10
        10  expire                          -> expired 1, left t1 TimedOut, swept
    ",
    );
}

#[test]
fn no_patience_is_a_refusal_at_once() {
    check(
        "
         0  acquire db alice 10             -> granted 1
         0  acquire db bob 10 wait 0        -> held by alice until 10, 0 waiting
    ",
    );
}

#[test]
fn who_waits_for_several_gets_all_at_once_and_holds_none_before() {
    check(
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
fn a_waiter_that_leaves_makes_room_for_those_behind_it() {
    check(
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
fn a_wait_that_is_over_makes_room_for_those_behind_it() {
    check(
        "
         0  acquire db/shared alice 50          -> granted 1
         0  acquire db bob 10 wait 5            -> queued t1 place 1 behind alice until 5
         0  acquire db/shared carol 10 wait 60  -> queued t2 place 2 behind bob until 60
         5  expire                              -> left t1 TimedOut, served t2 with 2, swept
    ",
    );
}

#[test]
fn a_circle_of_waits_is_refused_and_named() {
    check(
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
fn a_circle_through_an_older_waiter_is_found() {
    check(
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
fn waiting_for_ones_own_lease_is_no_circle() {
    check(
        "
         0  acquire a ci 10                 -> granted 1
         0  acquire a ci 10 wait 60         -> queued t1 place 1 behind ci until 60
        10  expire                          -> expired 1, served t1 with 2, swept
    ",
    );
}

#[test]
fn a_transfer_that_would_close_a_circle_is_refused() {
    check(
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
fn queues_are_bounded() {
    let mut world =
        World::new(Limits { waiters_per_resource: 2, waits_per_principal: 2, ..Limits::default() });
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
