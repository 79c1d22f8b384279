//! Sessions that wait for each other: the circle is named, and nothing else is different.

use crate::scenario::check_scenario;

#[test]
fn cycle_of_two_sessions_is_reported_to_both() {
    check_scenario(
        "
           0  session s1 wants a                -> began s1, granted 1
           0  session s2 wants b                -> began s2, granted 2
          10  session s1 wants b checked s2     -> seen s1, contended t1 b of s2 due 190, waits b of s2 t1 until 190
          20  session s2 wants a checked s1     -> seen s2, contended t2 a of s1 due 200 circle s2 s1, waits a of s1 t2 until 200
         190  session s1 wants b checked s2     -> seen s1, blocked t1 by s2 since 0 seen 20 circle s1 s2, stops b of s2 t1 report t1
         200  session s2 wants a checked s1     -> seen s2, blocked t2 by s1 since 0 seen 190 circle s2 s1, stops a of s1 t2 report t2
         201  session s1 commits a              -> 1 COMPLETED, lets go a
         202  session s2 wants a                -> seen s2, closed t2 SERVED, granted 3
        ",
    );
}

#[test]
fn cycle_of_three_sessions_is_reported_to_all() {
    check_scenario(
        "
           0  session s1 wants a                -> began s1, granted 1
           0  session s2 wants b                -> began s2, granted 2
           0  session s3 wants c                -> began s3, granted 3
          10  session s1 wants b checked s2     -> seen s1, contended t1 b of s2 due 190, waits b of s2 t1 until 190
          20  session s2 wants c checked s3     -> seen s2, contended t2 c of s3 due 200, waits c of s3 t2 until 200
          30  session s3 wants a checked s1     -> seen s3, contended t3 a of s1 due 210 circle s3 s1 s2, waits a of s1 t3 until 210
         190  session s1 wants b checked s2     -> seen s1, blocked t1 by s2 since 0 seen 20 circle s1 s2 s3, stops b of s2 t1 report t1
         200  session s2 wants c checked s3     -> seen s2, blocked t2 by s3 since 0 seen 30 circle s2 s3 s1, stops c of s3 t2 report t2
         210  session s3 wants a checked s1     -> seen s3, blocked t3 by s1 since 0 seen 190 circle s3 s1 s2, stops a of s1 t3 report t3
        ",
    );
}

#[test]
fn broken_cycle_is_not_reported() {
    check_scenario(
        "
           0  session s1 wants a                -> began s1, granted 1
           0  session s2 wants b                -> began s2, granted 2
          10  session s1 wants b checked s2     -> seen s1, contended t1 b of s2 due 190, waits b of s2 t1 until 190
          20  session s2 wants a checked s1     -> seen s2, contended t2 a of s1 due 200 circle s2 s1, waits a of s1 t2 until 200
          30  session s1 commits a              -> 1 COMPLETED, lets go a
         190  session s1 wants b checked s2     -> seen s1, blocked t1 by s2 since 0 seen 20, stops b of s2 t1 report t1
        ",
    );
}

#[test]
fn cycle_through_a_queued_waiter_is_reported() {
    check_scenario(
        "
           0  session s1 wants a                -> began s1, granted 1
           0  acquire r alice 1000              -> granted 2
          10  acquire a alice 10 wait 500       -> queued t1 place 1 behind s1 until 510
          20  session s1 wants r                -> seen s1, contended t2 r of alice due 200 circle s1 alice, waits r of alice t2 until 200
        ",
    );
}

#[test]
fn acquire_closing_a_cycle_with_a_file_session_is_rejected() {
    check_scenario(
        "
           0  session s1 wants a                -> began s1, granted 1
           0  acquire r alice 1000              -> granted 2
          10  session s1 wants r                -> seen s1, contended t1 r of alice due 190, waits r of alice t1 until 190
          20  acquire a alice 10 wait 500       -> deadlock alice s1
        ",
    );
}

#[test]
fn retry_ticket_of_a_subagent_counts_for_its_session() {
    check_scenario(
        "
           0  session s1 wants a                -> began s1, granted 1
           0  session s1.x of s1 is active      -> began s1.x, noted
           0  session s2 wants b                -> began s2, granted 2
          10  session s1.x of s1 wants b checked s2  -> seen s1.x, contended t1 b of s2 due 190, waits b of s2 t1 until 190
          20  session s2 wants a checked s1     -> seen s2, contended t2 a of s1 due 200 circle s2 s1, waits a of s1 t2 until 200
         190  session s1.x of s1 wants b checked s2  -> seen s1.x, blocked t1 by s2 since 0 seen 20 circle s1 s2, stops b of s2 t1 report t1
        ",
    );
}

#[test]
fn retry_ticket_for_a_file_of_an_ancestor_closes_no_cycle() {
    check_scenario(
        "
           0  session s1 is active              -> began s1, noted
           0  session s2 wants a                -> began s2, granted 1
           0  session s1.x of s1 wants b        -> began s1.x, granted 2
          10  session s1.x of s1 wants a checked s2  -> seen s1.x, contended t1 a of s2 due 190, waits a of s2 t1 until 190
          20  session s2 commits a              -> 1 COMPLETED, lets go a
          21  session s1 wants a                -> seen s1, granted 3
          30  session s2 wants b checked s1.x   -> seen s2, contended t2 b of s1.x due 210, waits b of s1.x t2 until 210
        ",
    );
}
