//! What agents cannot do, however often they ask: fill the disk, wait for more than they may have, or be younger than a number
//! can say.

use tenure_core::kernel::{
    AdmissionLevel, Command, CommandOutcome, KernelState, LedgerTag, Limits, Rejection, Tick,
};

use crate::scenario::ScenarioWorld;
use crate::scenario_agents::parse_agent_command;

/// What comes of an agent's manifest at this second, without anything being recorded.
fn decide_without_applying(
    world: &ScenarioWorld,
    agent: &str,
    words: &str,
    at: u64,
) -> (usize, CommandOutcome) {
    let words: Vec<&str> = words.split_whitespace().collect();
    let decision =
        tenure_core::kernel::decide(&world.state, &parse_agent_command(agent, &words), Tick(at * 1_000_000));
    (decision.events.len(), decision.outcome)
}

#[test]
fn rejected_manifest_writes_no_events() {
    let mut world = ScenarioWorld::new(Limits {
        max_leases_per_principal: Some(1),
        max_waiting_agents: 0,
        ..Limits::default()
    });
    world.play("0 agent young declares 20 FILE:a/MUTATES -> granted 1");
    let two = "declares 10 FILE:b/MUTATES+FILE:c/MUTATES";
    assert_eq!(
        decide_without_applying(&world, "old", two, 1),
        (0, CommandOutcome::Rejected(Rejection::QuotaExceeded { max: 1 }))
    );
    let full = Rejection::QueueFull { what: "agents".into(), max: 0 };
    assert_eq!(
        decide_without_applying(&world, "old", "declares 10 FILE:a/MUTATES", 1),
        (0, CommandOutcome::Rejected(full))
    );
}

#[test]
fn declare_without_space_is_rejected_and_starts_no_attempt() {
    for level in [AdmissionLevel::Nothing, AdmissionLevel::Renewals] {
        let mut world = ScenarioWorld::new(Limits::default());
        world.play("0 agent m declares 20 FILE:a/MUTATES -> granted 1");
        world.state.set_admission_level(level);
        let asks = ["declares 30 FILE:a/MUTATES", "declares 10 FILE:a/MUTATES", "declares 30 FILE:b/MUTATES"];
        for words in asks {
            let refused = CommandOutcome::Rejected(Rejection::NoSpace);
            assert_eq!(
                decide_without_applying(&world, "other", words, 1),
                (0, refused),
                "{words} with {level:?}"
            );
        }
    }
}

// Who died before the disk was full is still told when to come back: that needs no room.
#[test]
fn repeated_die_verdict_requires_no_space() {
    let mut world = ScenarioWorld::new(Limits::default());
    world.play(
        "
         0  agent old declares 10 FILE:a/MUTATES      -> granted 1
         0  agent young declares 20 FILE:a/MUTATES    -> died young, dies behind old
    ",
    );
    world.state.set_admission_level(AdmissionLevel::Nothing);
    world.play("0.1 agent young declares 20 FILE:a/MUTATES -> dies behind old");
}

// What is said twice is written once.
#[test]
fn repeated_report_writes_no_events() {
    let mut world = ScenarioWorld::new(Limits::default());
    world.play("0 agent a declares 10 FILE:a/MUTATES -> granted 1");
    for state in ["EXECUTING", "DIE_RESTART", "COMPLETED"] {
        let (events, answer) = decide_without_applying(&world, "a", &format!("reports {state}"), 1);
        assert!(events > 0 && matches!(answer, CommandOutcome::Agent(_)), "{state}");
        world.decide_and_apply(&parse_agent_command("a", &["reports", state]), Tick(1_000_000));
        let again = decide_without_applying(&world, "a", &format!("reports {state}"), 2);
        assert_eq!((again.0, matches!(again.1, CommandOutcome::Agent(_))), (0, true), "{state}");
    }
    world.play("3 agent a declares 10 FILE:b/MUTATES -> granted 2");
    assert!(
        decide_without_applying(&world, "a", "reports COMPLETED", 4).0 > 0,
        "it has something to let go of"
    );
}

// Who lets go makes room.
#[test]
fn agent_can_report_completion_without_space() {
    let mut world = ScenarioWorld::new(Limits::default());
    world.play("0 agent a declares 10 FILE:a/MUTATES -> granted 1");
    world.state.set_admission_level(AdmissionLevel::Nothing);
    assert_eq!(
        decide_without_applying(&world, "b", "reports COMPLETED", 1),
        (0, CommandOutcome::Rejected(Rejection::NoSpace))
    );
    assert_eq!(
        decide_without_applying(&world, "a", "reports EXECUTING", 1),
        (0, CommandOutcome::Rejected(Rejection::NoSpace))
    );
    world.play("1 agent a reports COMPLETED -> noted");
    assert_eq!(decide_without_applying(&world, "a", "reports COMPLETED", 2).0, 0);
}

