//! Who waits, who dies, and whose turn comes first.

use tenure_core::kernel::{AgentOutcome, CommandOutcome, Event, Limits, RevocationCause, Tick};

use crate::scenario::{ScenarioWorld, check_scenario};
use crate::scenario_agents::parse_agent_command;

// O-17
#[test]
fn older_agent_is_queued_and_younger_agent_dies() {
    check_scenario(
        "
         0  agent middle declares 20 FILE:a/MUTATES     -> granted 1
         0  agent old declares 10 FILE:a/MUTATES        -> waits t1 place 1 behind middle until 60
         0  agent young declares 30 FILE:a/MUTATES      -> died young, dies behind middle old
         5  agent middle releases 1                     -> served t1 with 2, released 1
         5  agent old declares 10 FILE:a/MUTATES        -> granted 2
         6  agent old releases 2                        -> released 2
         6  agent young declares 30 FILE:a/MUTATES      -> granted 3
    ",
    );
}

// O-17: of two of the same age the one whose name comes first is the older one.
#[test]
fn equal_priority_is_ordered_by_name() {
    check_scenario(
        "
         0  agent b declares 10 FILE:a/MUTATES          -> granted 1
         0  agent c declares 10 FILE:a/MUTATES          -> died c, dies behind b
         0  agent a declares 10 FILE:a/MUTATES          -> waits t1 place 1 behind b until 60
         1  agent b releases 1                          -> served t1 with 2, released 1
    ",
    );
}

// O-17
#[test]
fn die_verdict_revokes_only_leases_that_block_an_older_agent() {
    check_scenario(
        "
         0  agent young declares 30 FILE:a/MUTATES+FILE:b/MUTATES+FILE:c/CONSUMES   -> granted 1 2 3
         0  agent middle declares 20 FILE:m/MUTATES                                 -> granted 4
         0  agent old declares 10 FILE:b/CONSUMES+FILE:c/DEPENDS_ON                 -> waits t1 place 1 behind young until 60
         1  agent young declares 30 FILE:m/MUTATES       -> died young, revoked 2 Died, served t1 with 5, served t1 with 6, dies behind middle without 2
         1  agent young beats 1 2 3                      -> beats: 1 until 61, 2 Died, 3 until 61
         1  agent old declares 10 FILE:b/CONSUMES+FILE:c/DEPENDS_ON                 -> granted 5 6
    ",
    );
}

/// Two that keep each other out: without the rule before, both would ask for ever.
// O-17
#[test]
fn agents_with_crossed_manifests_do_not_deadlock() {
    check_scenario(
        "
         0  agent old declares 10 FILE:a/MUTATES        -> granted 1
         0  agent young declares 20 FILE:b/MUTATES      -> granted 2
         0  agent old declares 10 FILE:b/MUTATES        -> waits t1 place 1 behind young until 60
         1  agent young declares 20 FILE:a/MUTATES      -> died young, revoked 2 Died, served t1 with 3, dies behind old without 2
         2  agent old releases 1 3                      -> released 1 3
         2  agent young declares 20 FILE:a/MUTATES+FILE:b/MUTATES   -> granted 4 5
    ",
    );
}

#[test]
fn oldest_waiting_agent_is_granted_first() {
    check_scenario(
        "
         0  agent young declares 90 FILE:a/MUTATES+FILE:b/MUTATES+FILE:c/MUTATES  -> granted 1 2 3
         0  agent m3 declares 30 FILE:c/MUTATES         -> waits t1 place 1 behind young until 60
         0  agent m2 declares 20 FILE:b/CONSUMES        -> waits t2 place 1 behind young until 60
         0  agent m1 declares 10 FILE:a/MUTATES+FILE:b/CONSUMES -> waits t3 place 1 behind young until 60
         1  agent young reports COMPLETED               -> served t3 with 4, served t3 with 5, served t2 with 6, served t1 with 7, noted
    ",
    );
}

// An expired lease that no sweep has announced yet no longer blocks: the grant itself lets the earlier wait in.
#[test]
fn a_grant_reports_the_stronger_lease_that_an_earlier_wait_of_the_agent_gets_with_it() {
    check_scenario(
        "
         0  agent young declares 90 FILE:b/MUTATES for 10              -> granted 1
         0  agent old declares 10 FILE:a/MUTATES+FILE:b/MUTATES        -> waits t1 place 1 behind young until 60
        10  agent old declares 10 FILE:a/CONSUMES                      -> revoked 2 Transferred, served t1 with 3, expired 1, served t1 with 4, granted 3
    ",
    );
}

