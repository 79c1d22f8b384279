//! Stories of leases: granting, ending, handing over.

use tenure_core::kernel::Limits;

use crate::scenario::{ScenarioWorld, check_scenario};

#[test]
fn expired_lease_can_be_acquired_before_the_sweep() {
    // S2-1: at most one at any time. Half-open: dead at equality.
    check_scenario(
        "
         0          acquire db alice 10     -> granted 1
         9.999999   acquire db bob 10       -> held by alice until 10, 0 waiting
        10          acquire db bob 10       -> expired 1, granted 2
        11          release 1 alice         -> released 1
        20          expire                  -> expired 2, swept
    ",
    );
}

#[test]
fn sweep_expires_each_lease_once_and_never_early() {
    check_scenario(
        "
         0          acquire a alice 10      -> granted 1
         0          acquire b alice 20      -> granted 2
         9.999999   expire                  -> swept
        10          expire                  -> expired 1, swept
        10          expire                  -> swept
        30          expire                  -> expired 2, swept
    ",
    );
}

#[test]
fn sweep_is_limited_and_reports_more() {
    check_scenario(
        "
         0  acquire a+b+c alice 10          -> granted 1 2 3
        10  expire 2                        -> expired 1, expired 2, swept, more
        10  expire 2                        -> expired 3, swept
    ",
    );
}

#[test]
fn renewal_counts_from_now_and_never_shortens() {
    check_scenario(
        "
         0  acquire db alice 10             -> granted 1
         4  renew 1                         -> renewed 1 until 14
         5  renew 1 for 2                   -> renewed 1 until 14
         6  renew 1 for 30                  -> renewed 1 until 36
        35  renew 1                         -> renewed 1 until 65
    ",
    );
}

#[test]
fn renew_at_the_expiry_tick_is_rejected() {
    check_scenario(
        "
         0          acquire db alice 10     -> granted 1
         9.999999   renew 1                 -> renewed 1 until 19.999999
        19.999999   renew 1                 -> expired 1, 1 is over: expired
        20          renew 1                 -> 1 is over: expired
    ",
    );
}

#[test]
fn renew_after_expiry_is_rejected() {
    check_scenario(
        "
         0  acquire db alice 10             -> granted 1
        10  renew 1 by alice                -> expired 1, 1 is over: expired
        11  acquire db alice 10             -> granted 2
    ",
    );
}

#[test]
fn commands_by_another_holder_are_rejected() {
    check_scenario(
        "
         0  acquire db alice 10             -> granted 1
         1  renew 1 by bob                  -> not the holder
         1  release 1 bob                   -> not the holder
         1  transfer 1 to bob bob           -> not the holder
         2  release 1 alice                 -> released 1
         3  release 1 bob                   -> not the holder
         3  renew 2 by alice                -> no such lease
         3  release 9 alice                 -> no such lease
    ",
    );
}

#[test]
fn release_of_an_ended_lease_succeeds() {
    check_scenario(
        "
         0  acquire db alice 10             -> granted 1
         1  release 1 alice                 -> released 1
         2  release 1 alice                 -> released 1
         3  acquire db alice 10             -> granted 2
        13  release 2 alice                 -> expired 2, released 2
        14  release 2 alice                 -> released 2
    ",
    );
}

#[test]
fn ended_lease_is_retained_for_ten_minutes() {
    check_scenario(
        "
         0  acquire db alice 10             -> granted 1
         1  release 1 alice                 -> released 1
       500  renew 1                         -> 1 is over: released
       700  acquire x bob 1                 -> granted 2
       700  renew 1                         -> no such lease
    ",
    );
}

#[test]
fn batch_acquire_is_atomic() {
    check_scenario(
        "
         0  acquire b bob 5                 -> granted 1
         0  acquire a+b+c alice 10          -> held by bob until 5, 0 waiting
         0  acquire a carol 3               -> granted 2
         5  acquire a+b+c alice 10          -> expired 2, expired 1, granted 3 4 5
    ",
    );
}

#[test]
fn shared_leases_coexist_and_block_exclusive() {
    check_scenario(
        "
         0  acquire db/shared alice 10      -> granted 1
         0  acquire db/shared bob 20        -> granted 2
         0  acquire db carol 10             -> held by alice until 10, 0 waiting
        10  acquire db carol 10             -> expired 1, held by bob until 20, 0 waiting
        20  acquire db carol 10             -> expired 2, granted 3
        20  acquire db/shared bob 10        -> held by carol until 30, 0 waiting
    ",
    );
}

#[test]
fn agent_modes_and_plain_modes_share_one_compatibility_table() {
    check_scenario(
        "
         0  acquire f/consumes alice 10     -> granted 1
         0  acquire f/provides bob 10       -> granted 2
         0  acquire f/provides carol 10     -> held by bob until 10, 0 waiting
         0  acquire f/shared dave 10        -> granted 3
         0  acquire f/mutates carol 10      -> held by alice until 10, 0 waiting
    ",
    );
}

#[test]
fn transfer_ends_the_old_lease_without_a_gap() {
    check_scenario(
        "
         0  acquire db alice 10             -> granted 1
         0  acquire db carol 10 wait 60     -> queued t1 place 1 behind alice until 60
         4  transfer 1 to bob alice         -> revoked 1 Transferred, 1 continues as 2
         5  renew 1 by alice                -> 1 is over: Transferred
         5  acquire db dave 1               -> held by bob until 14, 1 waiting
        13  renew 2 by bob                  -> renewed 2 until 23
        23  expire                          -> expired 2, served t1 with 3, swept
    ",
    );
}

