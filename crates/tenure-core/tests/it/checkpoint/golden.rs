//! Checkpoints that were recorded are restored, and written alike: a pruned ledger has nothing else.

use tenure_core::kernel::{HashSeed, KernelState, Limits, Tick};

use crate::checkpoint::damage as kernel_checkpoint_damage;
use crate::checkpoint::round_trip::{check_same, save};
use crate::files::encoding as kernel_files_encoding;
use crate::intents::sessions_encoding as kernel_intent_sessions_encoding;
use crate::scenario::ScenarioWorld;
use crate::scenario_agents::parse_agent_command;
use crate::work::fixture::{self as work, claim, claim_request, derive, key, release, spend, spend_request};

/// A state with files as it was recorded when its form came to be, in hexadecimal digits.
const RECORDED: &str = include_str!("../checkpoints.txt");

/// Each sample as it is written now. Other bytes are a new version.
const WRITTEN: &str = include_str!("../checkpoints_written.txt");

fn samples() -> [KernelState; 6] {
    [
        kernel_checkpoint_damage::sample_state(),
        kernel_checkpoint_damage::sample_state_with_alternatives(),
        kernel_intent_sessions_encoding::sample().state,
        with_agents(),
        with_work(),
        kernel_files_encoding::sample().state,
    ]
}

/// Agents that hold, wait, died, strayed and restart.
fn with_agents() -> KernelState {
    let mut world = ScenarioWorld::new(Limits::default());
    let steps = [
        (0, "young", "declares 20 FILE:a/MUTATES+FILE:c/CONSUMES"),
        (1, "old", "declares 10 FILE:a/MUTATES+FILE:b/MUTATES"),
        (2, "late", "declares 30 FILE:a/MUTATES"),
        (3, "young", "reports EXECUTING"),
        (3, "young", "touches FILE:a"),
        (4, "young", "touches FILE:z"),
        (5, "other", "declares 40 FILE:d/MUTATES"),
        (6, "other", "reports DIE_RESTART"),
        (7, "last", "declares 50 FILE:e/MUTATES"),
        (8, "last", "reports COMPLETED"),
    ];
    for (second, agent, words) in steps {
        let words: Vec<&str> = words.split_whitespace().collect();
        world.decide_and_apply(&parse_agent_command(agent, &words), Tick(second * 1_000_000));
    }
    let phases: Vec<_> = world.state.agents().map(|(_, agent)| agent.phase).collect();
    assert!(world.state.waiting_agents().count() == 1 && phases.len() == 5, "{phases:?}");
    world.state
}

/// A lease with two children, one of which is over, and something that was spent under a key.
fn with_work() -> KernelState {
    let mut world = work::WorkFixture::new();
    let parent = world.expect_granted(&claim(claim_request("a", 60, 100)));
    world.expect_granted(&derive(parent, claim_request("b", 50, 10)));
    let child = world.expect_granted(&derive(parent, claim_request("c", 40, 20)));
    let mut paid = spend_request(parent, 7);
    paid.key = key(1, 2);
    world.run_after(1, &spend(paid));
    world.run_after(1, &spend(spend_request(child, 3)));
    world.run_after(1, &release(child));
    world.state
}

#[test]
fn recorded_checkpoints_restore_their_states() {
    let recorded = RECORDED.lines().zip([kernel_files_encoding::sample().state]);
    for (line, state) in recorded.chain(WRITTEN.lines().zip(samples())) {
        let digits = line.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("digits"));
        let bytes: Vec<u8> = digits.map(|pair| u8::from_str_radix(pair, 16).expect("a byte")).collect();
        let restored =
            KernelState::restore(&bytes, state.ledger_tag(), state.limits().clone(), HashSeed(3, 4));
        check_same(&state, &restored.expect("a recorded checkpoint is restored"));
    }
}

#[test]
fn checkpoint_bytes_are_stable() {
    let written: Vec<_> = samples().iter().map(|state| kernel_checkpoint_damage::hex(&save(state))).collect();
    assert!(written.iter().eq(WRITTEN.lines()), "other bytes than before:\n{}", written.join("\n"));
}
