//! Which event of a session may follow which: the whole table against apply, and every other reason to refuse one.

use tenure_core::kernel::{
    Accepted, Command, Contention, Event, Fence, Holder, Intent, IntentEvent, IntentKey, Issued, Labels,
    Misfit, Mode, Nonce, Principal, Queued, Resource, SessionEnd, SessionState, Span, State, Target, Tick,
    Ticket, Want, guard, orchestrator, tuner,
};

use crate::session_desk::{Desk, channel, holder, plain, principal, resource};

const AT: Tick = Tick(10);

fn accepted() -> Accepted {
    Accepted {
        session: holder("s1"),
        intent: Intent {
            target: Target::Service("ard".into()),
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

fn issued(fence: u64, holder: &str, resource: Resource) -> Issued {
    Issued {
        fence: Fence(fence),
        resource,
        holder: Holder::parse(holder).expect("a name"),
        principal: orchestrator(),
        mode: Mode::Exclusive,
        at: AT,
        expires_at: Tick(50),
        ttl: Span(40),
        nonce: Nonce::default(),
        labels: Labels::default(),
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
    step(IntentEvent::Starting { session, at: AT, worker, guard: Fence(guard), slot })
}

/// The event that leads to a state.
fn to(state: SessionState) -> Event {
    let (session, at) = (holder("s1"), AT);
    match state {
        SessionState::New => step(IntentEvent::Accepted(accepted())),
        SessionState::Starting => starting("worker:1", 1, Some(0)),
        SessionState::Running => step(IntentEvent::Running { session, at, process: "pid 1".into() }),
        SessionState::Stopping => step(IntentEvent::Stopping { session, at, by: principal("token:a") }),
        SessionState::Ended => {
            step(IntentEvent::Ended { session, at, end: SessionEnd::Stopped, detail: "".into() })
        }
    }
}

/// A worker with its guard, and a session with its leases, which has come as far as `state`.
fn at(state: SessionState) -> State {
    let leases = [
        Event::Issued(issued(1, "worker:1", guard())),
        Event::Issued(issued(2, "s1", resource("service:ard"))),
        to(SessionState::New),
        Event::Issued(issued(3, "s1", tuner(0))),
    ];
    let steps: &[SessionState] = match state {
        SessionState::New => &[],
        SessionState::Starting => &[SessionState::Starting],
        SessionState::Running => &[SessionState::Starting, SessionState::Running],
        SessionState::Stopping => &[SessionState::Starting, SessionState::Stopping],
        SessionState::Ended => &[SessionState::Ended],
    };
    let mut kernel = State::default();
    for event in leases.into_iter().chain(steps.iter().map(|state| to(*state))) {
        kernel.apply(&event).unwrap_or_else(|misfit| panic!("{misfit}: {event:?}"));
    }
    kernel
}

#[track_caller]
fn misfit(state: &mut State, event: &Event, reason: &'static str) {
    let before = state.snapshot();
    assert_eq!(state.apply(event), Err(Misfit(reason)), "{event:?}");
    assert_eq!(state.snapshot(), before, "refused, and yet changed");
}

#[test]
fn only_transitions_in_the_table_are_applied() {
    let mut ways = 0;
    for from in SessionState::ALL {
        for next in SessionState::ALL {
            let mut state = at(from);
            if next == SessionState::New {
                misfit(&mut state, &to(next), "there is such a session already");
            } else if from.may_follow().contains(&next) {
                assert_eq!(state.apply(&to(next)), Ok(()), "{from:?} to {next:?}");
                let session = state.session(&holder("s1")).expect("known");
                assert_eq!((session.state, session.end.is_some()), (next, next == SessionState::Ended));
                ways += 1;
            } else {
                misfit(&mut state, &to(next), "the session was not where this can follow");
            }
        }
    }
    assert_eq!(ways, 8);
}

// The table once more, as a person would write it down: a wrong line in the one above is a wrong line in apply too.
#[test]
fn state_transition_table_is_as_specified() {
    use SessionState::{Ended, New, Running, Starting, Stopping};
    assert_eq!(New.may_follow(), [Starting, Ended]);
    assert_eq!(Starting.may_follow(), [Running, Stopping, Ended]);
    assert_eq!(Running.may_follow(), [Stopping, Ended]);
    assert_eq!(Stopping.may_follow(), [Ended]);
    assert_eq!(Ended.may_follow(), []);
    assert_eq!(SessionState::ALL.map(SessionState::is_taken), [false, true, true, true, false]);
}

#[test]
fn transition_of_an_unknown_session_is_rejected() {
    for next in &SessionState::ALL[1..] {
        misfit(&mut State::default(), &to(*next), "there is no such session");
    }
}

#[test]
fn accepted_event_with_a_used_key_or_id_is_rejected() {
    let begin = |change: fn(&mut Accepted)| {
        let mut other = Accepted { session: holder("s2"), key: IntentKey([2; 32]), ..accepted() };
        change(&mut other);
        step(IntentEvent::Accepted(other))
    };
    assert_eq!(at(SessionState::New).apply(&begin(|_| {})), Ok(()));
    let mut state = at(SessionState::New);
    misfit(&mut state, &begin(|other| other.key = IntentKey([1; 32])), "its key leads to another session");
    misfit(&mut state, &begin(|other| other.start_by = AT), "it leaves a worker no time");
    let wrong = begin(|other| other.intent.profile = "a|b".into());
    misfit(&mut state, &wrong, "it wants what cannot be wanted");
    misfit(&mut state, &begin(|other| other.session = holder("worker:1")), "somebody else has its name");
    let mut state = at(SessionState::Ended);
    assert_eq!(state.apply(&begin(|other| other.key = IntentKey([1; 32]))), Ok(()), "the key is free again");
}

#[test]
fn starting_event_requires_the_leases_and_the_leader_lock() {
    let reason = "it has a tuner and needs none, or needs one";
    misfit(&mut at(SessionState::New), &starting("worker:1", 1, None), reason);
    let reason = "it starts without its leases";
    misfit(&mut at(SessionState::New), &starting("worker:1", 1, Some(1)), reason);
    let mut state = at(SessionState::New);
    let lost = |lease: u64| Event::Revoked {
        lease: Fence(lease),
        at: AT,
        cause: tenure_core::kernel::Cause::Revoked,
        by: orchestrator(),
        detail: "".into(),
    };
    state.apply(&lost(2)).expect("revoked");
    misfit(&mut state, &starting("worker:1", 1, Some(0)), reason);
    let reason = "its worker does not hold the guard";
    for (worker, guard) in [("worker:2", 1), ("worker:1", 2), ("worker:1", 9)] {
        misfit(&mut at(SessionState::New), &starting(worker, guard, Some(0)), reason);
    }
    let mut state = at(SessionState::New);
    state.apply(&lost(1)).expect("revoked");
    misfit(&mut state, &starting("worker:1", 1, Some(0)), reason);
}

#[test]
fn only_required_leases_are_issued_to_a_new_session() {
    let reason = "its holder is a session, and has no use for it";
    let mut state = at(SessionState::New);
    misfit(&mut state, &Event::Issued(issued(9, "s1", resource("service:zdf"))), reason);
    let shared = Issued { mode: Mode::Shared, ..issued(9, "s1", tuner(1)) };
    misfit(&mut state, &Event::Issued(shared), reason);
    for from in &SessionState::ALL[1..] {
        misfit(&mut at(*from), &Event::Issued(issued(9, "s1", tuner(1))), reason);
    }
    let mut fresh = State::default();
    fresh.apply(&to(SessionState::New)).expect("accepted");
    let foreign = Issued { principal: Principal::parse("token:b").unwrap(), ..issued(9, "s1", tuner(1)) };
    misfit(&mut fresh, &Event::Issued(foreign), reason);
    let wants = vec![Want::new(tuner(0), Mode::Exclusive, Span(5), Nonce::default())];
    let (ticket, principal, until) = (Ticket(1), orchestrator(), Tick(20));
    let waits = Queued { ticket, holder: holder("s1"), principal, wants, at: AT, until, key: None };
    misfit(&mut fresh, &Event::Queued(waits), "its holder is a session, which never waits");
}

#[test]
fn intent_events_with_invalid_text_are_rejected() {
    let (session, at_tick) = (holder("s1"), AT);
    let process = "two\nlines".into();
    let running = step(IntentEvent::Running { session: session.clone(), at: at_tick, process });
    misfit(&mut at(SessionState::Starting), &running, "its processes are called what cannot be stored");
    let (end, detail) = (SessionEnd::Failed, "x".repeat(4_097).into());
    let ended = step(IntentEvent::Ended { session, at: at_tick, end, detail });
    misfit(&mut at(SessionState::Running), &ended, "its end is told in what cannot be stored");
}

/// Changes are numbered over all sessions, and each session is found behind its last.
#[test]
fn sessions_since_returns_sessions_changed_after_a_revision() {
    let mut desk = Desk::default();
    let guard = desk.guard(0, "worker:1");
    desk.running(0, "s1", "ard", 1, guard);
    desk.accept(0, channel("s2", "zdf", 2)).expect("accepted");
    let seen = desk.state.sessions_revision();
    assert_eq!((seen, desk.state.sessions_since(seen).count()), (4, 0));
    desk.stop(1, "s1").expect("stopping");
    let names = |since| desk.state.sessions_since(since).map(|one| one.id.to_string()).collect::<Vec<_>>();
    assert_eq!((names(seen), names(0)), (vec!["s1".to_owned()], vec!["s2".to_owned(), "s1".to_owned()]));
    assert_eq!(names(u64::MAX), Vec::<String>::new());
    let plain = plain("bob", "db", Contention::Refuse);
    desk.run(1, &plain);
    desk.run(1, &Command::Expire { most: 1 });
    assert_eq!(desk.state.sessions_revision(), seen + 1, "leases are no changes of sessions");
}
