//! Which event of a session may follow which: the whole table against apply, and every other reason to refuse one.

use tenure_core::kernel::{
    ApplyError, Command, ContentionPolicy, Event, Fence, Holder, Intent, IntentAcceptance, IntentEvent,
    IntentKey, IntentSessionEnd, IntentSessionState, IntentTarget, IssuedLease, KernelState, Labels,
    LeaseMode, LeaseRequest, LeaseTerms, Nonce, Principal, QueuedAcquire, Resource, Tick, TickDuration,
    Ticket, leader_lock_resource, orchestrator_principal, tuner_resource,
};

use crate::intents::fixture::{
    IntentSessionFixture, accept_channel, holder, plain_acquire, principal, resource,
};

const AT: Tick = Tick(10);

fn accepted() -> IntentAcceptance {
    IntentAcceptance {
        session: holder("s1"),
        intent: Intent {
            target: IntentTarget::Service("ard".into()),
            profile: "hd".into(),
            params: "".into(),
            correlation: "".into(),
        },
        key: IntentKey([1; 32]),
        principal: principal("token:a"),
        at: AT,
        start_by: Tick(100),
    }
}

fn issued(fence: u64, holder: &str, resource: Resource) -> IssuedLease {
    IssuedLease {
        fence: Fence(fence),
        resource,
        holder: Holder::parse(holder).expect("a name"),
        principal: orchestrator_principal(),
        terms: LeaseTerms {
            mode: LeaseMode::Exclusive,
            issued_at: AT,
            expires_at: Tick(50),
            ttl: TickDuration(40),
            renewals: 0,
            nonce: Nonce::default(),
            labels: Labels::default(),
        },
        key: None,
        ticket: None,
        continues: None,
        authority: None,
    }
}

fn step(event: IntentEvent) -> Event {
    Event::Intent(Box::new(event))
}

fn starting(worker: &str, guard: u64, slot: Option<u32>) -> Event {
    let (session, worker) = (holder("s1"), holder(worker));
    step(IntentEvent::Starting { session, at: AT, worker, leader: Fence(guard), slot })
}

/// The event that leads to a state.
fn transition_event(state: IntentSessionState) -> Event {
    let (session, at) = (holder("s1"), AT);
    match state {
        IntentSessionState::New => step(IntentEvent::Accepted(accepted())),
        IntentSessionState::Starting => starting("worker:1", 1, Some(0)),
        IntentSessionState::Running => step(IntentEvent::Running { session, at, process: "pid 1".into() }),
        IntentSessionState::Stopping => step(IntentEvent::Stopping { session, at, by: principal("token:a") }),
        IntentSessionState::Ended => {
            step(IntentEvent::Ended { session, at, end: IntentSessionEnd::Stopped, detail: "".into() })
        }
    }
}

/// A worker with its guard, and a session with its leases, which has come as far as `state`.
fn state_at(state: IntentSessionState) -> KernelState {
    let leases = [
        Event::Issued(issued(1, "worker:1", leader_lock_resource())),
        Event::Issued(issued(2, "s1", resource("service:ard"))),
        transition_event(IntentSessionState::New),
        Event::Issued(issued(3, "s1", tuner_resource(0))),
    ];
    let steps: &[IntentSessionState] = match state {
        IntentSessionState::New => &[],
        IntentSessionState::Starting => &[IntentSessionState::Starting],
        IntentSessionState::Running => &[IntentSessionState::Starting, IntentSessionState::Running],
        IntentSessionState::Stopping => &[IntentSessionState::Starting, IntentSessionState::Stopping],
        IntentSessionState::Ended => &[IntentSessionState::Ended],
    };
    let mut kernel = KernelState::default();
    for event in leases.into_iter().chain(steps.iter().map(|state| transition_event(*state))) {
        kernel.apply(&event).unwrap_or_else(|error| panic!("{error}: {event:?}"));
    }
    kernel
}

