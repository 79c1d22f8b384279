//! What people do about files: give, take, let go on. And others who hold what a session wants.

use tenure_core::kernel::{Event, Fence, Limits, Resource, TickDuration};

use crate::scenario::{ScenarioWorld, check_scenario};

#[test]
fn file_can_be_handed_to_another_session_by_a_person() {
    let mut world = ScenarioWorld::new(Limits::default());
    world.play(
        "
           0  session s1 wants a=x              -> began s1, granted 1 2
           1  session s2 wants a=x checked s1   -> began s2, contended t1 a of s1 due 181, waits a of s1 t1 until 181
           2  session s2 wants x checked s1     -> seen s2, contended t2 x of s1 due 182, waits x of s1 t2 until 182
           5  person gives a=x=x to s2          -> closed t1 RESUMED, closed t2 RESUMED, revoked 1 Transferred, revoked 2 Transferred, granted 3 4
           5  person gives a=x to s2            -> granted
           6  session s2 wants a                -> seen s2, granted left a by s1 at 5
           7  session s1 wants a checked s2     -> seen s1, contended t3 a of s2 due 187, waits a of s2 t3 until 187
           8  person gives b to s2              -> granted 5
           9  person gives b to s9              -> NoSuchSession
        ",
    );
    let file = world.state.uncommitted_file(&Resource::parse("a").expect("a name"));
    assert_eq!(file.map(|file| file.owner.holder.as_str()), Some("s1"));
}

#[test]
fn queued_waiter_does_not_block_handing_a_file_to_a_session() {
    check_scenario(
        "
           0  session s1 wants a                -> began s1, granted 1
           0  session s2 is active              -> began s2, noted
           1  acquire a alice 10 wait 100       -> queued t1 place 1 behind s1 until 101
           5  person gives a to s2              -> revoked 1 Transferred, granted 2
           6  person forces a                   -> revoked 2 Revoked, served t1 with 3, lets go a
           7  person gives a to s2              -> held by alice until 16, 0 waiting
        ",
    );
}

#[test]
fn force_release_applies_to_sessions_only() {
    check_scenario(
        "
           0  session s1 wants a+b              -> began s1, granted 1 2
           0  acquire c alice 100               -> granted 3
           5  person forces a+a+c+d             -> revoked 1 Revoked, lets go a
           6  session s2 wants a                -> began s2, granted 4 left a by s1 at 5
        ",
    );
}

#[test]
fn resume_requires_the_file_of_the_report() {
    check_scenario(
        "
           0  session s1 wants a=x              -> began s1, granted 1 2
           0  session s2 wants a=x checked s1   -> began s2, contended t1 a of s1 due 180, waits a of s1 t1 until 180
         180  session s2 wants a=x checked s1   -> seen s2, blocked t1 by s1 since 0 seen 0, stops a of s1 t1 report t1
         181  person resumes 1 b                -> invalid file
         182  person resumes 7 a                -> no such ticket
         190  session s1 ends                   -> 1 VOLUNTARY, 2 VOLUNTARY, over s1 ENDED, lets go a x
         191  person resumes 1 a=x=x            -> closed t1 RESUMED, granted 3 4
        ",
    );
}

#[test]
fn resume_of_a_subagent_accepts_a_file_of_its_session() {
    check_scenario(
        "
           0  session s1 is active              -> began s1, noted
           0  session s2 wants a                -> began s2, granted 1
           0  session s1.x of s1 wants a checked s2  -> began s1.x, contended t1 a of s2 due 180, waits a of s2 t1 until 180
         180  session s1.x of s1 wants a checked s2  -> seen s1.x, blocked t1 by s2 since 0 seen 0, stops a of s2 t1 report t1
         190  session s2 commits a              -> 1 COMPLETED, lets go a
         191  session s1 wants a                -> seen s1, granted 2
         192  person resumes 1 a                -> closed t1 RESUMED, granted
        ",
    );
}

#[test]
fn plain_lease_on_a_file_blocks_sessions_without_a_liveness_check() {
    check_scenario(
        "
           0  acquire a alice 1000              -> granted 1
           5  session s1 wants a                -> began s1, contended t1 a of alice due 185, waits a of alice t1 until 185
         185  session s1 wants a                -> seen s1, blocked t1 by alice since 0 seen 0, stops a of alice t1 report t1
         190  person resumes 1 a                -> held by alice until 1000, 0 waiting
        1000  session s1 wants a                -> seen s1, expired 1, closed t1 SERVED, granted 2
        ",
    );
}

