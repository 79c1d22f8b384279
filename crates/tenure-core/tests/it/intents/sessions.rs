//! What becomes of intents: who wants something asks, and learns which session it is.

use tenure_core::kernel::{
    AcceptIntent, AdmissionLevel, Command, CommandOutcome, ContentionPolicy, Event, INTENT_SESSION_RETENTION,
    IntentKey, IntentOutcome, IntentSessionEnd, IntentSessionState, Limits, MAX_ENDED_INTENT_SESSIONS,
    Rejection, Tick, TickDuration, decide,
};

use crate::intents::fixture::{
    IntentSessionFixture, WAIT_60_SECONDS, accept_channel, accept_recording, current_outcome, ended, holder,
    plain_acquire, resource, seconds, with_target_lease,
};

// S1-5, O-9: one request and its repetitions are one session, and only the first is told to anybody.
#[test]
fn repeated_intent_returns_the_same_session() {
    let mut fixture = IntentSessionFixture::default();
    assert_eq!(fixture.accept(0, accept_channel("s1", "ard", 1)), Ok((holder("s1"), true)));
    let published = fixture.events.len();
    assert_eq!(fixture.accept(1, accept_channel("s2", "ard", 1)), Ok((holder("s1"), false)));
    assert_eq!(fixture.events.len(), published);
    assert!(fixture.state.intent_session(&holder("s2")).is_none());
}

// S1-28: the formula gives a channel and a recording of one name, from its first second on, the same key.
#[test]
fn channel_and_recording_with_one_key_are_two_sessions() {
    let mut fixture = IntentSessionFixture::default();
    assert_eq!(fixture.accept(0, accept_channel("s1", "film", 1)), Ok((holder("s1"), true)));
    assert_eq!(fixture.accept(0, accept_recording("s2", "film", 0, 1)), Ok((holder("s2"), true)));
    fixture.stop(1, "s1").expect("nobody has it");
    assert_eq!(
        fixture.accept(1, accept_recording("s3", "film", 0, 1)),
        Ok((holder("s2"), false)),
        "its own goes on"
    );
    assert_eq!(fixture.accept(1, accept_channel("s4", "film", 1)), Ok((holder("s4"), true)));
}

// S1-31, S1-32, S1-15: different keys are different sessions; the worker finds the second one busy.
#[test]
fn second_session_for_a_busy_target_ends_as_busy() {
    let mut fixture = IntentSessionFixture::default();
    let guard = fixture.acquire_leader_lock(0, "worker:1");
    assert_eq!(fixture.accept(0, accept_channel("s1", "ard", 1)), Ok((holder("s1"), true)));
    assert_eq!(fixture.accept(0, accept_channel("s2", "ard", 2)), Ok((holder("s2"), true)));
    assert!(matches!(fixture.take(1, "s1", guard), Ok(IntentOutcome::Taken { slot: Some(0), .. })));
    assert_eq!(
        fixture.take(1, "s2", guard),
        Ok(current_outcome(IntentSessionState::Ended, Some(IntentSessionEnd::Busy)))
    );
    assert_eq!(fixture.state_of("s2"), ended(IntentSessionEnd::Busy));
    assert_eq!(IntentSessionEnd::Busy.reason(), "R_LEASE_BUSY");
    assert_eq!(IntentSessionEnd::Busy.outcome(), "REJECTED_BUSY");
    assert_eq!(fixture.state_of("s1").0, IntentSessionState::Starting);
}

#[test]
fn previous_key_still_finds_the_session() {
    let mut fixture = IntentSessionFixture::default();
    fixture.accept(0, accept_channel("s1", "ard", 1)).expect("accepted");
    let rotated = AcceptIntent { previous_key: Some(IntentKey([1; 32])), ..accept_channel("s2", "ard", 2) };
    assert_eq!(fixture.accept(1, rotated.clone()), Ok((holder("s1"), false)));
    fixture.stop(2, "s1").expect("stopped");
    assert_eq!(fixture.accept(3, rotated), Ok((holder("s2"), true)));
}

