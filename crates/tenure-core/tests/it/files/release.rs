//! How leases on files end: commit, rest, end, death, handing up; and what is left behind.

use tenure_core::kernel::{KernelState, Limits, Resource, Tick};

use crate::scenario::{ScenarioWorld, check_scenario};

fn uncommitted(state: &KernelState, name: &str) -> Option<(String, Tick)> {
    let file = state.uncommitted_file(&Resource::parse(name).expect("a name"))?;
    Some((file.owner.holder.as_str().into(), file.at))
}

#[test]
fn commit_releases_only_the_committed_files() {
    // S4-50 S4-29
    check_scenario(
        "
           0  session s1 wants a+b              -> began s1, granted 1 2
           5  session s1 commits a+c            -> 1 COMPLETED, lets go a
           6  session s2 wants a                -> began s2, granted 3
           7  session s2 wants b checked s1     -> seen s2, contended t1 b of s1 due 187, waits b of s1 t1 until 187
        ",
    );
}

#[test]
fn commit_of_a_file_of_another_session_is_reported_as_foreign() {
    check_scenario(
        "
           0  session s1 wants a                -> began s1, granted 1
           0  session s2 wants b                -> began s2, granted 2
           0  acquire c alice 100               -> granted 3
           5  session s2 commits a+b+c          -> 2 COMPLETED, lets go b foreign a of s1
           6  session alice commits c           -> lets go
           7  session nobody commits a          -> lets go foreign a of s1
        ",
    );
}

#[test]
fn commit_releases_files_of_subagents_but_not_of_parents() {
    check_scenario(
        "
           0  session s1 wants a                -> began s1, granted 1
           0  session s1.x of s1 wants b        -> began s1.x, granted 2
           0  session s1.x.y of s1.x wants c    -> began s1.x.y, granted 3
           5  session s1.x commits a+b          -> 2 COMPLETED, lets go b foreign a of s1
           6  session s1 commits a+c            -> 1 COMPLETED, 3 COMPLETED, lets go a c
        ",
    );
}

#[test]
fn session_end_releases_its_files() {
    // S4-51 S4-31 S4-30 S4-4
    check_scenario(
        "
           0  session s1 wants a+b              -> began s1, granted 1 2
           1  session s2 wants b checked s1     -> began s2, contended t1 b of s1 due 181, waits b of s1 t1 until 181
           2  session s1 wants c                -> seen s1, granted 3
           5  session s1 ends                   -> 1 VOLUNTARY, 2 VOLUNTARY, 3 VOLUNTARY, over s1 ENDED, lets go a b c
           5  session s1 ends                   -> lets go
           6  session s2 wants b                -> seen s2, closed t1 SERVED, granted 4 left b by s1 at 5
        ",
    );
}

#[test]
fn dead_session_loses_its_files() {
    // S4-52 S4-32 S4-20 S4-22 S4-43 S4-58 S4-13
    check_scenario(
        "
           0  session s1 wants a                -> began s1, granted 1
           1  session s2 wants a                -> began s2, check s1
           1  session s1 dies                   -> revoked 1 Reclaimed, over s1 DIED, lets go a
           1  session s2 wants a                -> granted 2 left a by s1 at 1
        ",
    );
}

#[test]
fn dead_session_loses_its_retry_tickets() {
    check_scenario(
        "
           0  session s1 wants a                -> began s1, granted 1
           1  session s2 wants a checked s1     -> began s2, contended t1 a of s1 due 181, waits a of s1 t1 until 181
           2  session s2 dies                   -> closed t1 GONE, over s2 DIED, lets go
           3  session s2 wants a checked s1     -> began s2, contended t2 a of s1 due 183, waits a of s1 t2 until 183
        ",
    );
}

#[test]
fn idle_session_releases_its_files_after_30_seconds() {
    // S4-53 S4-33 S4-59
    check_scenario(
        "
           0  session s1 wants a+b              -> began s1, granted 1 2
          10  session s1 turn ends              -> turn over s1, noted
          39.999999  session s1 rests 10        -> NotIdle
          40  session s1 rests 10               -> 1 VOLUNTARY, 2 VOLUNTARY, lets go a b
          41  session s1 rests 10               -> lets go
          50  session s1 wants a                -> seen s1, granted 3
        ",
    );
}