#[track_caller]
fn check_rejected(state: &mut KernelState, event: &Event, reason: &'static str) {
    let before = state.to_comparable();
    assert_eq!(state.apply(event), Err(ApplyError(reason)), "{event:?}");
    assert_eq!(state.to_comparable(), before, "refused, and yet changed");
}

#[test]
fn only_transitions_in_the_table_are_applied() {
    let mut ways = 0;
    for from in IntentSessionState::ALL {
        for next in IntentSessionState::ALL {
            let mut state = state_at(from);
            if next == IntentSessionState::New {
                check_rejected(&mut state, &transition_event(next), "there is such a session already");
            } else if from.successors().contains(&next) {
                assert_eq!(state.apply(&transition_event(next)), Ok(()), "{from:?} to {next:?}");
                let session = state.intent_session(&holder("s1")).expect("known");
                assert_eq!((session.state, session.end.is_some()), (next, next == IntentSessionState::Ended));
                ways += 1;
            } else {
                check_rejected(
                    &mut state,
                    &transition_event(next),
                    "the session was not where this can follow",
                );
            }
        }
    }
    assert_eq!(ways, 8);
}

// The table once more, as a person would write it down: a wrong line in the one above is a wrong line in apply too.
#[test]
fn state_transition_table_is_as_specified() {
    use IntentSessionState::{Ended, New, Running, Starting, Stopping};
    assert_eq!(New.successors(), [Starting, Ended]);
    assert_eq!(Starting.successors(), [Running, Stopping, Ended]);
    assert_eq!(Running.successors(), [Stopping, Ended]);
    assert_eq!(Stopping.successors(), [Ended]);
    assert_eq!(Ended.successors(), []);
    assert_eq!(IntentSessionState::ALL.map(IntentSessionState::is_taken), [false, true, true, true, false]);
}

#[test]
fn transition_of_an_unknown_session_is_rejected() {
    for next in &IntentSessionState::ALL[1..] {
        check_rejected(&mut KernelState::default(), &transition_event(*next), "there is no such session");
    }
}

#[test]
fn accepted_event_with_a_used_key_or_id_is_rejected() {
    let begin = |change: fn(&mut IntentAcceptance)| {
        let mut other = IntentAcceptance { session: holder("s2"), key: IntentKey([2; 32]), ..accepted() };
        change(&mut other);
        step(IntentEvent::Accepted(other))
    };
    assert_eq!(state_at(IntentSessionState::New).apply(&begin(|_| {})), Ok(()));
    let mut state = state_at(IntentSessionState::New);
    check_rejected(
        &mut state,
        &begin(|other| other.key = IntentKey([1; 32])),
        "its key leads to another session",
    );
    check_rejected(&mut state, &begin(|other| other.start_by = AT), "it leaves a worker no time");
    let wrong = begin(|other| other.intent.profile = "a|b".into());
    check_rejected(&mut state, &wrong, "it wants what cannot be wanted");
    check_rejected(
        &mut state,
        &begin(|other| other.session = holder("worker:1")),
        "somebody else has its name",
    );
    let mut state = state_at(IntentSessionState::Ended);
    assert_eq!(state.apply(&begin(|other| other.key = IntentKey([1; 32]))), Ok(()), "the key is free again");
}

#[test]
fn starting_event_requires_the_leases_and_the_leader_lock() {
    let reason = "it has a tuner and needs none, or needs one";
    check_rejected(&mut state_at(IntentSessionState::New), &starting("worker:1", 1, None), reason);
    let reason = "it starts without its leases";
    check_rejected(&mut state_at(IntentSessionState::New), &starting("worker:1", 1, Some(1)), reason);
    let mut state = state_at(IntentSessionState::New);
    let lost = |lease: u64| Event::Revoked {
        lease: Fence(lease),
        at: AT,
        cause: tenure_core::kernel::RevocationCause::Revoked,
        by: orchestrator_principal(),
        detail: "".into(),
    };
    state.apply(&lost(2)).expect("revoked");
    check_rejected(&mut state, &starting("worker:1", 1, Some(0)), reason);
    let reason = "its worker does not hold the guard";
    for (worker, guard) in [("worker:2", 1), ("worker:1", 2), ("worker:1", 9)] {
        check_rejected(&mut state_at(IntentSessionState::New), &starting(worker, guard, Some(0)), reason);
    }
    let mut state = state_at(IntentSessionState::New);
    state.apply(&lost(1)).expect("revoked");
    check_rejected(&mut state, &starting("worker:1", 1, Some(0)), reason);
}