// O-10: a repetition of what is over begins anew, also when nobody has said yet that it is over.
#[test]
fn repeated_intent_of_an_ended_session_starts_a_new_one() {
    let mut fixture = IntentSessionFixture::default();
    let guard = fixture.acquire_leader_lock(0, "worker:1");
    fixture.start_running(0, "s1", "ard", 1, guard);
    assert_eq!(fixture.accept(29, accept_channel("s2", "ard", 1)), Ok((holder("s1"), false)));
    assert_eq!(fixture.accept(30, accept_channel("s3", "ard", 1)), Ok((holder("s3"), true)));
    assert_eq!(fixture.state_of("s1"), ended(IntentSessionEnd::LeaseLost));
    assert_eq!(fixture.accept(329, accept_channel("s4", "ard", 1)), Ok((holder("s3"), false)));
    assert_eq!(fixture.accept(330, accept_channel("s5", "ard", 1)), Ok((holder("s5"), true)));
    assert_eq!(fixture.state_of("s3"), ended(IntentSessionEnd::NoWorker));
}

#[test]
fn repeated_intent_with_a_lease_starts_a_new_session_after_expiry() {
    let mut fixture = IntentSessionFixture::default();
    let guard = fixture.acquire_leader_lock(0, "worker:1");
    fixture.start_running(0, "s1", "ard", 1, guard);
    let held = fixture.accept(29, with_target_lease(accept_channel("s2", "ard", 1)));
    assert!(matches!(held, Err(Rejection::Held { holder: by, .. }) if by == holder("s1")));
    assert_eq!(
        fixture.accept(30, with_target_lease(accept_channel("s3", "ard", 1))),
        Ok((holder("s3"), true))
    );
    assert_eq!(fixture.state_of("s1"), ended(IntentSessionEnd::LeaseLost));
    assert_eq!(fixture.holder_of("service:ard").as_deref(), Some("s3"));
}

#[test]
fn second_intent_with_a_target_lease_is_denied() {
    let mut fixture = IntentSessionFixture::default();
    assert_eq!(
        fixture.accept(0, with_target_lease(accept_channel("s1", "ard", 1))),
        Ok((holder("s1"), true))
    );
    let second = fixture.accept(0, with_target_lease(accept_channel("s2", "ard", 1)));
    assert!(matches!(second, Err(Rejection::Held { resource: what, .. }) if what == resource("service:ard")));
    // Somebody waits for what the session has: that is not in its way.
    assert!(matches!(
        fixture.run(1, &plain_acquire("bob", "service:ard", WAIT_60_SECONDS)),
        CommandOutcome::Queued { .. }
    ));
    let guard = fixture.acquire_leader_lock(1, "worker:1");
    let taken = fixture.take(2, "s1", guard);
    assert!(matches!(taken, Ok(IntentOutcome::Taken { slot: Some(0), .. })), "{taken:?}");
    assert_eq!(
        fixture.finish(3, "s1", guard),
        Ok(current_outcome(IntentSessionState::Ended, Some(IntentSessionEnd::Completed)))
    );
    assert_eq!(fixture.holder_of("service:ard").as_deref(), Some("bob"), "its turn came with the end");
}

#[test]
fn target_lease_of_an_untaken_session_expires() {
    let mut fixture = IntentSessionFixture::default();
    fixture.accept(0, with_target_lease(accept_channel("s1", "ard", 1))).expect("accepted");
    fixture.sweep(30);
    assert_eq!((fixture.state_of("s1").0, fixture.holder_of("service:ard")), (IntentSessionState::New, None));
    let guard = fixture.acquire_leader_lock(31, "worker:1");
    assert!(matches!(fixture.take(31, "s1", guard), Ok(IntentOutcome::Taken { .. })));
}

#[test]
fn untaken_session_ends_at_its_start_deadline() {
    let mut fixture = IntentSessionFixture::default();
    fixture.accept(0, with_target_lease(accept_channel("s1", "ard", 1))).expect("accepted");
    assert_eq!(fixture.state.next_deadline(), Some(seconds(30)), "of the lease");
    fixture.sweep(30);
    assert_eq!(fixture.state.next_deadline(), Some(seconds(300)), "of the session");
    fixture.sweep(299);
    assert_eq!(fixture.state_of("s1").0, IntentSessionState::New);
    fixture.sweep(300);
    assert_eq!(fixture.state_of("s1"), ended(IntentSessionEnd::NoWorker));
    assert_eq!(IntentSessionEnd::NoWorker.reason(), "R_NO_WORKER");
}

