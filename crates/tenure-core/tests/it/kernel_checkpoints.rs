//! Checkpoints that were recorded are restored, and written alike: a pruned ledger has nothing else.

use tenure_core::kernel::{HashKey, Limits, State, Tick};

use crate::kernel_bytes::{check_same, save};
use crate::kernel_work_world::{self as work, claim, claim_of, derive, key, release, spend, spend_of};
use crate::story::World;
use crate::story_agents::command;
use crate::{kernel_bytes_damaged, kernel_files_bytes, kernel_sessions_bytes};

/// A state with files as it was recorded when its form came to be, in hexadecimal digits.
const RECORDED: &str = include_str!("checkpoints.txt");

/// Each sample as it is written now. Other bytes are a new version.
const WRITTEN: &str = include_str!("checkpoints_written.txt");

fn samples() -> [State; 6] {
    [
        kernel_bytes_damaged::sample(),
        kernel_bytes_damaged::choosing(),
        kernel_sessions_bytes::sample().state,
        with_agents(),
        with_work(),
        kernel_files_bytes::sample().state,
    ]
}

/// Agents that hold, wait, died, strayed and restart.
fn with_agents() -> State {
    let mut world = World::new(Limits::default());
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
        world.take(&command(agent, &words), Tick(second * 1_000_000));
    }
    let phases: Vec<_> = world.state.agents().map(|(_, agent)| agent.phase).collect();
    assert!(world.state.pending().count() == 1 && phases.len() == 5, "{phases:?}");
    world.state
}

/// A lease with two children, one of which is over, and something that was spent under a key.
fn with_work() -> State {
    let mut world = work::World::new();
    let parent = world.granted(&claim(claim_of("a", 60, 100)));
    world.granted(&derive(parent, claim_of("b", 50, 10)));
    let over = world.granted(&derive(parent, claim_of("c", 40, 20)));
    let mut paid = spend_of(parent, 7);
    paid.key = key(1, 2);
    world.after(1, &spend(paid));
    world.after(1, &spend(spend_of(over, 3)));
    world.after(1, &release(over));
    world.state
}

#[test]
fn recorded_checkpoints_restore_their_states() {
    let recorded = RECORDED.lines().zip([kernel_files_bytes::sample().state]);
    for (line, state) in recorded.chain(WRITTEN.lines().zip(samples())) {
        let digits = line.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("digits"));
        let bytes: Vec<u8> = digits.map(|pair| u8::from_str_radix(pair, 16).expect("a byte")).collect();
        let restored = State::restore(&bytes, state.tag(), state.limits().clone(), HashKey(3, 4));
        check_same(&state, &restored.expect("a recorded checkpoint is restored"));
    }
}

#[test]
fn checkpoint_bytes_are_stable() {
    let written: Vec<_> = samples().iter().map(|state| kernel_bytes_damaged::hex(&save(state))).collect();
    assert!(written.iter().eq(WRITTEN.lines()), "other bytes than before:\n{}", written.join("\n"));
}
