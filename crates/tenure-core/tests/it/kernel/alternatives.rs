//! Stories of asking for any one of several resources: which one it is, who goes first, and who would wait for ever.

use tenure_core::kernel::{
    Acquire, Command, CommandOutcome, ContentionPolicy, HashSeed, Holder, KernelState, LeaseMode,
    LeaseRequest, LedgerTag, Limits, Nonce, Principal, Resource, Tick, TickDuration, decide,
};

use crate::scenario::{ScenarioWorld, check_scenario};

#[test]
fn first_free_alternative_is_granted() {
    check_scenario(
        "
         0  acquire t0|t1|t2 ann 10         -> 1 on t0, granted 1
         0  acquire t0|t1|t2 bob 20         -> 2 on t1, granted 2
         0  acquire t1|t0|t2 carol 30       -> 3 on t2, granted 3
         1  acquire t2|t1|t0 dave 5         -> held by ann until 10, 0 waiting
        10  acquire t2|t1|t0 dave 5         -> expired 1, 4 on t0, granted 4
        11  release 2                       -> released 2
        11  acquire t0|t1 erin 5            -> 5 on t1, granted 5
    ",
    );
}

#[test]
fn waiter_is_served_with_the_first_released_alternative() {
    check_scenario(
        "
         0  acquire t0 ann 100              -> granted 1
         0  acquire t1 bob 100              -> granted 2
         1  acquire t0|t1 carol 10 wait 60  -> queued t1 place 1 behind ann bob until 61
         1  acquire t0|t1 dave 10 wait 60   -> queued t2 place 2 behind ann bob carol until 61
         2  release 2                       -> 3 on t1 to t1, released 2
         3  release 1                       -> 4 on t0 to t2, released 1
    ",
    );
}

#[test]
fn earlier_waiter_with_alternatives_is_served_first() {
    check_scenario(
        "
         0  acquire t0 ann 100              -> granted 1
         0  acquire t1 bob 100              -> granted 2
         1  acquire t0|t1 carol 10 wait 60  -> queued t1 place 1 behind ann bob until 61
         1  acquire t1 dave 10 wait 60      -> queued t2 place 2 behind bob carol until 61
         1  acquire t2|t1 erin 10           -> 3 on t2, granted 3
         2  release 2                       -> 4 on t1 to t1, released 2
         3  release 4                       -> served t2 with 5, released 4
    ",
    );
}

#[test]
fn waiter_moves_up_when_the_one_ahead_gets_another_alternative() {
    check_scenario(
        "
         0  acquire t0 ann 100                     -> granted 1
         0  acquire t1/shared bob 100              -> granted 2
         1  acquire t0|t1 carol 10 wait 60         -> queued t1 place 1 behind ann bob until 61
         1  acquire t1/shared dave 10 wait 60      -> queued t2 place 2 behind carol until 61
         2  release 1                              -> 3 on t0 to t1, served t2 with 4, released 1
    ",
    );
}

#[test]
fn batch_with_alternatives_is_atomic() {
    check_scenario(
        "
         0  acquire t0 ann 10                      -> granted 1
         0  acquire t0|t1|t2+t0|t1|t2 bob 10       -> 2 on t1, 3 on t2, granted 2 3
         0  acquire t0|t1|t2+db carol 10           -> held by ann until 10, 0 waiting
         0  acquire db carol 10                    -> granted 4
         1  release 2                              -> released 2
         1  acquire t0|t1|t2+t0|t1|t2 dave 10      -> held by ann until 10, 0 waiting
         1  acquire t0|t1|t2+t0|t1|t2 dave 10 wait 60 -> queued t1 place 1 behind ann bob until 61
         2  release 1                              -> 5 on t0 to t1, 6 on t1 to t1, released 1
    ",
    );
}

#[test]
fn assignment_leaves_a_resource_to_a_request_without_alternatives() {
    check_scenario(
        "
         0  acquire t0|t1+t0 ann 10                -> 1 on t1, 2 on t0, granted 1 2
         0  release 1                              -> released 1
         0  acquire t1|t2+t0|t1 bob 10             -> 3 on t2, 4 on t1, granted 3 4
         0  release 3                              -> released 3
         0  acquire t2|t0+t2 carol 10              -> held by ann until 10, 0 waiting
    ",
    );
}

#[test]
fn unsatisfiable_request_is_rejected_instead_of_queued() {
    check_scenario(
        "
         0  acquire t0|t1+t0|t1+t1|t0 ann 10 wait 60   -> invalid leases
         0  acquire t0|t0 ann 10                       -> invalid leases
         0  acquire db+db ann 10                       -> invalid leases
    ",
    );
}

#[test]
fn refresh_prefers_an_alternative_the_holder_has() {
    check_scenario(
        "
         0  acquire t1 ann 10                      -> granted 1
         1  acquire t0|t1 ann 20 refresh           -> granted 1
    ",
    );
    check_scenario(
        "
         0  acquire t1 ann 10                      -> granted 1
         0  acquire t0|t1+t0|t1 ann 20 refresh     -> 2 on t0, granted 1 2
         0  acquire t0|t1+t0|t1 ann 20 refresh     -> granted 2 1
         0  acquire t0|t1/shared ann 20 refresh    -> held by ann until 20, 0 waiting
    ",
    );
}