#[test]
fn sweep_of_overdue_sessions_is_limited() {
    let mut fixture = IntentSessionFixture::default();
    for number in 0..10_u8 {
        fixture
            .accept(0, accept_recording(&format!("s{number}"), "film", u64::from(number) * 1_000, number))
            .expect("new");
    }
    let mut remaining = 10;
    while remaining > 0 {
        let decision = fixture.decide(300, &Command::Expire { max_ended: 4 });
        assert!(decision.events.len() <= 4, "{decision:?}");
        remaining -= decision.events.len();
        assert_eq!(decision.outcome, CommandOutcome::Swept { more: remaining > 0 });
        assert_eq!(fixture.state.next_deadline().is_some(), remaining > 0);
    }
}

#[test]
fn stop_ends_a_new_session_at_once_and_a_running_one_through_its_worker() {
    let mut fixture = IntentSessionFixture::default();
    let guard = fixture.acquire_leader_lock(0, "worker:1");
    fixture.accept(0, with_target_lease(accept_channel("s1", "ard", 1))).expect("accepted");
    let stopped = current_outcome(IntentSessionState::Ended, Some(IntentSessionEnd::Stopped));
    assert_eq!(fixture.stop(1, "s1"), Ok(stopped.clone()));
    assert_eq!((fixture.stop(2, "s1"), fixture.holder_of("service:ard")), (Ok(stopped), None));

    fixture.start_running(3, "s2", "ard", 1, guard);
    let stop_outcome = current_outcome(IntentSessionState::Stopping, None);
    assert_eq!(fixture.stop(4, "s2"), Ok(stop_outcome.clone()));
    let events = fixture.events.len();
    assert_eq!(fixture.stop(5, "s2"), Ok(stop_outcome.clone()));
    assert_eq!(fixture.events.len(), events, "it was asked for before");
    assert_eq!(fixture.start(5, "s2", guard), Ok(stop_outcome.clone()), "it runs no more");
    assert_eq!(fixture.take(5, "s2", guard), Ok(stop_outcome));

    fixture.accept(6, accept_channel("s3", "zdf", 3)).expect("accepted");
    fixture.take(6, "s3", guard).expect("taken");
    assert_eq!(fixture.stop(7, "s3"), Ok(current_outcome(IntentSessionState::Stopping, None)));
    assert_eq!(fixture.stop(8, "s4"), Err(Rejection::NoSuchSession));
    // Both have lost their leases, and nobody has said so.
    assert_eq!(
        fixture.stop(40, "s3"),
        Ok(current_outcome(IntentSessionState::Ended, Some(IntentSessionEnd::LeaseLost)))
    );
}

// A session and its leases are found by its name: nobody else uses it, before or after.
#[test]
fn acquire_with_an_intent_session_as_holder_is_rejected() {
    let mut fixture = IntentSessionFixture::default();
    fixture.accept(0, accept_channel("s1", "ard", 1)).expect("accepted");
    let taken = CommandOutcome::Rejected(Rejection::HolderTaken { holder: holder("s1") });
    assert_eq!(fixture.run(1, &plain_acquire("s1", "db", ContentionPolicy::Deny)), taken);
    assert_eq!(fixture.run(1, &plain_acquire("s1", "db", WAIT_60_SECONDS)), taken);
    fixture.stop(2, "s1").expect("stopped");
    assert_eq!(fixture.run(3, &plain_acquire("s1", "db", ContentionPolicy::Deny)), taken, "it is remembered");
    let again = fixture.accept(4, accept_channel("s1", "zdf", 2));
    assert_eq!(again, Err(Rejection::HolderTaken { holder: holder("s1") }));

    assert!(matches!(
        fixture.run(5, &plain_acquire("bob", "db", ContentionPolicy::Deny)),
        CommandOutcome::Granted { .. }
    ));
    let used = fixture.accept(5, accept_channel("bob", "zdf", 2));
    assert_eq!(used, Err(Rejection::HolderTaken { holder: holder("bob") }));
    fixture.acquire_leader_lock(6, "worker:1");
    let worker = fixture.accept(6, accept_channel("worker:1", "zdf", 2));
    assert_eq!(worker, Err(Rejection::HolderTaken { holder: holder("worker:1") }));
}

