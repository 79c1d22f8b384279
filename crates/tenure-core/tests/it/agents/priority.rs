//! How old an agent is, for how long that stands, and what it may remember of itself.

use crate::scenario::check_scenario;

// S3-9, S3-10
#[test]
fn priority_is_fixed_during_an_attempt() {
    check_scenario(
        "
         0  agent a declares 20 FILE:a/MUTATES          -> granted 1
         0  agent a declares 10 FILE:b/MUTATES          -> PriorityFixed { current: 20 }
         0  agent a declares 30 FILE:b/MUTATES          -> PriorityFixed { current: 20 }
         0  agent a declares 20 FILE:b/MUTATES          -> granted 2
         1  agent a releases 1 2                        -> released 1 2
         1  agent a declares 19 FILE:b/MUTATES          -> PriorityFixed { current: 20 }
         1  agent a declares 30 FILE:b/MUTATES          -> granted 3
         1  agent a declares 20 FILE:b/MUTATES          -> PriorityFixed { current: 30 }
    ",
    );
}

// S3-9: who died has not given up. S3-10: who gives up begins anew.
#[test]
fn priority_survives_a_die_verdict_until_the_attempt_is_aborted() {
    check_scenario(
        "
         0  agent old declares 10 FILE:a/MUTATES        -> granted 1
         0  agent young declares 20 FILE:a/MUTATES      -> died young, dies behind old
         1  agent young declares 21 FILE:b/MUTATES      -> PriorityFixed { current: 20 }
         1  agent young reports ABORTED                 -> noted
         1  agent young declares 21 FILE:b/MUTATES      -> granted 2
    ",
    );
}

// S3-9: who waits has not given up either.
#[test]
fn priority_is_fixed_while_the_agent_is_waiting() {
    check_scenario(
        "
         0  agent young declares 20 FILE:a/MUTATES          -> granted 1
         0  agent old declares 10 FILE:a/MUTATES wait 5     -> waits t1 place 1 behind young until 5
         4  agent old declares 11 FILE:b/MUTATES            -> PriorityFixed { current: 10 }
         5  agent old declares 11 FILE:b/MUTATES            -> left t1 TIMED_OUT, granted 2
    ",
    );
}

// S3-9: a lease that is over is no attempt that goes on.
#[test]
fn attempt_ends_when_the_last_lease_expires() {
    check_scenario(
        "
         0          agent a declares 20 FILE:a/MUTATES for 10   -> granted 1
         9.999999   agent a declares 30 FILE:b/MUTATES for 10   -> PriorityFixed { current: 20 }
        10          agent a declares 30 FILE:b/MUTATES for 10   -> expired 1, granted 2
    ",
    );
}

// S3-15, S3-21
#[test]
fn completed_or_aborted_agent_loses_its_leases_and_tickets() {
    for phase in ["COMPLETED", "ABORTED"] {
        check_scenario(&format!(
            "
         0  agent young declares 20 FILE:a/MUTATES+FILE:b/MUTATES   -> granted 1 2
         0  agent m declares 15 FILE:c/MUTATES                      -> granted 3
         0  agent m declares 15 FILE:a/MUTATES                      -> waits t1 place 1 behind young until 60
         0  agent old declares 10 FILE:c/MUTATES                    -> waits t2 place 1 behind m until 60
         1  agent m reports {phase}                                 -> left t1 WITHDRAWN, served t2 with 4, noted
         1  agent m beats 3                                         -> beats: 3 released
         2  agent young releases 1                                  -> released 1
    "
        ));
    }
}

#[test]
fn reporting_other_phases_does_not_change_leases() {
    for phase in ["PLANNING", "ACQUIRING", "EXECUTING", "PAUSED", "VERIFYING"] {
        check_scenario(&format!(
            "
         0  agent a declares 20 FILE:a/MUTATES for 10   -> granted 1
         9  agent a reports {phase}                     -> noted
        10  expire                                      -> expired 1, swept
    "
        ));
    }
}

// An agent's name is its principal's: nobody else speaks for it.
#[test]
fn commands_for_an_agent_of_another_principal_are_rejected() {
    let mut world = crate::scenario::ScenarioWorld::new(Default::default());
    world.play("0 agent a declares 1 FILE:a/MUTATES -> granted 1");
    let words: [&[&str]; 5] = [
        &["declares", "1", "FILE:b/MUTATES"],
        &["beats", "1"],
        &["releases", "1"],
        &["reports", "COMPLETED"],
        &["touches", "FILE:b/MUTATES"],
    ];
    for words in words {
        let mut command = crate::scenario_agents::parse_agent_command("a", words);
        let tenure_core::kernel::Command::Agent(agent_command) = &mut command else {
            unreachable!("it is an agent's")
        };
        crate::scenario_agents::set_principal(agent_command, "mallory");
        let decision = world.decide_and_apply(&command, tenure_core::kernel::Tick(1));
        let taken = tenure_core::kernel::Rejection::HolderTaken { holder: crate::scenario::holder("a") };
        assert_eq!(decision.outcome, tenure_core::kernel::CommandOutcome::Rejected(taken), "{words:?}");
    }
}

// O-19, S3-18
#[test]
fn agent_memory_is_accepted_for_five_minutes_and_only_from_the_latest_epoch() {
    check_scenario(
        "
           0          agent a declares 20 FILE:a/MUTATES for 1000       -> granted 1
           1          agent a reports DIE_RESTART age 20 epoch 1        -> noted
           2          agent a reports EXECUTING age 20 epoch 2          -> noted
           3          agent a reports EXECUTING age 20 epoch 1          -> MemoryStale { epoch: 2 }
           3          agent a reports EXECUTING age 21 epoch 2          -> PriorityFixed { current: 20 }
         300.999999   agent a reports EXECUTING age 20 epoch 2          -> noted
         301          agent a reports EXECUTING age 20 epoch 3          -> MemoryStale { epoch: 2 }
         301          agent a reports EXECUTING                         -> noted
         302          agent a reports DIE_RESTART                       -> noted
         303          agent a reports EXECUTING age 20 epoch 3          -> noted
         304          agent a beats 1                                   -> beats: 1 until 1304
    ",
    );
}
