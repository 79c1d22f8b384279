//! What agents may hold at the same time, and that a manifest is granted whole or not at all.

use tenure_core::kernel::{LeaseMode, Limits};

use crate::scenario::{ScenarioWorld, check_scenario};

const MODES: [&str; 6] = ["PROVIDES", "CONSUMES", "DEPENDS_ON", "MUTATES", "DELETES", "RENAMES"];

/// Row and column as in [`MODES`], written down once more.
#[rustfmt::skip]
const COMPATIBLE: [[bool; 6]; 6] = [
    [false, true,  true,  false, false, false],
    [true,  true,  true,  false, false, false],
    [true,  true,  true,  false, false, false],
    [false, false, false, false, false, false],
    [false, false, false, false, false, false],
    [false, false, false, false, false, false],
];

// S3-4, S3-5, O-17
#[test]
fn manifest_verdicts_follow_the_compatibility_table() {
    for (row, held) in MODES.iter().enumerate() {
        for (column, requested) in MODES.iter().enumerate() {
            let (younger, older) = match COMPATIBLE[row][column] {
                true => ("granted 2", "granted 3"),
                false => ("died young, dies behind middle", "waits t1 place 1 behind middle until 60"),
            };
            // The youngest lets go first, so that only the one in the middle is in the way of the oldest.
            let lets_go = if COMPATIBLE[row][column] {
                "agent young releases 2 -> released 2"
            } else {
                "expire -> swept"
            };
            // The same name, and a name that only has a part in common with it.
            for name in ["FILE:src/a", "FILE:src/", "FILE:src/*.rs"] {
                check_scenario(&format!(
                    "
                    0  agent middle declares 20 FILE:src/a/{held}  -> granted 1
                    0  agent young declares 30 {name}/{requested}  -> {younger}
                    0  {lets_go}
                    0  agent old declares 10 {name}/{requested}    -> {older}
                    "
                ));
            }
        }
    }
}

// O-17
#[test]
fn worst_verdict_of_a_manifest_applies_to_all_of_it() {
    check_scenario(
        "
         0  agent oldest declares 1 FILE:a/MUTATES                       -> granted 1
         0  agent youngest declares 9 FILE:b/MUTATES                     -> granted 2
         0  agent middle declares 5 FILE:b/MUTATES+FILE:c/MUTATES        -> waits t1 place 1 behind youngest until 60
         0  agent middle declares 5 FILE:b/MUTATES+FILE:a/CONSUMES       -> died middle, dies behind oldest youngest
         0  agent middle declares 5 FILE:c/MUTATES                       -> granted 3
    ",
    );
}

// S3-5, O-17: nothing is granted unless all is.
#[test]
fn manifest_is_granted_atomically() {
    let mut world = ScenarioWorld::new(Limits::default());
    world.play(
        "
         0  agent old declares 1 FILE:a/MUTATES                          -> granted 1
         0  agent young declares 9 FILE:b/MUTATES+FILE:a/CONSUMES        -> died young, dies behind old
    ",
    );
    assert_eq!(world.state.leases_from(tenure_core::kernel::Fence(0)).count(), 1);
    world.play(
        "
         0  agent third declares 5 FILE:b/MUTATES                        -> granted 2
         1  agent old declares 1 FILE:b/MUTATES+FILE:c/DELETES           -> waits t1 place 1 behind third until 61
         1  agent fourth declares 6 FILE:c/DELETES                       -> died fourth, dies behind old
         2  agent third releases 2                                       -> served t1 with 3, served t1 with 4, released 2
         2  agent old declares 1 FILE:b/MUTATES+FILE:c/DELETES           -> granted 3 4
    ",
    );
}

// Who holds something without an age is in everybody's way: it is not skipped.
// O-17
#[test]
fn plain_lease_blocks_even_the_oldest_agent() {
    check_scenario(
        "
         0  acquire FILE:a person 30                                     -> granted 1
         0  agent old declares 1 FILE:a/CONSUMES                         -> died old, dies behind person
         1  release 1                                                    -> released 1
         1  agent old declares 1 FILE:a/CONSUMES                         -> granted 2
         1  acquire FILE:a/shared person 30                              -> granted 3
         1  agent old declares 1 FILE:a/MUTATES                          -> died old, dies behind person
    ",
    );
}

// S3-3
#[test]
fn manifest_with_an_invalid_ttl_wait_or_intent_is_rejected() {
    check_scenario(
        "
         0  agent a declares 1 FILE:a/MUTATES for 0                      -> ttl out of range
         0  agent a declares 1 FILE:a/MUTATES for 100000                 -> ttl out of range
         0  agent a declares 1 FILE:a/MUTATES wait 0                     -> invalid waitTimeoutMs
         0  agent a declares 1 deploy:prod/MUTATES                       -> invalid intents
         0  agent a declares 1 FILE:a/MUTATES+FILE:a/CONSUMES            -> invalid intents
    ",
    );
}

/// Names that are too long to be stored as they are are told apart all the same.
// S3-2, O-18
#[test]
fn names_longer_than_128_bytes_are_distinguished() {
    let folder = format!("FILE:{}/", "deep/".repeat(60));
    let (one, other) = (format!("{folder}{}", "x".repeat(150)), format!("{folder}{}y", "x".repeat(149)));
    let (old, young) = (format!("old-{}", "o".repeat(200)), format!("young-{}", "y".repeat(200)));
    check_scenario(&format!(
        "
         0  agent {young} declares 9 {one}/MUTATES          -> granted 1
         0  agent {young} declares 9 {other}/MUTATES        -> granted 2
         0  agent {old} declares 1 {one}/MUTATES            -> waits t1 place 1 behind {young} until 60
         1  agent {young} beats 1 2                         -> beats: 1 until 61, 2 until 61
         2  agent {young} releases 1                        -> served t1 with 3, released 1
         2  agent {old} touches {one}/MUTATES               -> within
         2  agent {old} touches {other}/MUTATES             -> strayed {old} {other}, outside {other}
         3  agent {young} declares 9 {folder}/CONSUMES      -> died {young}, dies behind {old}
    "
    ));
}

#[test]
fn test_compatibility_table_matches_the_kernel() {
    for (row, one) in MODES.iter().enumerate() {
        for (column, other) in MODES.iter().enumerate() {
            let mode = |name: &str| LeaseMode::parse(name).expect("a mode");
            assert_eq!(mode(one).is_compatible(mode(other)), COMPATIBLE[row][column], "{one} and {other}");
        }
    }
}
