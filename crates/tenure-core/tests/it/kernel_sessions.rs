//! What becomes of intents: who wants something asks, and learns which session it is.

use tenure_core::kernel::{
    Accept, Answer, Command, Contention, Event, Granting, IntentAnswer, IntentKey, Limits, Refusal,
    SESSION_KEPT, SESSIONS_KEPT, SessionEnd, SessionState, Span, Tick, decide,
};

use crate::session_desk::{
    Desk, SECONDS_60, channel, ended, holder, leased, now, plain, recording, resource, seconds,
};

// S1-5, O-9: one request and its repetitions are one session, and only the first is told to anybody.
#[test]
fn repeated_intent_returns_the_same_session() {
    let mut desk = Desk::default();
    assert_eq!(desk.accept(0, channel("s1", "ard", 1)), Ok((holder("s1"), true)));
    let published = desk.events.len();
    assert_eq!(desk.accept(1, channel("s2", "ard", 1)), Ok((holder("s1"), false)));
    assert_eq!(desk.events.len(), published);
    assert!(desk.state.session(&holder("s2")).is_none());
}

// S1-28: the formula gives a channel and a recording of one name, from its first second on, the same key.
#[test]
fn channel_and_recording_with_one_key_are_two_sessions() {
    let mut desk = Desk::default();
    assert_eq!(desk.accept(0, channel("s1", "film", 1)), Ok((holder("s1"), true)));
    assert_eq!(desk.accept(0, recording("s2", "film", 0, 1)), Ok((holder("s2"), true)));
    desk.stop(1, "s1").expect("nobody has it");
    assert_eq!(desk.accept(1, recording("s3", "film", 0, 1)), Ok((holder("s2"), false)), "its own goes on");
    assert_eq!(desk.accept(1, channel("s4", "film", 1)), Ok((holder("s4"), true)));
}

// S1-31, S1-32, S1-15: different keys are different sessions; the worker finds the second one busy.
#[test]
fn second_session_for_a_busy_target_ends_as_busy() {
    let mut desk = Desk::default();
    let guard = desk.guard(0, "worker:1");
    assert_eq!(desk.accept(0, channel("s1", "ard", 1)), Ok((holder("s1"), true)));
    assert_eq!(desk.accept(0, channel("s2", "ard", 2)), Ok((holder("s2"), true)));
    assert!(matches!(desk.take(1, "s1", guard), Ok(IntentAnswer::Taken { slot: Some(0), .. })));
    assert_eq!(desk.take(1, "s2", guard), Ok(now(SessionState::Ended, Some(SessionEnd::Busy))));
    assert_eq!(desk.of("s2"), ended(SessionEnd::Busy));
    assert_eq!(SessionEnd::Busy.reason(), "R_LEASE_BUSY");
    assert_eq!(SessionEnd::Busy.outcome(), "REJECTED_BUSY");
    assert_eq!(desk.of("s1").0, SessionState::Starting);
}

#[test]
fn previous_key_still_finds_the_session() {
    let mut desk = Desk::default();
    desk.accept(0, channel("s1", "ard", 1)).expect("accepted");
    let rotated = Accept { previous_key: Some(IntentKey([1; 32])), ..channel("s2", "ard", 2) };
    assert_eq!(desk.accept(1, rotated.clone()), Ok((holder("s1"), false)));
    desk.stop(2, "s1").expect("stopped");
    assert_eq!(desk.accept(3, rotated), Ok((holder("s2"), true)));
}

// O-10: a repetition of what is over begins anew, also when nobody has said yet that it is over.
#[test]
fn repeated_intent_of_an_ended_session_starts_a_new_one() {
    let mut desk = Desk::default();
    let guard = desk.guard(0, "worker:1");
    desk.running(0, "s1", "ard", 1, guard);
    assert_eq!(desk.accept(29, channel("s2", "ard", 1)), Ok((holder("s1"), false)));
    assert_eq!(desk.accept(30, channel("s3", "ard", 1)), Ok((holder("s3"), true)));
    assert_eq!(desk.of("s1"), ended(SessionEnd::LeaseLost));
    assert_eq!(desk.accept(329, channel("s4", "ard", 1)), Ok((holder("s3"), false)));
    assert_eq!(desk.accept(330, channel("s5", "ard", 1)), Ok((holder("s5"), true)));
    assert_eq!(desk.of("s3"), ended(SessionEnd::NoWorker));
}

#[test]
fn repeated_intent_with_a_lease_starts_a_new_session_after_expiry() {
    let mut desk = Desk::default();
    let guard = desk.guard(0, "worker:1");
    desk.running(0, "s1", "ard", 1, guard);
    let held = desk.accept(29, leased(channel("s2", "ard", 1)));
    assert!(matches!(held, Err(Refusal::Held { holder: by, .. }) if by == holder("s1")));
    assert_eq!(desk.accept(30, leased(channel("s3", "ard", 1))), Ok((holder("s3"), true)));
    assert_eq!(desk.of("s1"), ended(SessionEnd::LeaseLost));
    assert_eq!(desk.has("service:ard").as_deref(), Some("s3"));
}