#[test]
fn active_intent_sessions_are_limited() {
    let mut fixture =
        IntentSessionFixture::with_limits(Limits { max_intent_sessions: 2, ..Limits::default() });
    let guard = fixture.acquire_leader_lock(0, "worker:1");
    fixture.start_running(0, "s1", "ard", 1, guard);
    fixture.accept(0, accept_channel("s2", "zdf", 2)).expect("accepted");
    assert_eq!(
        fixture.accept(1, accept_channel("s3", "3sat", 3)),
        Err(Rejection::TooManySessions { max: 2 })
    );
    assert_eq!(
        fixture.accept(1, accept_channel("s4", "ard", 1)),
        Ok((holder("s1"), false)),
        "it goes on already"
    );
    // The place of one that is over is free, before anybody says so.
    assert_eq!(fixture.accept(30, accept_channel("s5", "ard", 1)), Ok((holder("s5"), true)));

    let mut fixture =
        IntentSessionFixture::with_limits(Limits { max_intent_session_bytes: 1_000, ..Limits::default() });
    let mut large = accept_channel("s1", "ard", 1);
    large.intent.params = "x".repeat(800).into();
    assert_eq!(fixture.accept(0, large), Err(Rejection::TooManySessions { max: 10_000 }));
    assert_eq!(fixture.accept(0, accept_channel("s1", "ard", 1)), Ok((holder("s1"), true)));
}

#[test]
fn ended_sessions_are_forgotten_after_an_hour_or_by_size() {
    let mut fixture = IntentSessionFixture::default();
    fixture.accept(0, accept_channel("s1", "ard", 1)).expect("accepted");
    fixture.stop(0, "s1").expect("stopped");
    let kept = INTENT_SESSION_RETENTION.0 / 1_000_000;
    fixture.accept(kept - 1, accept_channel("s2", "ard", 1)).expect("accepted");
    assert!(fixture.state.intent_session(&holder("s1")).is_some());
    fixture.stop(kept, "s2").expect("stopped");
    assert!(fixture.state.intent_session(&holder("s1")).is_none());
    assert_eq!(fixture.state.intent_sessions_revision(), 4, "changes are counted for ever");

    // Large ones are forgotten sooner: 300 of them do not fit.
    let mut fixture = IntentSessionFixture::default();
    for number in 0..300_u64 {
        let mut large = accept_recording(&format!("s{number}"), "film", number * 1_000, 1);
        large.intent.params = "x".repeat(1 << 16).into();
        fixture.accept(1, large).expect("accepted");
        fixture.stop(1, &format!("s{number}")).expect("stopped");
    }
    let count = fixture.state.intent_sessions().count();
    assert!((200..300).contains(&count) && count < MAX_ENDED_INTENT_SESSIONS, "{count} are remembered");
    assert!(fixture.state.intent_session(&holder("s299")).is_some());
}

#[test]
fn accept_without_space_finds_only_existing_sessions() {
    let mut fixture = IntentSessionFixture::default();
    fixture.accept(0, accept_channel("s1", "ard", 1)).expect("accepted");
    fixture.state.set_admission_level(AdmissionLevel::Renewals);
    assert_eq!(fixture.accept(1, accept_channel("s2", "zdf", 2)), Err(Rejection::NoSpace));
    assert_eq!(fixture.accept(1, accept_channel("s3", "ard", 1)), Ok((holder("s1"), false)));
    assert_eq!(
        fixture.stop(2, "s1"),
        Ok(current_outcome(IntentSessionState::Ended, Some(IntentSessionEnd::Stopped)))
    );
}

#[test]
fn rejected_intent_issues_no_lease() {
    let fixture = IntentSessionFixture::default();
    let endless = AcceptIntent {
        wait_timeout: TickDuration(u64::MAX),
        ..with_target_lease(accept_channel("s1", "ard", 1))
    };
    let command = tenure_core::kernel::IntentCommand::Accept(endless);
    let decision = decide(&fixture.state, &Command::Intent(Box::new(command)), Tick(1));
    assert_eq!(decision.outcome, CommandOutcome::Rejected(Rejection::Exhausted));
    assert_eq!(decision.events, Vec::<Event>::new());
}
