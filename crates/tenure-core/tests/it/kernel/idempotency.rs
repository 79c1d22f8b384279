//! Stories of repeated requests: a lost answer costs nothing.

use crate::scenario::check_scenario;

#[test]
fn repeated_request_returns_the_same_lease() {
    check_scenario(
        "
         0  acquire db alice 10 key k               -> granted 1
         1  acquire db alice 10 key k               -> granted 1
         1  acquire db alice 10                     -> held by alice until 10, 0 waiting
         2  acquire db alice 10 key other           -> held by alice until 10, 0 waiting
    ",
    );
}

#[test]
fn reused_key_for_another_request_is_rejected() {
    check_scenario(
        "
         0  acquire db alice 10 key k               -> granted 1
         1  acquire db alice 20 key k               -> key reused
         1  acquire x alice 10 key k                -> key reused
         1  acquire x bob 10 key k                  -> granted 2
    ",
    );
}

#[test]
fn key_is_retained_for_one_minute_after_its_lease_ended() {
    check_scenario(
        "
         0          acquire db alice 10 key k       -> granted 1
         4          release 1                       -> released 1
         5          acquire db alice 10 key k       -> 1 is over: released
        63.999999   acquire db alice 10 key k       -> 1 is over: released
        64          acquire db alice 10 key k       -> granted 2
        74          acquire db alice 10 key k       -> expired 2, 2 is over: expired
    ",
    );
}

#[test]
fn repeated_batch_returns_all_its_leases() {
    check_scenario(
        "
         0  acquire a+b alice 10 key k              -> granted 1 2
         1  acquire a+b alice 10 key k              -> granted 1 2
         2  release 1                               -> released 1
         3  acquire a+b alice 10 key k              -> 1 is over: released
        70  acquire a+b alice 10 key k              -> 1 is over: released
    ",
    );
}

#[test]
fn repeated_queued_request_keeps_its_position() {
    check_scenario(
        "
         0  acquire db alice 10                     -> granted 1
         0  acquire db bob 10 wait 60 key k         -> queued t1 place 1 behind alice until 60
         0  acquire db carol 10 wait 60             -> queued t2 place 2 behind alice bob until 60
         1  acquire db bob 10 wait 60 key k         -> queued t1 place 1 behind alice until 60
         2  release 1                               -> served t1 with 2, released 1
         3  acquire db bob 10 wait 60 key k         -> granted 2
    ",
    );
}

#[test]
fn timed_out_or_withdrawn_request_can_reuse_its_key() {
    check_scenario("
         0  acquire db alice 100                    -> granted 1
         0  acquire db bob 10 wait 5 key k          -> queued t1 place 1 behind alice until 5
         6  acquire db bob 10 wait 5 key k          -> left t1 TimedOut, queued t2 place 1 behind alice until 11
         7  withdraw t2 by bob                      -> left t2 Withdrawn, withdrawn
         8  acquire db bob 10 wait 5 key k          -> queued t3 place 1 behind alice until 13
    ");
}
