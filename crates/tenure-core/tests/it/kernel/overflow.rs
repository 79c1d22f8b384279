//! The end of numbers and the end of time: a refusal, never a wrapped number, never half a request.

use tenure_core::kernel::{
    Acquire, ChangeMode, Command, CommandOutcome, ContentionPolicy, Event, Fence, Holder, IssuedLease,
    KernelState, Labels, LeaseCredential, LeaseMode, LeaseRequest, LeaseTerms, Nonce, Principal,
    QueuedAcquire, Rejection, Resource, Tick, TickDuration, Ticket, decide,
};

const SECOND: u64 = 1_000_000;

/// A state in which `remaining` fences can still be issued and alice holds `db` for ten seconds.
fn nearly_exhausted(remaining: u64, mode: LeaseMode) -> KernelState {
    let mut state = KernelState::default();
    let issued = IssuedLease {
        fence: Fence(Fence::MAX.0 - remaining),
        resource: resource("db"),
        holder: holder("alice"),
        principal: principal("alice"),
        terms: LeaseTerms {
            mode,
            issued_at: Tick(0),
            expires_at: Tick(10 * SECOND),
            ttl: TickDuration(10 * SECOND),
            renewals: 0,
            nonce: Nonce::default(),
            labels: Labels::default(),
        },
        key: None,
        ticket: None,
        continues: None,
        authority: None,
    };
    state.apply(&Event::Issued(issued)).expect("fences may have gaps");
    state
}

fn acquire(wants: &[(&str, LeaseMode)], name: &str, patience: u64) -> Command {
    let wants = wants.iter().map(|(name, mode)| lease_request(name, *mode, 10 * SECOND)).collect();
    let contention = ContentionPolicy::Queue { wait_timeout: TickDuration(patience) };
    Command::Acquire(Acquire {
        principal: principal(name),
        holder: holder(name),
        requests: wants,
        contention_policy: contention,
        key: None,
    })
}

fn lease_request(name: &str, mode: LeaseMode, ttl: u64) -> LeaseRequest {
    LeaseRequest {
        resource: resource(name),
        alternatives: Default::default(),
        mode,
        ttl: TickDuration(ttl),
        nonce: Nonce::default(),
        labels: Labels::default(),
    }
}

/// Decides and applies, and gives the fences that were granted.
fn decide_and_apply(state: &mut KernelState, command: &Command, now: u64) -> (Vec<u64>, CommandOutcome) {
    let decision = decide(state, command, Tick(now));
    for event in &decision.events {
        state.apply(event).unwrap_or_else(|error| panic!("{error}: {event:?}"));
    }
    state.check_invariants().expect("whole");
    assert!(state.last_fence() <= Fence::MAX);
    let granted = decision.events.iter().filter_map(|event| match event {
        Event::Issued(issued) => Some(issued.fence.0),
        _ => None,
    });
    (granted.collect(), decision.outcome)
}

const EXHAUSTED: CommandOutcome = CommandOutcome::Rejected(Rejection::Exhausted);

#[test]
fn acquire_after_the_last_fence_is_rejected() {
    let mut state = nearly_exhausted(1, LeaseMode::Exclusive);
    let (granted, _) = decide_and_apply(&mut state, &acquire(&[("a", LeaseMode::Exclusive)], "bob", 0), 0);
    assert_eq!(granted, [Fence::MAX.0]);
    assert_eq!(
        decide_and_apply(&mut state, &acquire(&[("b", LeaseMode::Exclusive)], "bob", 0), 0),
        (vec![], EXHAUSTED)
    );
}

#[test]
fn batch_needing_more_fences_than_remain_is_rejected() {
    let mut state = nearly_exhausted(2, LeaseMode::Exclusive);
    let three = [("a", LeaseMode::Shared), ("b", LeaseMode::Shared), ("c", LeaseMode::Shared)];
    assert_eq!(decide_and_apply(&mut state, &acquire(&three, "bob", 0), 0), (vec![], EXHAUSTED));
    let (granted, _) = decide_and_apply(&mut state, &acquire(&three[..2], "bob", 0), 0);
    assert_eq!(granted, [Fence::MAX.0 - 1, Fence::MAX.0]);
}

