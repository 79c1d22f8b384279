//! Leases and waits of agents, to the tick: one microsecond before, at, and after.

use crate::scenario::check_scenario;

// S3-11, S3-13, S3-14, S3-20, S3-22, S3-25, S3-26
#[test]
fn heartbeat_at_the_expiry_tick_is_too_late() {
    check_scenario(
        "
         0          agent a declares 1 FILE:a/MUTATES for 10   -> granted 1
         9.999999   agent a beats 1                            -> beats: 1 until 19.999999
        19.999999   agent a beats 1                            -> expired 1, beats: 1 expired
        20          agent a beats 1                            -> beats: 1 expired
        20          agent b declares 2 FILE:a/MUTATES for 10   -> granted 2
        30.000001   agent b beats 2                            -> expired 2, beats: 2 expired
    ",
    );
}

// S3-12, S3-13: what would not extend succeeds, and never shortens.
#[test]
fn heartbeat_never_shortens_a_lease() {
    check_scenario(
        "
         0  agent a declares 1 FILE:a/MUTATES for 10            -> granted 1
         0  agent a beats 1 1                                   -> beats: 1 until 10, 1 until 10
         1  agent a reports DIE_RESTART                         -> noted
         2  agent a beats 1                                     -> beats: 1 until 25
    ",
    );
}

// S3-14, S3-15, S3-21, S3-23, S3-28
#[test]
fn heartbeat_reports_each_lease_separately() {
    check_scenario(
        "
         0  agent a declares 1 FILE:a/MUTATES+FILE:b/MUTATES    -> granted 1 2
         0  agent b declares 2 FILE:c/MUTATES                   -> granted 3
         1  agent a releases 1                                  -> released 1
         1  agent a releases 1 1 3 9                            -> released 1
         2  agent a beats 1 2 3 9                               -> beats: 1 released, 2 until 62, 3 unknown, 9 unknown
         2  agent b beats 3                                     -> beats: 3 until 62
    ",
    );
}

// S3-1, S3-16, S3-22, S3-24, S3-25, S3-29: a lease that is over is free before anybody says so.
#[test]
fn expired_lease_can_be_granted_at_its_expiry_tick() {
    check_scenario(
        "
         0          agent old declares 1 FILE:a/MUTATES for 10     -> granted 1
         9.999999   agent young declares 2 FILE:a/MUTATES for 10   -> died young, dies behind old
        10          agent young declares 2 FILE:a/MUTATES for 10   -> expired 1, granted 2
        20          expire                                         -> expired 2, swept
        21          agent young releases 2                         -> released 2
        21          agent young beats 2                            -> beats: 2 expired
    ",
    );
}

// S3-16
#[test]
fn waiting_agent_is_granted_when_the_blocking_lease_expires() {
    check_scenario(
        "
         0  agent young declares 2 FILE:src/a/MUTATES for 10   -> granted 1
         0  agent old declares 1 FILE:src//MUTATES             -> waits t1 place 1 behind young until 60
        10  expire                                             -> expired 1, served t1 with 2, swept
        10  agent old beats 2                                  -> beats: 2 until 70
    ",
    );
}

// O-17: a wait has an end, exactly there.
#[test]
fn agent_wait_times_out_at_its_deadline() {
    check_scenario(
        "
         0          agent young declares 2 FILE:a/MUTATES          -> granted 1
         0          agent old declares 1 FILE:a/MUTATES wait 5     -> waits t1 place 1 behind young until 5
         4.999999   expire                                         -> swept
         4.999999   agent old declares 1 FILE:a/MUTATES wait 5     -> waits t1 place 1 behind young until 5
         5          expire                                         -> left t1 TIMED_OUT, swept
         5          agent young releases 1                         -> released 1
    ",
    );
}

// O-17: no grant at or after the end of a wait, announced or not.
#[test]
fn timed_out_agent_wait_is_not_granted_before_the_sweep() {
    check_scenario(
        "
         0          agent young declares 2 FILE:a/MUTATES          -> granted 1
         0          agent old declares 1 FILE:a/MUTATES wait 5     -> waits t1 place 1 behind young until 5
         5          agent young releases 1                         -> released 1
         5          expire                                         -> left t1 TIMED_OUT, swept
         6          agent young declares 2 FILE:a/MUTATES          -> granted 2
         6          agent old declares 1 FILE:a/MUTATES wait 5     -> waits t2 place 1 behind young until 11
        10.999999   agent young releases 2                         -> served t2 with 3, released 2
    ",
    );
}

// O-17: asking the same again starts no second wait, and does not make the first one longer.
#[test]
fn repeated_manifest_keeps_its_ticket() {
    check_scenario(
        "
         0  agent young declares 2 FILE:a/MUTATES+FILE:b/MUTATES            -> granted 1 2
         0  agent old declares 1 FILE:a/MUTATES+FILE:b/CONSUMES wait 5      -> waits t1 place 1 behind young until 5
         3  agent old declares 1 FILE:b/CONSUMES+FILE:a/MUTATES wait 50     -> waits t1 place 1 behind young until 5
         3  agent old declares 1 FILE:a/MUTATES wait 50                     -> waits t2 place 1 behind young until 53
         4  agent young releases 1 2                                        -> served t1 with 3, served t1 with 4, left t2 SERVED, released 1 2
         4  agent old declares 1 FILE:a/MUTATES+FILE:b/CONSUMES             -> granted 3 4
    ",
    );
}

// S3-8: only if it was said before the end, to the tick.
#[test]
fn restart_report_before_expiry_extends_leases_by_15_seconds() {
    check_scenario(
        "
         0          agent a declares 1 FILE:a/MUTATES for 10   -> granted 1
         0          agent b declares 2 FILE:b/MUTATES for 10   -> granted 2
         9.999999   agent a reports DIE_RESTART                -> noted
        10          agent b reports DIE_RESTART                -> noted
        10          agent b beats 2                            -> expired 2, beats: 2 expired
        24.999999   agent c declares 3 FILE:a/MUTATES          -> died c, dies behind a
        25          agent c declares 3 FILE:a/MUTATES          -> expired 1, granted 3
    ",
    );
}

// S3-8: once per lease.
#[test]
fn restart_extension_is_granted_once_per_lease() {
    check_scenario(
        "
         0  agent a declares 1 FILE:a/MUTATES for 10           -> granted 1
         1  agent a reports DIE_RESTART                        -> noted
         2  agent a reports EXECUTING                          -> noted
         2  agent a declares 1 FILE:b/MUTATES for 10           -> granted 2
         3  agent a reports DIE_RESTART                        -> noted
         4  agent a reports DIE_RESTART                        -> noted
        25  expire                                             -> expired 1, swept
        26  agent a beats 2                                    -> beats: 2 until 36
        36  expire                                             -> expired 2, swept
    ",
    );
}

// S3-7, S3-8: also where a lease is as long as one may be.
#[test]
fn restart_extension_may_exceed_the_maximum_ttl() {
    check_scenario(
        "
             0  agent a declares 1 FILE:a/MUTATES for 86400    -> granted 1
             0  agent a reports DIE_RESTART                    -> noted
         86400  agent a beats 1                                -> beats: 1 until 172800
        172800  expire                                         -> expired 1, swept
    ",
    );
    check_scenario(
        "
             0  agent a declares 1 FILE:a/MUTATES for 86400    -> granted 1
             0  agent a reports DIE_RESTART                    -> noted
         86415  expire                                         -> expired 1, swept
    ",
    );
}