#[test]
fn idle_release_is_rejected_after_new_activity() {
    check_scenario(
        "
           0  session s1 wants a                -> began s1, granted 1
          10  session s1 turn ends              -> turn over s1, noted
          20  session s1 is active              -> seen s1, noted
          40  session s1 rests 10               -> NotIdle
          45  session s1 turn ends              -> turn over s1, noted
          60  session s1 rests 10               -> NotIdle
          74  session s1 rests 45               -> NotIdle
          75  session s1 rests 45               -> 1 VOLUNTARY, lets go a
          76  session s9 rests 45               -> NoSuchSession
        ",
    );
}

#[test]
fn idle_release_keeps_open_files() {
    check_scenario(
        "
           0  session s1 wants a+b              -> began s1, granted 1 2
          10  session s1 turn ends              -> turn over s1, noted
          40  session s1 rests 10 keep b+c      -> 1 VOLUNTARY, lets go a
          45  session s1 rests 10               -> 2 VOLUNTARY, lets go b
        ",
    );
}

#[test]
fn idle_release_keeps_retry_tickets() {
    check_scenario(
        "
           0  session s1 wants a                -> began s1, granted 1
           0  session s2 wants b                -> began s2, granted 2
           1  session s2 wants a checked s1     -> seen s2, contended t1 a of s1 due 181, waits a of s1 t1 until 181
          10  session s2 turn ends              -> turn over s2, noted
          40  session s2 rests 10               -> 2 VOLUNTARY, lets go b
         181  session s2 wants a checked s1     -> seen s2, blocked t1 by s1 since 0 seen 0, stops a of s1 t1 report t1
        ",
    );
}

#[test]
fn subagent_may_use_files_of_its_ancestors_only() {
    check_scenario(
        "
           0  session s1 wants a                -> began s1, granted 1
           1  session s1.x of s1 wants a        -> began s1.x, granted
           1  session s1.x.z of s1.x wants a+b  -> began s1.x.z, granted 2
           2  session s1.y of s1 wants b        -> began s1.y, check s1.x.z
           3  session s1.y of s1 wants a+b checked s1.x.z  -> seen s1.y, contended t1 b of s1.x.z due 183, waits b of s1.x.z t1 until 183
           4  session s1 wants b                -> seen s1, check s1.x.z
           5  session s1.x of s1 wants b        -> seen s1.x, check s1.x.z
           6  session s1 wants b checked s1.x.z -> seen s1, contended t2 b of s1.x.z due 186, waits b of s1.x.z t2 until 186
        ",
    );
}

#[test]
fn finished_subagent_transfers_its_files_to_its_parent() {
    let mut world = ScenarioWorld::new(Limits::default());
    world.play(
        "
           0  session s1 is active              -> began s1, noted
           0  session s1.x of s1 is active      -> began s1.x, noted
           1  session s1.x.z of s1.x wants a+b  -> began s1.x.z, granted 1 2
           2  session s1 wants b checked s1.x.z -> seen s1, contended t1 b of s1.x.z due 182, waits b of s1.x.z t1 until 182
           3  session s1.x.z hands up           -> revoked 1 Transferred, revoked 2 Transferred, over s1.x.z HANDED_UP, lets go a b
           4  session s1 wants b                -> seen s1, check s1.x
           5  session s1.x hands up             -> revoked 3 Transferred, revoked 4 Transferred, closed t1 SERVED, over s1.x HANDED_UP, lets go a b
           6  session s1 wants a+b              -> seen s1, granted
        ",
    );
    assert_eq!(uncommitted(&world.state, "a"), None);
}

#[test]
fn subagents_ending_together_transfer_files_to_the_remaining_ancestor() {
    check_scenario(
        "
           0  session s1 is active              -> began s1, noted
           0  session s1.x of s1 wants a        -> began s1.x, granted 1
           1  session s1.x.z of s1.x wants b    -> began s1.x.z, granted 2
           5  session s1.x hands up             -> revoked 2 Transferred, over s1.x.z HANDED_UP, revoked 1 Transferred, over s1.x HANDED_UP, lets go b a
           6  session s1 wants a+b              -> seen s1, granted
           7  session s1 hands up               -> 3 VOLUNTARY, 4 VOLUNTARY, over s1 HANDED_UP, lets go b a
        ",
    );
}