#[test]
fn second_intent_with_a_target_lease_is_denied() {
    let mut desk = Desk::default();
    assert_eq!(desk.accept(0, leased(channel("s1", "ard", 1))), Ok((holder("s1"), true)));
    let second = desk.accept(0, leased(channel("s2", "ard", 1)));
    assert!(matches!(second, Err(Refusal::Held { resource: what, .. }) if what == resource("service:ard")));
    // Somebody waits for what the session has: that is not in its way.
    assert!(matches!(desk.run(1, &plain("bob", "service:ard", SECONDS_60)), Answer::Queued { .. }));
    let guard = desk.guard(1, "worker:1");
    let taken = desk.take(2, "s1", guard);
    assert!(matches!(taken, Ok(IntentAnswer::Taken { slot: Some(0), .. })), "{taken:?}");
    assert_eq!(desk.finish(3, "s1", guard), Ok(now(SessionState::Ended, Some(SessionEnd::Completed))));
    assert_eq!(desk.has("service:ard").as_deref(), Some("bob"), "its turn came with the end");
}

#[test]
fn target_lease_of_an_untaken_session_expires() {
    let mut desk = Desk::default();
    desk.accept(0, leased(channel("s1", "ard", 1))).expect("accepted");
    desk.sweep(30);
    assert_eq!((desk.of("s1").0, desk.has("service:ard")), (SessionState::New, None));
    let guard = desk.guard(31, "worker:1");
    assert!(matches!(desk.take(31, "s1", guard), Ok(IntentAnswer::Taken { .. })));
}

#[test]
fn untaken_session_ends_at_its_start_deadline() {
    let mut desk = Desk::default();
    desk.accept(0, leased(channel("s1", "ard", 1))).expect("accepted");
    assert_eq!(desk.state.next_deadline(), Some(seconds(30)), "of the lease");
    desk.sweep(30);
    assert_eq!(desk.state.next_deadline(), Some(seconds(300)), "of the session");
    desk.sweep(299);
    assert_eq!(desk.of("s1").0, SessionState::New);
    desk.sweep(300);
    assert_eq!(desk.of("s1"), ended(SessionEnd::NoWorker));
    assert_eq!(SessionEnd::NoWorker.reason(), "R_NO_WORKER");
}

#[test]
fn sweep_of_overdue_sessions_is_limited() {
    let mut desk = Desk::default();
    for number in 0..10_u8 {
        desk.accept(0, recording(&format!("s{number}"), "film", u64::from(number) * 1_000, number))
            .expect("new");
    }
    let mut left = 10;
    while left > 0 {
        let decision = desk.decide(300, &Command::Expire { most: 4 });
        assert!(decision.events.len() <= 4, "{decision:?}");
        left -= decision.events.len();
        assert_eq!(decision.answer, Answer::Swept { more: left > 0 });
        assert_eq!(desk.state.next_deadline().is_some(), left > 0);
    }
}

#[test]
fn stop_ends_a_new_session_at_once_and_a_running_one_through_its_worker() {
    let mut desk = Desk::default();
    let guard = desk.guard(0, "worker:1");
    desk.accept(0, leased(channel("s1", "ard", 1))).expect("accepted");
    let stopped = now(SessionState::Ended, Some(SessionEnd::Stopped));
    assert_eq!(desk.stop(1, "s1"), Ok(stopped.clone()));
    assert_eq!((desk.stop(2, "s1"), desk.has("service:ard")), (Ok(stopped), None));

    desk.running(3, "s2", "ard", 1, guard);
    let stopping = now(SessionState::Stopping, None);
    assert_eq!(desk.stop(4, "s2"), Ok(stopping.clone()));
    let events = desk.events.len();
    assert_eq!(desk.stop(5, "s2"), Ok(stopping.clone()));
    assert_eq!(desk.events.len(), events, "it was asked for before");
    assert_eq!(desk.start(5, "s2", guard), Ok(stopping.clone()), "it runs no more");
    assert_eq!(desk.take(5, "s2", guard), Ok(stopping));

    desk.accept(6, channel("s3", "zdf", 3)).expect("accepted");
    desk.take(6, "s3", guard).expect("taken");
    assert_eq!(desk.stop(7, "s3"), Ok(now(SessionState::Stopping, None)));
    assert_eq!(desk.stop(8, "s4"), Err(Refusal::NoSuchSession));
    // Both have lost their leases, and nobody has said so.
    assert_eq!(desk.stop(40, "s3"), Ok(now(SessionState::Ended, Some(SessionEnd::LeaseLost))));
}