#[test]
fn upgrade_is_rejected_while_another_lease_conflicts() {
    check_scenario(
        "
         0  acquire db/shared alice 10      -> granted 1
         0  acquire db/shared bob 5         -> granted 2
         0  upgrade 1 exclusive             -> held by bob until 5, 0 waiting
         0  upgrade 1 shared                -> wrong direction
         5  upgrade 1 exclusive             -> expired 2, revoked 1 Transferred, 1 continues as 3
         5  acquire db/shared bob 5         -> held by alice until 15, 0 waiting
         6  upgrade 3 exclusive             -> wrong direction
    ",
    );
}

#[test]
fn upgrade_does_not_overtake_a_compatible_waiter() {
    check_scenario(
        "
         0  acquire q carol 100                     -> granted 1
         0  acquire db/shared alice 50              -> granted 2
         0  acquire db/shared+q bob 10 wait 60      -> queued t1 place 1 behind carol until 60
         1  upgrade 2 exclusive                     -> held by bob until 60, 1 waiting
         2  release 1                               -> served t1 with 3, served t1 with 4, released 1
    ",
    );
}

#[test]
fn downgrade_serves_compatible_waiters() {
    check_scenario("
         0  acquire db alice 10                     -> granted 1
         0  acquire db/shared bob 10 wait 60        -> queued t1 place 1 behind alice until 60
         1  downgrade 1 exclusive                   -> wrong direction
         1  downgrade 1 shared                      -> revoked 1 Transferred, served t1 with 3, 1 continues as 2
    ");
}

#[test]
fn revoke_ends_a_lease_with_its_cause() {
    check_scenario(
        "
         0  acquire db alice 10             -> granted 1
         1  revoke 1                        -> revoked 1 Revoked, ended 1
         2  renew 1 by alice                -> 1 is over: Revoked
         2  revoke 1                        -> 1 is over: Revoked
         3  acquire db bob 10               -> granted 2
        13  revoke 2                        -> expired 2, 2 is over: expired
    ",
    );
}

#[test]
fn reclaim_ends_all_leases_and_queue_entries_of_a_holder() {
    check_scenario("
         0  acquire a alice 100             -> granted 1
         0  acquire b alice 100             -> granted 2
         0  acquire c bob 100               -> granted 3
         0  acquire c alice 10 wait 60      -> queued t1 place 1 behind bob until 60
         0  acquire a carol 10 wait 60      -> queued t2 place 1 behind alice until 60
         1  reclaim alice                   -> left t1 Gone, revoked 1 Reclaimed, revoked 2 Reclaimed, served t2 with 4, ended 1 2
         1  reclaim alice                   -> ended
         2  reclaim nobody                  -> ended
    ");
}

#[test]
fn refresh_renews_a_lease_of_the_same_holder() {
    check_scenario(
        "
         0  acquire db alice 10 refresh     -> granted 1
         5  acquire db alice 10 refresh     -> granted 1
         6  acquire db bob 10 refresh       -> held by alice until 15, 0 waiting
        12  acquire db+x alice 10 refresh   -> granted 1 2
        13  acquire db alice 10             -> held by alice until 22, 0 waiting
        22  acquire db alice 10 refresh     -> expired 1, granted 3
    ",
    );
}

#[test]
fn holder_name_is_reserved_for_a_day_after_use() {
    check_scenario(
        "
         0      acquire a ci 10 as ops      -> granted 1
         1      acquire b ci 10 as dev      -> ci is taken
        10      expire                      -> expired 1, swept
        86409   acquire b ci 10 as dev      -> ci is taken
        86410   acquire b ci 10 as dev      -> granted 2
        86411   acquire c ci 10 as ops      -> ci is taken
    ",
    );
}

#[test]
fn quota_ignores_expired_leases() {
    let mut world = ScenarioWorld::new(Limits { max_leases_per_principal: Some(2), ..Limits::default() });
    world.play(
        "
         0  acquire a alice 10              -> granted 1
         0  acquire b alice 20              -> granted 2
         0  acquire c alice 10              -> quota 2
         0  acquire c bob 10                -> granted 3
        10  acquire c+d alice 10            -> expired 3, quota 2
        10  acquire c alice 10              -> granted 4
        10  acquire x+y+z carol 10          -> quota 2
    ",
    );
}

#[test]
fn ttl_out_of_range_is_rejected() {
    check_scenario(
        "
         0  acquire db alice 0              -> ttl out of range
         0  acquire db alice 0.999999       -> ttl out of range
         0  acquire db alice 86400.000001   -> ttl out of range
         0  acquire db alice 86400          -> granted 1
         0  renew 1 for 0.5                 -> ttl out of range
         0  acquire a+db alice 18446744073709 -> ttl out of range
    ",
    );
}

#[test]
fn empty_or_duplicate_requests_are_rejected() {
    check_scenario(
        "
         0  acquire + alice 10              -> invalid leases
         0  acquire a+b+a alice 10          -> invalid leases
         0  acquire a alice 10 wait 86401   -> invalid waitMs
    ",
    );
}
