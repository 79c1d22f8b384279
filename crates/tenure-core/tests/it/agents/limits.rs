//! What an agent touches, what it leaves idle, and for how long it holds anything at all.

use tenure_core::kernel::{Command, Event, Limits, Tick, TickDuration};

use crate::scenario::{ScenarioWorld, check_scenario};

fn world(lease_time: Option<u64>, idle: Option<u64>) -> ScenarioWorld {
    let (lease_time, idle) = (lease_time.map(TickDuration::from_secs), idle.map(TickDuration::from_secs));
    ScenarioWorld::new(Limits {
        max_agent_hold_time: lease_time,
        max_agent_idle_time: idle,
        ..Limits::default()
    })
}

/// What people read of the leases that the next sweep revokes.
fn details(world: &mut ScenarioWorld, now: u64) -> Vec<String> {
    let decision = world.decide_and_apply(&Command::Expire { max_ended: 100 }, Tick(now * 1_000_000));
    let detail = |event: &Event| match event {
        Event::Revoked { detail, by, .. } => Some(format!("{by}: {detail}")),
        _ => None,
    };
    decision.events.iter().filter_map(detail).collect()
}

// S3-33
#[test]
fn leases_are_revoked_when_the_agent_hold_time_is_exceeded() {
    let mut world = world(Some(100), None);
    world.play(
        "
          0          agent a declares 10 FILE:a/MUTATES for 60    -> granted 1
         50          agent a beats 1                              -> beats: 1 until 110
         60          agent a releases 1                           -> released 1
         90          agent a declares 10 FILE:b/MUTATES for 60    -> granted 2
         90          agent b declares 20 FILE:c/MUTATES for 60    -> granted 3
         90          agent a declares 10 FILE:c/MUTATES wait 60   -> waits t1 place 1 behind b until 150
        129.999999   expire                                       -> swept
        130          expire                                       -> revoked 2 Revoked, left t1 USED_UP, used up a, swept
        130          agent a declares 10 FILE:b/MUTATES           -> LeaseTimeUsed { has: 10 }
        130          agent a declares 9 FILE:b/MUTATES            -> LeaseTimeUsed { has: 10 }
        130          agent a declares 11 FILE:b/MUTATES for 60    -> granted 4
        149          agent a beats 4                              -> beats: 4 until 209
        200          expire                                       -> expired 3, swept
    ",
    );
}

// S3-33
#[test]
fn hold_time_revocation_records_its_detail() {
    let mut world = world(Some(100), None);
    world.play("0 agent a declares 10 FILE:a/CONSUMES+FILE:b/MUTATES for 600 -> granted 1 2");
    let detail = "system:agents: quota: its agent has held leases for 100 s with one priority";
    assert_eq!(details(&mut world, 100), [detail, detail]);
}

// S3-33: what is over is over by its own end, also where both come together.
#[test]
fn lease_expiring_with_the_hold_time_quota_is_recorded_as_expired() {
    let mut world = world(Some(100), None);
    world.play(
        "
          0          agent a declares 10 FILE:a/MUTATES for 100   -> granted 1
        100          expire                                       -> expired 1, used up a, swept
        100          agent a declares 10 FILE:a/MUTATES           -> LeaseTimeUsed { has: 10 }
        100          agent a declares 11 FILE:a/MUTATES for 40    -> granted 2
        # Nobody says for a long time that it is over: it was held for 40 s all the same.
        300          expire                                       -> expired 2, swept
        300          agent a declares 11 FILE:a/MUTATES for 90    -> granted 3
        359.999999   expire                                       -> swept
        360          expire                                       -> revoked 3 Revoked, used up a, swept
    ",
    );
}

// S3-34
#[test]
fn untouched_write_leases_are_revoked_at_the_idle_limit() {
    let mut world = world(None, Some(80));
    world.play(
        "
          0          agent a declares 10 FILE:a/MUTATES+FILE:b/CONSUMES+FILE:c/DELETES for 600    -> granted 1 2 3
          5          agent a touches FILE:a/MUTATES               -> within
         40          agent a touches FILE:a/MUTATES               -> used 1, within
         45          agent a touches FILE:a/MUTATES               -> within
         79.999999   expire                                       -> swept
         80          expire                                       -> revoked 3 Revoked, swept
        119.999999   expire                                       -> swept
        120          agent a touches FILE:a/CONSUMES              -> used 1, within
        199.999999   agent a beats 1 2 3                          -> beats: 1 until 799.999999, 2 until 799.999999, 3 Revoked
        200          expire                                       -> revoked 1 Revoked, swept
        300          agent a beats 2                              -> beats: 2 until 900
    ",
    );
}

// S3-34
#[test]
fn idle_revocation_records_its_detail() {
    let mut world = world(None, Some(80));
    world.play("0 agent a declares 10 FILE:a/RENAMES for 600 -> granted 1");
    assert_eq!(details(&mut world, 80), ["system:agents: idle: what it is for was not touched for 80 s"]);
}

// S3-33, S3-34: both are off unless somebody asks for them.
#[test]
fn without_limits_no_agent_lease_is_revoked() {
    check_scenario(
        "
             0  agent a declares 10 FILE:a/MUTATES for 86400    -> granted 1
         86399  expire                                          -> swept
    ",
    );
}

// What is touched has to be within what was declared, and is told once in an attempt.
#[test]
fn touches_outside_the_leases_are_recorded_once_per_attempt() {
    check_scenario(
        "
         0  agent a touches FILE:src/a/MUTATES                              -> NoSuchAgent
         0  agent a declares 10 FILE:src//MUTATES+FILE:doc/CONSUMES for 10  -> granted 1 2
         0  agent a touches FILE:src/a/MUTATES+FILE:src/b//DELETES+FILE:src/*.rs/CONSUMES+FILE:doc/CONSUMES -> within
         0  agent a touches FILE:src/MUTATES                                -> strayed a FILE:src, outside FILE:src
         0  agent a touches FILE:src/MUTATES+FILE:doc/MUTATES               -> strayed a FILE:doc, outside FILE:src FILE:doc
         0  agent a touches FILE:*/CONSUMES                                 -> strayed a FILE:*, outside FILE:*
         0  agent a touches FILE:src/MUTATES+FILE:src/a/MUTATES             -> outside FILE:src
        10  agent a touches FILE:src/a/MUTATES                              -> expired 1, expired 2, strayed a FILE:src/a, outside FILE:src/a
        10  agent a declares 10 FILE:x/MUTATES for 10                       -> granted 3
        11  agent a touches FILE:src/a/MUTATES                              -> strayed a FILE:src/a, outside FILE:src/a
    ",
    );
}