#[test]
fn batch_is_rejected_when_waiters_take_the_last_fences() {
    // Two readers wait; whoever comes when the writer is over wants two more, and there are three fences.
    let mut state = nearly_exhausted(3, LeaseMode::Exclusive);
    decide_and_apply(&mut state, &acquire(&[("db", LeaseMode::Shared)], "bob", 60 * SECOND), 0);
    decide_and_apply(&mut state, &acquire(&[("db", LeaseMode::Shared)], "carol", 60 * SECOND), 0);
    let both = acquire(&[("db", LeaseMode::Shared), ("x", LeaseMode::Shared)], "dave", 0);
    assert_eq!(
        decide_and_apply(&mut state, &both, 10 * SECOND),
        (vec![Fence::MAX.0 - 2, Fence::MAX.0 - 1], EXHAUSTED)
    );
}

#[test]
fn waiter_without_enough_fences_stays_queued() {
    let mut state = nearly_exhausted(1, LeaseMode::Exclusive);
    decide_and_apply(
        &mut state,
        &acquire(&[("db", LeaseMode::Exclusive), ("x", LeaseMode::Shared)], "bob", 60 * SECOND),
        0,
    );
    let (granted, answer) = decide_and_apply(&mut state, &Command::Expire { max_ended: 10 }, 10 * SECOND);
    assert_eq!((granted, answer), (vec![], CommandOutcome::Swept { more: false }));
    assert!(state.queue_ticket(Ticket(1)).is_some());
}

#[test]
fn upgrade_without_a_fence_keeps_the_lease() {
    // Serving the waiter takes the last fence before the upgrade asks for one.
    let mut state = nearly_exhausted(1, LeaseMode::Consumes);
    decide_and_apply(&mut state, &acquire(&[("db", LeaseMode::Mutates)], "bob", 5 * SECOND), 0);
    decide_and_apply(&mut state, &acquire(&[("db", LeaseMode::Consumes)], "carol", 60 * SECOND), 0);
    let lease = Fence(Fence::MAX.0 - 1);
    let change = ChangeMode {
        lease,
        credential: LeaseCredential::Token,
        mode: LeaseMode::Provides,
        nonce: Nonce::default(),
    };
    let (granted, answer) = decide_and_apply(&mut state, &Command::Upgrade(change), 5 * SECOND);
    assert_eq!((granted, answer), (vec![Fence::MAX.0], EXHAUSTED));
    assert!(state.lease(lease).is_some());
}

#[test]
fn batch_with_one_overflowing_ttl_is_rejected() {
    let mut state = KernelState::default();
    let wants = vec![
        lease_request("a", LeaseMode::Exclusive, SECOND),
        lease_request("b", LeaseMode::Exclusive, 60 * SECOND),
    ];
    let (holder, principal) = (holder("alice"), principal("alice"));
    let command =
        Acquire { principal, holder, requests: wants, contention_policy: ContentionPolicy::Deny, key: None };
    let late = u64::MAX - 30 * SECOND;
    assert_eq!(decide_and_apply(&mut state, &Command::Acquire(command), late), (vec![], EXHAUSTED));
}

#[test]
fn acquire_after_the_last_ticket_is_rejected() {
    let mut state = nearly_exhausted(9, LeaseMode::Exclusive);
    let queued = QueuedAcquire {
        ticket: Ticket(u64::MAX - 1),
        holder: holder("bob"),
        principal: principal("bob"),
        requests: vec![lease_request("db", LeaseMode::Exclusive, SECOND)],
        at: Tick(0),
        until: Tick(SECOND),
        key: None,
    };
    state.apply(&Event::Queued(queued)).expect("tickets may have gaps");
    let (_, answer) =
        decide_and_apply(&mut state, &acquire(&[("db", LeaseMode::Exclusive)], "carol", SECOND), 0);
    assert!(matches!(answer, CommandOutcome::Queued { ticket: Ticket(u64::MAX), .. }), "{answer:?}");
    assert_eq!(
        decide_and_apply(&mut state, &acquire(&[("db", LeaseMode::Exclusive)], "dave", SECOND), 0),
        (vec![], EXHAUSTED)
    );
}

fn resource(name: &str) -> Resource {
    Resource::parse(name).expect("a resource")
}

fn holder(name: &str) -> Holder {
    Holder::parse(name).expect("a holder")
}

fn principal(name: &str) -> Principal {
    Principal::parse(name).expect("a principal")
}