#[test]
fn repeated_request_with_alternatives_keeps_its_ticket() {
    check_scenario(
        "
         0  acquire t0 ann 100                     -> granted 1
         0  acquire t1 bob 100                     -> granted 2
         0  acquire t0|t1 carol 10 wait 60 key k   -> queued t1 place 1 behind ann bob until 60
         1  acquire t0|t1 carol 10 wait 60 key k   -> queued t1 place 1 behind ann bob until 60
         2  release 2                              -> 3 on t1 to t1, released 2
         3  acquire t0|t1 carol 10 wait 60 key k   -> granted 3
         3  acquire t1|t0 carol 10 wait 60 key k   -> key reused
    ",
    );
}

#[test]
fn position_is_that_in_the_shortest_queue() {
    check_scenario(
        "
         0  acquire t0 ann 100                     -> granted 1
         0  acquire t1 bob 100                     -> granted 2
         0  acquire t0 carol 10 wait 60            -> queued t1 place 1 behind ann until 60
         0  acquire t0 dave 10 wait 60             -> queued t2 place 2 behind ann carol until 60
         0  acquire t0|t1 erin 10 wait 60          -> queued t3 place 1 behind ann bob carol dave until 60
         1  release 2                              -> 3 on t1 to t3, released 2
    ",
    );
}

#[test]
fn full_queue_of_one_alternative_rejects_the_request() {
    let mut world =
        ScenarioWorld::new(Limits { max_waiters_per_resource: 1, max_alternatives: 3, ..Limits::default() });
    world.play(
        "
         0  acquire t0 ann 100                     -> granted 1
         0  acquire t1 bob 100                     -> granted 2
         0  acquire t0 carol 10 wait 60            -> queued t1 place 1 behind ann until 60
         0  acquire t1|t0 dave 10 wait 60          -> queue full at 1
         0  acquire t1|t2|t3 dave 10               -> 3 on t2, granted 3
         0  acquire t1|t2|t3|t4 dave 10            -> invalid leases
    ",
    );
}

#[test]
fn request_with_alternatives_counts_once_against_the_quota() {
    let mut world = ScenarioWorld::new(Limits { max_leases_per_principal: Some(2), ..Limits::default() });
    world.play(
        "
         0  acquire t0|t1|t2 ann 100 as ops              -> 1 on t0, granted 1
         0  acquire t0|t1|t2+t0|t1|t2 ann 100 as ops     -> quota 2
         0  acquire t0|t1|t2 ann 100 as ops              -> 2 on t1, granted 2
         0  acquire t0|t1|t2 bob 100                     -> 3 on t2, granted 3
         1  release 1                                    -> released 1
         1  acquire t1|t2 ann 100 wait 50 as ops         -> queued t1 place 1 behind ann bob until 51
         1  acquire x ann 100 as ops                     -> quota 2
    ",
    );
}

#[test]
fn alternatives_held_outside_the_cycle_prevent_a_deadlock() {
    check_scenario(
        "
         0  acquire t0 ann 100                 -> granted 1
         0  acquire t1 bob 100                 -> granted 2
         0  acquire x carol 100                -> granted 3
         1  acquire x ann 10 wait 60           -> queued t1 place 1 behind carol until 61
         1  acquire t0 carol 10 wait 60        -> deadlock carol ann
         1  acquire t0|t1 carol 10 wait 60     -> queued t2 place 1 behind ann bob until 61
         1  acquire x bob 10 wait 60           -> deadlock bob carol
         2  release 2                          -> 4 on t1 to t2, released 2
    ",
    );
}

#[test]
fn cycle_through_every_alternative_is_rejected() {
    check_scenario(
        "
         0  acquire t0 ann 100                 -> granted 1
         0  acquire t1 bob 100                 -> granted 2
         0  acquire x carol 100                -> granted 3
         1  acquire x ann 10 wait 60           -> queued t1 place 1 behind carol until 61
         1  acquire x bob 10 wait 60           -> queued t2 place 2 behind ann carol until 61
         1  acquire t0|t1 carol 10 wait 60     -> deadlock carol ann
         1  acquire t0|t1|t2 carol 10 wait 60  -> 4 on t2, granted 4
    ",
    );
}

#[test]
fn cycle_can_depend_on_the_number_of_requested_alternatives() {
    check_scenario(
        "
         0  acquire t0 ann 100                     -> granted 1
         0  acquire t1 bob 100                     -> granted 2
         0  acquire x carol 100                    -> granted 3
         1  acquire x ann 10 wait 60               -> queued t1 place 1 behind carol until 61
         1  acquire t0|t1+t0|t1 carol 10 wait 60   -> deadlock carol ann
         1  acquire t0|t1 carol 10 wait 60         -> queued t2 place 1 behind ann bob until 61
    ",
    );
}