#[test]
fn agent_lease_on_a_folder_blocks_its_files() {
    check_scenario(
        "
           0  agent old declares 1 FILE:t/src//MUTATES for 1000  -> granted 1
           5  session s1 wants FILE:t/src/a     -> began s1, contended t1 FILE:t/src/a of old due 185, waits FILE:t/src/a of old t1 until 185
           6  session s1 wants FILE:t/lib/a     -> seen s1, granted 2
         185  session s1 wants FILE:t/src/a     -> seen s1, blocked t1 by old since 0 seen 0, stops FILE:t/src/a of old t1 report t1
        ",
    );
}

#[test]
fn queued_waiter_does_not_block_the_file_owner() {
    check_scenario(
        "
           0  session s1 wants a=x              -> began s1, granted 1 2
           0  session s1.x of s1 is active      -> began s1.x, noted
           1  acquire a alice 10 wait 1000      -> queued t1 place 1 behind s1 until 1001
           3  session s1 wants a=x              -> seen s1, granted
           4  session s1.x of s1 wants a        -> seen s1.x, granted
           5  session s2 wants a checked s1     -> began s2, contended t2 a of s1 due 185, waits a of s1 t2 until 185
           6  session s1 commits a              -> 1 COMPLETED, served t1 with 3, lets go a
           7  session s1 wants a                -> seen s1, contended t3 a of alice due 187, waits a of alice t3 until 187
        ",
    );
}

#[test]
fn expired_plain_lease_is_released_before_a_file_is_acquired() {
    check_scenario(
        "
           0  acquire a alice 10                -> granted 1
           1  acquire a bob 10 wait 100         -> queued t1 place 1 behind alice until 101
          10  session s1 wants a                -> began s1, expired 1, served t1 with 2, contended t2 a of bob due 190, waits a of bob t2 until 190
        ",
    );
}

#[test]
fn acquire_with_a_file_session_as_holder_is_rejected() {
    check_scenario(
        "
           0  session s1 wants a                -> began s1, granted 1
           0  session s2 is active              -> began s2, noted
           0  acquire b alice 100               -> granted 2
           1  acquire c s1 10                   -> s1 is taken
           1  acquire c s2 10                   -> s2 is taken
           1  acquire a s1 10 as system:files wait 5  -> s1 is taken
           1  acquire c bob 10 as system:files  -> bob is taken
           1  acquire a bob 10 as system:files wait 5  -> bob is taken
           2  transfer 2 to s2                  -> s2 is taken
           2  transfer 1 to alice               -> s1 is taken
           2  downgrade 1 SHARED                -> s1 is taken
           3  agent s2 declares 1 FILE:c/MUTATES  -> s2 is taken
           3  agent s2 reports PLANNING          -> s2 is taken
        ",
    );
}

#[test]
fn session_with_the_id_of_another_holder_is_rejected() {
    check_scenario(
        "
           0  acquire a alice 10                -> granted 1
           0  acquire a bob 10 wait 100         -> queued t1 place 1 behind alice until 100
           0  agent old declares 1 FILE:c/MUTATES  -> granted 2
           1  session alice wants b             -> alice is taken
           1  session bob wants b               -> bob is taken
           1  session old wants b               -> old is taken
           2  release 1 alice                   -> served t1 with 3, released 1
           3  session alice wants b             -> alice is taken
        ",
    );
}

#[test]
fn file_acquire_during_the_restore_hold_is_rejected() {
    let mut world = ScenarioWorld::new(Limits::default());
    world.play("0  session s1 wants a  -> began s1, granted 1");
    let at = world.state.now();
    let hold_until = at.saturating_add(TickDuration::from_secs(60));
    world.apply(&Event::Restored { at, epoch: 2, fence: Fence(1), hold_until });
    world.play(
        "
           1  session s1 wants a                -> seen s1, held back until 60
           2  session s1 wants b                -> seen s1, held back until 60
          60  session s1 wants a+b              -> seen s1, granted 2
        ",
    );
}
