//! The end of numbers and the end of time: a refusal, never a wrapped number, never half a request.

use tenure_core::kernel::{
    Acquire, Answer, ChangeMode, Claim, Command, Contention, Event, Fence, Holder, Issued, Labels, Mode,
    Nonce, Principal, Queued, Refusal, Resource, Span, State, Tick, Ticket, Want, decide,
};

const SECOND: u64 = 1_000_000;

/// A state in which `left` fences are left and alice holds `db` for ten seconds.
fn nearly_exhausted(left: u64, mode: Mode) -> State {
    let mut state = State::default();
    let issued = Issued {
        fence: Fence(Fence::MAX.0 - left),
        resource: resource("db"),
        holder: holder("alice"),
        principal: principal("alice"),
        mode,
        at: Tick(0),
        expires_at: Tick(10 * SECOND),
        ttl: Span(10 * SECOND),
        nonce: Nonce::default(),
        labels: Labels::default(),
        key: None,
        ticket: None,
        continues: None,
        authority: None,
    };
    state.apply(&Event::Issued(issued)).expect("fences may have gaps");
    state
}

fn acquire(wants: &[(&str, Mode)], name: &str, patience: u64) -> Command {
    let wants = wants.iter().map(|(name, mode)| want(name, *mode, 10 * SECOND)).collect();
    let contention = Contention::Queue { patience: Span(patience) };
    Command::Acquire(Acquire {
        principal: principal(name),
        holder: holder(name),
        wants,
        contention,
        key: None,
    })
}

fn want(name: &str, mode: Mode, ttl: u64) -> Want {
    Want {
        resource: resource(name),
        others: Default::default(),
        mode,
        ttl: Span(ttl),
        nonce: Nonce::default(),
        labels: Labels::default(),
    }
}

/// Decides and applies, and gives the fences that were granted.
fn take(state: &mut State, command: &Command, now: u64) -> (Vec<u64>, Answer) {
    let decision = decide(state, command, Tick(now));
    for event in &decision.events {
        state.apply(event).unwrap_or_else(|misfit| panic!("{misfit}: {event:?}"));
    }
    state.check_invariants().expect("whole");
    assert!(state.last_fence() <= Fence::MAX);
    let granted = decision.events.iter().filter_map(|event| match event {
        Event::Issued(issued) => Some(issued.fence.0),
        _ => None,
    });
    (granted.collect(), decision.answer)
}

const EXHAUSTED: Answer = Answer::Refused(Refusal::Exhausted);

#[test]
fn acquire_after_the_last_fence_is_rejected() {
    let mut state = nearly_exhausted(1, Mode::Exclusive);
    let (granted, _) = take(&mut state, &acquire(&[("a", Mode::Exclusive)], "bob", 0), 0);
    assert_eq!(granted, [Fence::MAX.0]);
    assert_eq!(take(&mut state, &acquire(&[("b", Mode::Exclusive)], "bob", 0), 0), (vec![], EXHAUSTED));
}

#[test]
fn batch_needing_more_fences_than_remain_is_rejected() {
    let mut state = nearly_exhausted(2, Mode::Exclusive);
    let three = [("a", Mode::Shared), ("b", Mode::Shared), ("c", Mode::Shared)];
    assert_eq!(take(&mut state, &acquire(&three, "bob", 0), 0), (vec![], EXHAUSTED));
    let (granted, _) = take(&mut state, &acquire(&three[..2], "bob", 0), 0);
    assert_eq!(granted, [Fence::MAX.0 - 1, Fence::MAX.0]);
}

#[test]
fn batch_is_rejected_when_waiters_take_the_last_fences() {
    // Two readers wait; whoever comes when the writer is over wants two more, and there are three fences.
    let mut state = nearly_exhausted(3, Mode::Exclusive);
    take(&mut state, &acquire(&[("db", Mode::Shared)], "bob", 60 * SECOND), 0);
    take(&mut state, &acquire(&[("db", Mode::Shared)], "carol", 60 * SECOND), 0);
    let both = acquire(&[("db", Mode::Shared), ("x", Mode::Shared)], "dave", 0);
    assert_eq!(take(&mut state, &both, 10 * SECOND), (vec![Fence::MAX.0 - 2, Fence::MAX.0 - 1], EXHAUSTED));
}

#[test]
fn waiter_without_enough_fences_stays_queued() {
    let mut state = nearly_exhausted(1, Mode::Exclusive);
    take(&mut state, &acquire(&[("db", Mode::Exclusive), ("x", Mode::Shared)], "bob", 60 * SECOND), 0);
    let (granted, answer) = take(&mut state, &Command::Expire { most: 10 }, 10 * SECOND);
    assert_eq!((granted, answer), (vec![], Answer::Swept { more: false }));
    assert!(state.ticket(Ticket(1)).is_some());
}

#[test]
fn upgrade_without_a_fence_keeps_the_lease() {
    // Serving the waiter takes the last fence before the upgrade asks for one.
    let mut state = nearly_exhausted(1, Mode::Consumes);
    take(&mut state, &acquire(&[("db", Mode::Mutates)], "bob", 5 * SECOND), 0);
    take(&mut state, &acquire(&[("db", Mode::Consumes)], "carol", 60 * SECOND), 0);
    let lease = Fence(Fence::MAX.0 - 1);
    let change = ChangeMode { lease, claim: Claim::Token, mode: Mode::Provides, nonce: Nonce::default() };
    let (granted, answer) = take(&mut state, &Command::Upgrade(change), 5 * SECOND);
    assert_eq!((granted, answer), (vec![Fence::MAX.0], EXHAUSTED));
    assert!(state.lease(lease).is_some());
}

#[test]
fn batch_with_one_overflowing_ttl_is_rejected() {
    let mut state = State::default();
    let wants = vec![want("a", Mode::Exclusive, SECOND), want("b", Mode::Exclusive, 60 * SECOND)];
    let (holder, principal) = (holder("alice"), principal("alice"));
    let command = Acquire { principal, holder, wants, contention: Contention::Refuse, key: None };
    let late = u64::MAX - 30 * SECOND;
    assert_eq!(take(&mut state, &Command::Acquire(command), late), (vec![], EXHAUSTED));
}

#[test]
fn acquire_after_the_last_ticket_is_rejected() {
    let mut state = nearly_exhausted(9, Mode::Exclusive);
    let queued = Queued {
        ticket: Ticket(u64::MAX - 1),
        holder: holder("bob"),
        principal: principal("bob"),
        wants: vec![want("db", Mode::Exclusive, SECOND)],
        at: Tick(0),
        until: Tick(SECOND),
        key: None,
    };
    state.apply(&Event::Queued(queued)).expect("tickets may have gaps");
    let (_, answer) = take(&mut state, &acquire(&[("db", Mode::Exclusive)], "carol", SECOND), 0);
    assert!(matches!(answer, Answer::Queued { ticket: Ticket(u64::MAX), .. }), "{answer:?}");
    assert_eq!(
        take(&mut state, &acquire(&[("db", Mode::Exclusive)], "dave", SECOND), 0),
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
