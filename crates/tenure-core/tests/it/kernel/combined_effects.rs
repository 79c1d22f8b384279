//! Stories in which one decision does two things, and the second must see the first.

use tenure_core::kernel::Limits;
use tenure_core::rules::stored_id;

use crate::scenario::{ScenarioWorld, check_scenario};

#[test]
fn refresh_finds_the_lease_granted_to_its_own_queue_entry() {
    // The lease that is over lets in the very holder that asks: it has what it wants.
    check_scenario(
        "
         0  acquire db bob 10                       -> granted 1
         0  acquire db alice 10 wait 60             -> queued t1 place 1 behind bob until 60
        10  acquire db alice 30 refresh             -> expired 1, served t1 with 2, granted 2
        39  acquire db bob 10                       -> held by alice until 40, 0 waiting
    ",
    );
}

#[test]
fn waiters_do_not_block_the_holder_from_refreshing() {
    check_scenario(
        "
         0  acquire db alice 10 refresh             -> granted 1
         1  acquire db bob 10 wait 60               -> queued t1 place 1 behind alice until 61
         2  acquire db alice 10 refresh             -> granted 1
        11  acquire db+x alice 10 refresh           -> granted 1 2
        21  expire                                  -> expired 1, expired 2, served t1 with 3, swept
    ",
    );
}

#[test]
fn refresh_is_allowed_when_the_quota_is_used_up() {
    let mut world = ScenarioWorld::new(Limits { max_leases_per_principal: Some(2), ..Limits::default() });
    world.play(
        "
         0  acquire a+b alice 10 refresh            -> granted 1 2
         1  acquire a+b alice 10 refresh            -> granted 1 2
         2  acquire a+b+c alice 10 refresh          -> quota 2
    ",
    );
}

#[test]
fn upgrade_is_blocked_by_a_waiter_granted_in_the_same_decision() {
    // The writer's patience is over, which lets in the reader behind it: now there are two readers.
    check_scenario(
        "
         0  acquire db/shared alice 50              -> granted 1
         0  acquire db bob 10 wait 5                -> queued t1 place 1 behind alice until 5
         0  acquire db/shared carol 10 wait 60      -> queued t2 place 2 behind bob until 60
         5  upgrade 1 exclusive                     -> left t1 TimedOut, served t2 with 2, held by carol until 15, 0 waiting
    ",
    );
}

#[test]
fn transfer_quota_ignores_expired_leases() {
    let mut world = ScenarioWorld::new(Limits { max_leases_per_principal: Some(1), ..Limits::default() });
    world.play(
        "
         0  acquire a alice 100                     -> granted 1
         0  acquire b bob 10                        -> granted 2
         9  transfer 1 to bob alice                 -> quota 1
        10  transfer 1 to bob alice                 -> revoked 1 Transferred, 1 continues as 3
    ",
    );
}

#[test]
fn transfer_is_rejected_only_for_a_real_cycle() {
    // Bob reads, as alice does, and waits behind carol: whoever has alice's lease does not keep him out.
    check_scenario(
        "
         0  acquire q bob 100                       -> granted 1
         0  acquire r/shared alice 100              -> granted 2
         0  acquire r carol 10 wait 5               -> queued t1 place 1 behind alice until 5
         0  acquire r/shared bob 10 wait 60         -> queued t2 place 2 behind carol until 60
         0  acquire q nina 10 wait 60               -> queued t3 place 1 behind bob until 60
         1  transfer 2 to nina alice                -> deadlock nina bob carol
         5  transfer 2 to nina alice                -> revoked 2 Transferred, served t2 with 4, 2 continues as 3
    ",
    );
}