/// Who waits, and finds an older one in front of it all of a sudden, does not wait for that one.
// O-17
#[test]
fn waiting_agent_dies_when_an_older_agent_queues_ahead() {
    check_scenario(
        "
         0  agent young declares 90 FILE:a/MUTATES      -> granted 1
         0  agent m2 declares 20 FILE:b/MUTATES         -> granted 2
         0  agent m2 declares 20 FILE:a/MUTATES         -> waits t1 place 1 behind young until 60
         0  agent m1 declares 10 FILE:a/MUTATES         -> left t1 DIED, died m2, waits t2 place 1 behind young until 60
         1  agent m1 declares 10 FILE:b/CONSUMES        -> waits t3 place 1 behind m2 until 61
         1  agent m2 declares 20 FILE:a/MUTATES         -> died m2, revoked 2 Died, served t3 with 3, dies behind m1 young without 2
    ",
    );
}

/// Readers that come one after the other, and always overlap.
// O-17
#[test]
fn overlapping_readers_do_not_starve_an_older_writer() {
    check_scenario(
        "
         0  agent r1 declares 50 FILE:a/CONSUMES        -> granted 1
         1  agent writer declares 10 FILE:a/MUTATES     -> waits t1 place 1 behind r1 until 61
         2  agent r2 declares 60 FILE:a/CONSUMES        -> died r2, dies behind writer
         3  agent r1 declares 50 FILE:b/CONSUMES        -> granted 2
         4  acquire FILE:a/shared person 30             -> held by writer until 61, 0 waiting
         5  acquire FILE:a/shared person 30 wait 60     -> queued t2 place 1 behind writer until 65
         6  agent r1 releases 1                         -> served t1 with 3, released 1
         7  agent writer releases 3                     -> served t2 with 4, released 3
    ",
    );
}

/// Who has an age comes before who has none, however long that one has waited.
#[test]
fn waiting_agents_are_served_before_queued_plain_requests() {
    check_scenario(
        "
         0  agent young declares 50 FILE:a/MUTATES      -> granted 1
         0  acquire FILE:a person 30 wait 60            -> queued t1 place 1 behind young until 60
         1  agent old declares 10 FILE:a/MUTATES        -> waits t2 place 1 behind young until 61
         2  agent young releases 1                      -> served t2 with 2, released 1
         3  agent old releases 2                        -> served t1 with 3, released 2
    ",
    );
}

// O-17: a caller that comes too often must not fill the disk.
#[test]
fn early_retry_after_die_repeats_the_verdict_without_events() {
    let mut world = ScenarioWorld::new(Limits::default());
    world.play("0  agent old declares 10 FILE:a/MUTATES -> granted 1");
    let ask = parse_agent_command("young", &["declares", "20", "FILE:a/MUTATES"]);
    let retry_at = |answer: &CommandOutcome| match answer {
        CommandOutcome::Agent(answer) => match &**answer {
            AgentOutcome::Die { retry_at, .. } => *retry_at,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    let mut now = Tick(1_000_000);
    for attempt in 0..12 {
        let died = world.decide_and_apply(&ask, now);
        assert!(!died.events.is_empty());
        let back = retry_at(&died.outcome);
        // Twice as long each time, up to a bound, and up to a quarter longer by chance.
        let delay = (250_000_u64 << attempt).min(30_000_000);
        assert!((delay..=delay + delay / 4).contains(&back.since(now).0), "{attempt}: {back:?}");
        for early in [now, Tick(back.0 - 1)] {
            let again = world.decide_and_apply(&ask, early);
            assert!(again.events.is_empty(), "{again:?}");
            assert_eq!(retry_at(&again.outcome), back);
        }
        world.play(&format!(
            "{} agent old beats 1 -> beats: 1 until {}",
            format_seconds(back.0),
            format_seconds(back.0 + 60_000_000)
        ));
        now = back;
    }
}

fn format_seconds(microseconds: u64) -> String {
    let text = format!("{}.{:06}", microseconds / 1_000_000, microseconds % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').into()
}

#[test]
fn wait_die_revocation_records_its_detail() {
    let mut world = ScenarioWorld::new(Limits::default());
    world.play(
        "
         0  agent young declares 30 FILE:a/MUTATES   -> granted 1
         0  agent middle declares 20 FILE:b/MUTATES  -> granted 2
         0  agent old declares 10 FILE:a/MUTATES     -> waits t1 place 1 behind young until 60
    ",
    );
    let decision =
        world.decide_and_apply(&parse_agent_command("young", &["declares", "30", "FILE:b/MUTATES"]), Tick(0));
    let revocation = decision.events.iter().find_map(|event| match event {
        Event::Revoked { cause: RevocationCause::Died, detail, by, .. } => Some((detail.clone(), by.clone())),
        _ => None,
    });
    let (detail, by) = revocation.expect("a lease is revoked");
    assert_eq!((&*detail, by.as_str()), ("an older agent waits for it", "young's"));
}