// S3-33: who waits will hold.
#[test]
fn waiting_manifest_counts_against_the_lease_quota() {
    let mut world = ScenarioWorld::new(Limits { max_leases_per_principal: Some(2), ..Limits::default() });
    world.play(
        "
         0  agent young declares 20 FILE:a/MUTATES                          -> granted 1
         0  agent old declares 10 FILE:a/MUTATES+FILE:b/MUTATES+FILE:c/MUTATES  -> quota 2
         0  agent old declares 10 FILE:a/MUTATES+FILE:b/MUTATES             -> waits t1 place 1 behind young until 60
         1  agent old declares 10 FILE:a/MUTATES+FILE:b/MUTATES             -> waits t1 place 1 behind young until 60
         1  agent old declares 10 FILE:c/MUTATES                            -> quota 2
         2  agent young releases 1                                          -> served t1 with 2, served t1 with 3, released 1
         3  agent old declares 10 FILE:a/MUTATES+FILE:b/MUTATES             -> granted 2 3
         3  agent old declares 10 FILE:c/MUTATES                            -> quota 2
    ",
    );
}

#[test]
fn priority_above_the_maximum_is_rejected_and_the_maximum_round_trips() {
    let mut world = ScenarioWorld::new(Limits::default());
    for age in [1 << 53, u64::MAX] {
        let (events, answer) =
            decide_without_applying(&world, "a", &format!("declares {age} FILE:a/MUTATES"), 0);
        let CommandOutcome::Rejected(Rejection::Invalid(invalid)) = answer else { panic!("{answer:?}") };
        assert_eq!((events, invalid.field), (0, "priority_timestamp"));
    }
    world.play("0 agent a declares 9007199254740991 FILE:a/MUTATES -> granted 1");
    let mut bytes = Vec::new();
    world.state.save(&mut |piece| bytes.extend_from_slice(piece));
    let restored = KernelState::restore(&bytes, LedgerTag(0xabcd), Limits::default(), Default::default());
    assert_eq!(restored.expect("it was saved").to_comparable(), world.state.to_comparable());
}

// Patterns that mean the same are one, whoever is in the way of them, and the stronger one counts.
#[test]
fn nested_patterns_in_a_manifest_are_judged_individually() {
    crate::scenario::check_scenario(
        "
         0  agent a declares 10 FILE:x/y/z/CONSUMES                                 -> granted 1
         0  agent b declares 20 FILE:x/*/CONSUMES+FILE:x/y*/CONSUMES                -> granted 2 3
         0  agent c declares 30 FILE:x/*/CONSUMES+FILE:x/y/*/MUTATES                -> died c, dies behind a b
         0  agent c declares 30 FILE:x/*/CONSUMES+FILE:x/w*/MUTATES                 -> dies behind b
         0  agent d declares 40 FILE:x/v/MUTATES+FILE:v/MUTATES                     -> died d, dies behind b
         1  agent b releases 2 3                                                    -> released 2 3
         1  agent old declares 5 FILE:x/y/*/MUTATES+FILE:x/*/CONSUMES               -> waits t1 place 1 behind a until 61
         2  agent a releases 1                                                      -> served t1 with 4, served t1 with 5, released 1
    ",
    );
}

/// A thousand readers wait for one writer, for the same patterns. When it is done they all get in, some hundred at a time.
#[test]
fn thousand_waiting_readers_of_overlapping_patterns_are_all_granted() {
    let mut world = ScenarioWorld::new(Limits::default());
    world.play("0 agent writer declares 99999 FILE:*/MUTATES -> granted 1");
    let wants: Vec<String> = (0..8).map(|part| format!("FILE:{part}*/CONSUMES")).collect();
    let wants = wants.join("+");
    for reader in 0..1_024 {
        let words = ["declares", &reader.to_string(), &wants];
        let command = parse_agent_command(&format!("r{reader}"), &words);
        let decision = tenure_core::kernel::decide(&world.state, &command, Tick(1));
        for event in &decision.events {
            world.state.apply(event).expect("it was decided");
        }
    }
    assert_eq!(world.state.waiting_agents().count(), 1_024);
    let mut next = parse_agent_command("writer", &["releases", "1"]);
    while world.state.waiting_agents().count() > 0 {
        let decision = tenure_core::kernel::decide(&world.state, &next, Tick(2));
        assert!(!decision.events.is_empty(), "nobody gets on");
        for event in &decision.events {
            world.state.apply(event).expect("it was decided");
        }
        next = Command::ServeWaiters { max_waiters: 100 };
    }
    assert_eq!(world.state.lease_count(), 8 * 1_024);
}