#[test]
fn name_equal_to_the_digest_of_another_name_does_not_collide() {
    // Records shorten long names to a digest. Whoever takes that digest for a name of its own must not
    // have the same id: the reducer would see one resource, or one holder, where there are two.
    let (long, joined) = ("x".repeat(200), format!("{}\u{1F}0000abcd-3", "y".repeat(200)));
    let [long_digest, joined_digest] = [&long, &joined].map(|name| stored_id(name));
    let story = format!(
        "
         0  acquire {long} {long} 10                    -> granted 1
         0  acquire {long_digest} {long_digest} 10      -> granted 2
         1  acquire {}/shared alice 10                  -> granted 3
         1  acquire {joined_digest} bob 10              -> granted 4
         2  release 2 {long}                            -> not the holder
         2  release 2 {long_digest}                     -> released 2
         2  release 1 {long}                            -> released 1
    ",
        "y".repeat(200)
    );
    check_scenario(&story);
}

#[test]
fn lease_can_be_transferred_to_its_own_waiter() {
    // Two processes are called alice: one has the lease, the other waits to read, as nina does. Nina waits
    // for alice only by the lease that she gets.
    check_scenario(
        "
         0  acquire r alice 100                     -> granted 1
         0  acquire r/shared nina 10 wait 60        -> queued t1 place 1 behind alice until 60
         0  acquire r/shared alice 10 wait 60       -> queued t2 place 2 behind alice until 60
         1  transfer 1 to nina alice                -> revoked 1 Transferred, 1 continues as 2
    ",
    );
}

#[test]
fn cycle_through_any_resource_of_a_request_is_detected() {
    check_scenario(
        "
         0  acquire a alice 100                     -> granted 1
         0  acquire b bob 100                       -> granted 2
         0  acquire c carol 100                     -> granted 3
         1  acquire b alice 10 wait 60              -> queued t1 place 1 behind bob until 61
         1  acquire c+a bob 10 wait 60              -> deadlock bob alice
         1  acquire a+c bob 10 wait 60              -> deadlock bob alice
    ",
    );
}

#[test]
fn partial_sweep_reports_remaining_waiters() {
    check_scenario(
        "
         0  acquire db alice 100                    -> granted 1
         0  acquire db bob 10 wait 5                -> queued t1 place 1 behind alice until 5
         0  acquire db carol 10 wait 5              -> queued t2 place 2 behind alice bob until 5
         5  expire 1                                -> left t1 TimedOut, swept, more
         5  expire 1                                -> left t2 TimedOut, swept
    ",
    );
}

#[test]
fn queued_request_counts_against_the_quota() {
    let mut world = ScenarioWorld::new(Limits { max_leases_per_principal: Some(2), ..Limits::default() });
    world.play(
        "
         0  acquire db bob 10                       -> granted 1
         0  acquire a alice 100                     -> granted 2
         0  acquire db alice 10 wait 60             -> queued t1 place 1 behind bob until 60
         0  acquire b alice 10                      -> quota 2
        10  expire                                  -> expired 1, served t1 with 3, swept
        11  acquire b alice 10                      -> quota 2
    ",
    );
}

#[test]
fn holder_credential_must_match_name_and_principal() {
    check_scenario(
        "
         0  acquire a bob 10 as alice's             -> granted 1
         0  acquire b alice 10 as ops               -> granted 2
         1  release 1 alice                         -> not the holder
         1  release 2 alice                         -> not the holder
         1  renew 2 by alice                        -> not the holder
    ",
    );
}

#[test]
fn expired_lease_is_recorded_before_its_resource_is_granted() {
    check_scenario(
        "
         0  acquire a alice 100                     -> granted 1
         0  acquire b bob 10                        -> granted 2
         0  acquire a+b carol 10 wait 60            -> queued t1 place 1 behind alice bob until 60
        10  release 1                               -> served t1 with 3, expired 2, served t1 with 4, released 1
    ",
    );
}

#[test]
fn frequently_idle_holder_does_not_evict_other_holders() {
    // Names that rest are bounded in number; how often one of them rested does not count.
    let mut world = ScenarioWorld::new(Limits::default());
    world.play(
        "
         0  acquire a alice 10 as ops       -> granted 1
         1  release 1                       -> released 1
        ",
    );
    for _ in 0..1_000 {
        let lease = world.state.last_fence().0 + 1;
        world.play(&format!(
            "2  acquire x m 10  -> granted {lease}\n 2  release {lease}  -> released {lease}"
        ));
    }
    world.play("3  acquire a alice 10 as dev -> alice is taken");
}