#[test]
fn subagents_end_before_their_session() {
    check_scenario(
        "
           0  session s1 wants a                -> began s1, granted 1
           0  session s1.x of s1 wants b        -> began s1.x, granted 2
           0  session s1.x.z of s1.x wants c    -> began s1.x.z, granted 3
           0  session s2 wants d                -> began s2, granted 4
           1  session s1.x of s1 wants d checked s2  -> seen s1.x, contended t1 d of s2 due 181, waits d of s2 t1 until 181
           5  session s1 dies                   -> revoked 3 Reclaimed, over s1.x.z DIED, revoked 2 Reclaimed, closed t1 GONE, over s1.x DIED, revoked 1 Reclaimed, over s1 DIED, lets go c b a
        ",
    );
}

#[test]
fn uncommitted_files_are_reported_to_the_next_unrelated_session() {
    let mut world = ScenarioWorld::new(Limits::default());
    world.play(
        "
           0  session s1 wants a+b+c            -> began s1, granted 1 2 3
           1  session s1.x of s1 wants d        -> began s1.x, granted 4
           5  session s1 turn ends              -> turn over s1, noted
          35  session s1 rests 5 keep c         -> 1 VOLUNTARY, 2 VOLUNTARY, lets go a b
          36  session s1.x ends                 -> 4 VOLUNTARY, over s1.x ENDED, lets go d
          40  session s1 wants a+d              -> seen s1, granted 5 6
          41  session s1 commits a              -> 5 COMPLETED, lets go a
        ",
    );
    assert_eq!(uncommitted(&world.state, "a"), None);
    assert_eq!(uncommitted(&world.state, "b"), Some(("s1".into(), Tick(35_000_000))));
    world.play(
        "
          50  session s2 wants a+b              -> began s2, granted 7 8 left b by s1 at 35
          51  session s2 wants b                -> seen s2, granted left b by s1 at 35
          60  session s2 dies                   -> revoked 7 Reclaimed, revoked 8 Reclaimed, over s2 DIED, lets go a b
        ",
    );
    assert_eq!(uncommitted(&world.state, "b"), Some(("s2".into(), Tick(60_000_000))));
    world.play("70  session s3 wants a+b  -> began s3, granted 9 10 left a by s2 at 60 left b by s2 at 60");
    world.play("71  session s3 commits a+b  -> 9 COMPLETED, 10 COMPLETED, lets go a b");
    assert_eq!((uncommitted(&world.state, "a"), uncommitted(&world.state, "b")), (None, None));
}

#[test]
fn adopt_transfers_files_of_the_same_process() {
    check_scenario(
        "
           0  session guard wants a in p        -> began guard, granted 1
           1  session s2 wants a checked guard  -> began s2, contended t1 a of guard due 181, waits a of guard t1 until 181
           2  session s1 adopts guard in q      -> guard is taken
           3  session s1 adopts guard in p      -> began s1, revoked 1 Transferred, over guard HANDED_UP, noted
           4  session s1 wants a in p           -> seen s1, granted
           6  session s1 adopts guard in p      -> seen s1, noted
           7  session s1 commits a              -> 2 COMPLETED, lets go a
           8  session s2 wants a                -> seen s2, closed t1 SERVED, granted 3
        ",
    );
}

#[test]
fn adopt_does_not_serve_waiters() {
    let mut world = ScenarioWorld::new(Limits::default());
    world.play(
        "
           0  session guard wants a in p        -> began guard, granted 1
           1  acquire a alice 10 wait 100       -> queued t1 place 1 behind guard until 101
           3  session s1 adopts guard in p      -> began s1, revoked 1 Transferred, over guard HANDED_UP, noted
           4  session s2 wants a checked s1     -> began s2, contended t2 a of s1 due 184, waits a of s1 t2 until 184
           5  session s1 commits a              -> 2 COMPLETED, served t1 with 3, lets go a
        ",
    );
    assert_eq!(uncommitted(&world.state, "a"), None, "nobody left anything behind");
}

#[test]
fn background_activity_does_not_start_a_new_turn() {
    // S4-33
    check_scenario(
        "
           0  session s1 wants a                -> began s1, granted 1
           5  session s1 turn ends              -> turn over s1, noted
          20  session s1 wants b background     -> seen s1, turn over s1, granted 2
          51  session s1 rests 20               -> 1 VOLUNTARY, 2 VOLUNTARY, lets go a b
          60  session s1 is active              -> seen s1, noted
          70  session s1 wants c background     -> seen s1, granted 3
        ",
    );
}