// A session and its leases are found by its name: nobody else uses it, before or after.
#[test]
fn acquire_with_an_intent_session_as_holder_is_rejected() {
    let mut desk = Desk::default();
    desk.accept(0, channel("s1", "ard", 1)).expect("accepted");
    let taken = Answer::Refused(Refusal::HolderTaken { holder: holder("s1") });
    assert_eq!(desk.run(1, &plain("s1", "db", Contention::Refuse)), taken);
    assert_eq!(desk.run(1, &plain("s1", "db", SECONDS_60)), taken);
    desk.stop(2, "s1").expect("stopped");
    assert_eq!(desk.run(3, &plain("s1", "db", Contention::Refuse)), taken, "it is remembered");
    let again = desk.accept(4, channel("s1", "zdf", 2));
    assert_eq!(again, Err(Refusal::HolderTaken { holder: holder("s1") }));

    assert!(matches!(desk.run(5, &plain("bob", "db", Contention::Refuse)), Answer::Granted { .. }));
    let used = desk.accept(5, channel("bob", "zdf", 2));
    assert_eq!(used, Err(Refusal::HolderTaken { holder: holder("bob") }));
    desk.guard(6, "worker:1");
    let worker = desk.accept(6, channel("worker:1", "zdf", 2));
    assert_eq!(worker, Err(Refusal::HolderTaken { holder: holder("worker:1") }));
}

#[test]
fn active_intent_sessions_are_limited() {
    let mut desk = Desk::with(Limits { sessions: 2, ..Limits::default() });
    let guard = desk.guard(0, "worker:1");
    desk.running(0, "s1", "ard", 1, guard);
    desk.accept(0, channel("s2", "zdf", 2)).expect("accepted");
    assert_eq!(desk.accept(1, channel("s3", "3sat", 3)), Err(Refusal::TooManySessions { most: 2 }));
    assert_eq!(desk.accept(1, channel("s4", "ard", 1)), Ok((holder("s1"), false)), "it goes on already");
    // The place of one that is over is free, before anybody says so.
    assert_eq!(desk.accept(30, channel("s5", "ard", 1)), Ok((holder("s5"), true)));

    let mut desk = Desk::with(Limits { session_bytes: 1_000, ..Limits::default() });
    let mut large = channel("s1", "ard", 1);
    large.intent.params = "x".repeat(800).into();
    assert_eq!(desk.accept(0, large), Err(Refusal::TooManySessions { most: 10_000 }));
    assert_eq!(desk.accept(0, channel("s1", "ard", 1)), Ok((holder("s1"), true)));
}

#[test]
fn ended_sessions_are_forgotten_after_an_hour_or_by_size() {
    let mut desk = Desk::default();
    desk.accept(0, channel("s1", "ard", 1)).expect("accepted");
    desk.stop(0, "s1").expect("stopped");
    let kept = SESSION_KEPT.0 / 1_000_000;
    desk.accept(kept - 1, channel("s2", "ard", 1)).expect("accepted");
    assert!(desk.state.session(&holder("s1")).is_some());
    desk.stop(kept, "s2").expect("stopped");
    assert!(desk.state.session(&holder("s1")).is_none());
    assert_eq!(desk.state.sessions_revision(), 4, "changes are counted for ever");

    // Large ones are forgotten sooner: 300 of them do not fit.
    let mut desk = Desk::default();
    for number in 0..300_u64 {
        let mut large = recording(&format!("s{number}"), "film", number * 1_000, 1);
        large.intent.params = "x".repeat(1 << 16).into();
        desk.accept(1, large).expect("accepted");
        desk.stop(1, &format!("s{number}")).expect("stopped");
    }
    let count = desk.state.sessions().count();
    assert!((200..300).contains(&count) && count < SESSIONS_KEPT, "{count} are remembered");
    assert!(desk.state.session(&holder("s299")).is_some());
}

#[test]
fn accept_without_space_finds_only_existing_sessions() {
    let mut desk = Desk::default();
    desk.accept(0, channel("s1", "ard", 1)).expect("accepted");
    desk.state.set_granting(Granting::Renewals);
    assert_eq!(desk.accept(1, channel("s2", "zdf", 2)), Err(Refusal::NoSpace));
    assert_eq!(desk.accept(1, channel("s3", "ard", 1)), Ok((holder("s1"), false)));
    assert_eq!(desk.stop(2, "s1"), Ok(now(SessionState::Ended, Some(SessionEnd::Stopped))));
}

#[test]
fn rejected_intent_issues_no_lease() {
    let desk = Desk::default();
    let endless = Accept { patience: Span(u64::MAX), ..leased(channel("s1", "ard", 1)) };
    let command = tenure_core::kernel::IntentCommand::Accept(endless);
    let decision = decide(&desk.state, &Command::Intent(Box::new(command)), Tick(1));
    assert_eq!(decision.answer, Answer::Refused(Refusal::Exhausted));
    assert_eq!(decision.events, Vec::<Event>::new());
}