#[test]
fn waiter_with_two_tickets_takes_only_one_alternative() {
    check_scenario(
        "
         0  acquire t0 ann 100                 -> granted 1
         0  acquire t1 bob 100                 -> granted 2
         0  acquire x kim 100                  -> granted 3
         1  acquire t0|t1 hal 10 wait 60       -> queued t1 place 1 behind ann bob until 61
         1  acquire x hal 10 wait 60           -> queued t2 place 1 behind kim until 61
         1  acquire t0 kim 10 wait 60          -> deadlock kim hal
         1  acquire t0|t1 kim 10 wait 60       -> queued t3 place 2 behind ann bob hal until 61
         2  release 1                          -> 4 on t0 to t1, released 1
         2  release 2                          -> 5 on t1 to t3, released 2
         3  release 3                          -> served t2 with 6, released 3
    ",
    );
}

#[test]
fn deadlocked_waiters_covering_all_alternatives_are_detected() {
    check_scenario(
        "
         0  acquire t0 ann 100                 -> granted 1
         0  acquire t1 bob 100                 -> granted 2
         0  acquire x kim 100                  -> granted 3
         1  acquire t0|t1 hal 10 wait 60       -> queued t1 place 1 behind ann bob until 61
         1  acquire x hal 10 wait 60           -> queued t2 place 1 behind kim until 61
         1  acquire t0|t1 eve 10 wait 60       -> queued t3 place 2 behind ann bob hal until 61
         1  acquire x eve 10 wait 60           -> queued t4 place 2 behind hal kim until 61
         1  acquire t0|t1 kim 10 wait 60       -> deadlock kim hal
         2  release 1                          -> 4 on t0 to t1, released 1
         2  acquire t0|t1 kim 10 wait 60       -> deadlock kim hal
    ",
    );
}

/// One who waits behind many for any of many. Whoever joins holds something, so that each might close a circle: who looked
/// at every queue for everybody in it would not come to an end.
#[test]
fn deadlock_check_of_a_long_queue_for_many_alternatives_is_fast() {
    let limits = Limits { max_waiters_per_resource: 1_000, ..Limits::default() };
    let mut state = KernelState::new(LedgerTag(1), limits, HashSeed::default());
    let pool = |first: usize| (first..first + 64).map(|number| resource(&format!("t{}", number % 64)));
    for number in 0..64 {
        let answer = acquire_any_of(&mut state, &format!("user-{number}"), pool(number));
        assert!(matches!(answer, CommandOutcome::Granted { .. }), "{answer:?}");
    }
    for number in 0..400 {
        let name = format!("waiter-{number}");
        acquire_any_of(&mut state, &name, [resource(&format!("own-{number}"))]);
        let answer = acquire_any_of(&mut state, &name, pool(number));
        assert!(
            matches!(answer, CommandOutcome::Queued { position, .. } if position == number + 1),
            "{answer:?}"
        );
    }
    // Who uses one and waits for another of those that the others wait for too is in no circle, as long as one of
    // the others may give back.
    let answer = acquire_any_of(&mut state, "user-0", pool(1).take(63));
    assert!(matches!(answer, CommandOutcome::Queued { position: 401, .. }), "{answer:?}");
}

fn resource(name: &str) -> Resource {
    Resource::parse(name).expect("a resource")
}

/// Asks for any one of these, and waits for it.
fn acquire_any_of(
    state: &mut KernelState,
    name: &str,
    names: impl IntoIterator<Item = Resource>,
) -> CommandOutcome {
    let mut names = names.into_iter();
    let first = names.next().expect("at least one");
    let request =
        LeaseRequest::new(first, LeaseMode::Exclusive, TickDuration::from_secs(600), Nonce::default())
            .with_alternatives(names);
    let acquire = Acquire {
        principal: Principal::parse(name).expect("a principal"),
        holder: Holder::parse(name).expect("a holder"),
        requests: vec![request],
        contention_policy: ContentionPolicy::Queue { wait_timeout: TickDuration::from_secs(600) },
        key: None,
    };
    let decision = decide(state, &Command::Acquire(acquire), Tick(0));
    decision.events.iter().for_each(|event| state.apply(event).expect("what was decided is applied"));
    decision.outcome
}

#[test]
fn transfer_is_allowed_while_an_alternative_avoids_the_cycle() {
    check_scenario(
        "
         0  acquire t0 ann 100                 -> granted 1
         0  acquire t1 bob 100                 -> granted 2
         0  acquire x carol 100                -> granted 3
         1  acquire t0|t1 carol 10 wait 60     -> queued t1 place 1 behind ann bob until 61
         1  acquire x dave 10 wait 60          -> queued t2 place 1 behind carol until 61
         2  transfer 1 to dave                 -> revoked 1 Transferred, 1 continues as 4
         2  transfer 2 to dave                 -> deadlock dave carol
         3  release 2                          -> 5 on t1 to t1, released 2
    ",
    );
}