#[test]
fn only_required_leases_are_issued_to_a_new_session() {
    let reason = "its holder is a session, and has no use for it";
    let mut state = state_at(IntentSessionState::New);
    check_rejected(&mut state, &Event::Issued(issued(9, "s1", resource("service:zdf"))), reason);
    let mut shared = issued(9, "s1", tuner_resource(1));
    shared.terms.mode = LeaseMode::Shared;
    check_rejected(&mut state, &Event::Issued(shared), reason);
    for from in &IntentSessionState::ALL[1..] {
        check_rejected(&mut state_at(*from), &Event::Issued(issued(9, "s1", tuner_resource(1))), reason);
    }
    let mut kernel = KernelState::default();
    kernel.apply(&transition_event(IntentSessionState::New)).expect("accepted");
    let foreign =
        IssuedLease { principal: Principal::parse("token:b").unwrap(), ..issued(9, "s1", tuner_resource(1)) };
    check_rejected(&mut kernel, &Event::Issued(foreign), reason);
    let requests =
        vec![LeaseRequest::new(tuner_resource(0), LeaseMode::Exclusive, TickDuration(5), Nonce::default())];
    let (ticket, principal, until) = (Ticket(1), orchestrator_principal(), Tick(20));
    let queued =
        QueuedAcquire { ticket, holder: holder("s1"), principal, requests, at: AT, until, key: None };
    check_rejected(&mut kernel, &Event::Queued(queued), "its holder is a session, which never waits");
}

#[test]
fn intent_events_with_invalid_text_are_rejected() {
    let (session, at_tick) = (holder("s1"), AT);
    let process = "two\nlines".into();
    let running = step(IntentEvent::Running { session: session.clone(), at: at_tick, process });
    check_rejected(
        &mut state_at(IntentSessionState::Starting),
        &running,
        "its processes are called what cannot be stored",
    );
    let (end, detail) = (IntentSessionEnd::Failed, "x".repeat(4_097).into());
    let ended = step(IntentEvent::Ended { session, at: at_tick, end, detail });
    check_rejected(
        &mut state_at(IntentSessionState::Running),
        &ended,
        "its end is told in what cannot be stored",
    );
}

/// Changes are numbered over all sessions, and each session is found behind its last.
#[test]
fn sessions_since_returns_sessions_changed_after_a_revision() {
    let mut fixture = IntentSessionFixture::default();
    let guard = fixture.acquire_leader_lock(0, "worker:1");
    fixture.start_running(0, "s1", "ard", 1, guard);
    fixture.accept(0, accept_channel("s2", "zdf", 2)).expect("accepted");
    let seen = fixture.state.intent_sessions_revision();
    assert_eq!((seen, fixture.state.intent_sessions_since(seen).count()), (4, 0));
    fixture.stop(1, "s1").expect("stopping");
    let names =
        |since| fixture.state.intent_sessions_since(since).map(|one| one.id.to_string()).collect::<Vec<_>>();
    assert_eq!((names(seen), names(0)), (vec!["s1".to_owned()], vec!["s2".to_owned(), "s1".to_owned()]));
    assert_eq!(names(u64::MAX), Vec::<String>::new());
    let plain = plain_acquire("bob", "db", ContentionPolicy::Deny);
    fixture.run(1, &plain);
    fixture.run(1, &Command::Expire { max_ended: 1 });
    assert_eq!(fixture.state.intent_sessions_revision(), seen + 1, "leases are no changes of sessions");
}
