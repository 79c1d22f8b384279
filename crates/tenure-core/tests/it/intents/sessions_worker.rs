//! What the one worker does with sessions: their leases, their pipelines, and what another one left behind.

use tenure_core::kernel::{
    Acquire, AdmissionLevel, ChangeMode, Command, CommandOutcome, ContentionPolicy, Event, Fence, Holder,
    IntentCommand, IntentEvent, IntentOutcome, IntentSessionEnd, IntentSessionState, KeepAliveOutcome,
    LeaseCredential, LeaseMode, LeaseRequest, MAX_INTENT_SESSIONS_PER_COMMAND, Nonce, Rejection, Resource,
    RevocationCause, TickDuration, leader_lock_resource, tuner_slot,
};

use crate::intents::fixture::{
    IntentSessionFixture, TTL, WAIT_60_SECONDS, accept_channel, accept_recording, current_outcome, ended,
    holder, plain_acquire, principal, resource, seconds, take_command, with_target_lease,
};

const LOST: (IntentSessionState, Option<IntentSessionEnd>) = ended(IntentSessionEnd::LeaseLost);

fn kept_alive(seconds_from_start: u64, state: IntentSessionState) -> KeepAliveOutcome {
    KeepAliveOutcome::Active { until: seconds(seconds_from_start), state }
}

// S1-13, S1-16, S1-48: first the target, then a tuner, by the names that `Target` and `tuner` give and nobody else.
#[test]
fn session_lifecycle_acquires_and_releases_its_leases() {
    let mut fixture = IntentSessionFixture::default();
    let guard = fixture.acquire_leader_lock(0, "worker:1");
    fixture.accept(1, accept_channel("s1", "ard", 1)).expect("accepted");
    fixture.take(1, "s1", guard).expect("taken");
    let issued = |event: &Event| match event {
        Event::Issued(issued) if issued.holder == holder("s1") => Some(issued.resource.to_string()),
        _ => None,
    };
    let leases: Vec<_> = fixture.events.iter().filter_map(issued).collect();
    assert_eq!(leases, ["service:ard", "tuner:0"]);
    assert_eq!(fixture.state_of("s1"), (IntentSessionState::Starting, None));
    assert_eq!(fixture.start(1, "s1", guard), Ok(current_outcome(IntentSessionState::Running, None)));
    let session = fixture.state.intent_session(&holder("s1")).expect("known");
    assert_eq!((session.slot, &*session.process), (Some(0), "pid 1"));
    assert_eq!(session.worker, Some((holder("worker:1"), guard)));
    // S1-20: what is over holds nothing.
    assert_eq!(
        fixture.finish(2, "s1", guard),
        Ok(current_outcome(IntentSessionState::Ended, Some(IntentSessionEnd::Completed)))
    );
    assert_eq!((fixture.holder_of("service:ard"), fixture.holder_of("tuner:0")), (None, None));
    let events = fixture.events.len();
    assert_eq!(
        fixture.finish(3, "s1", guard),
        Ok(current_outcome(IntentSessionState::Ended, Some(IntentSessionEnd::Completed)))
    );
    assert_eq!(fixture.events.len(), events, "once");
}

#[test]
fn recording_requires_no_tuner_and_is_leased_by_second() {
    let mut fixture = IntentSessionFixture::default();
    let guard = fixture.acquire_leader_lock(0, "worker:1");
    for (name, start, key) in [("s1", 10_000, 1), ("s2", 10_500, 2), ("s3", 60_000, 3)] {
        fixture.accept(0, accept_recording(name, "film", start, key)).expect("accepted");
    }
    assert!(matches!(
        fixture.run_intent(0, take_command("s1", guard, 0)),
        Ok(IntentOutcome::Taken { slot: None, .. })
    ));
    assert_eq!(fixture.holder_of("recording:film:10").as_deref(), Some("s1"));
    assert_eq!(
        fixture.run_intent(0, take_command("s2", guard, 0)),
        Ok(current_outcome(IntentSessionState::Ended, Some(IntentSessionEnd::Busy)))
    );
    assert!(matches!(
        fixture.run_intent(0, take_command("s3", guard, 0)),
        Ok(IntentOutcome::Taken { slot: None, .. })
    ));
}

// S1-14, S1-21: a take that is repeated refreshes, and takes nothing twice.
#[test]
fn repeated_take_refreshes_the_leases() {
    let mut fixture = IntentSessionFixture::default();
    let guard = fixture.acquire_leader_lock(0, "worker:1");
    fixture.accept(0, accept_channel("s1", "ard", 1)).expect("accepted");
    let Ok(IntentOutcome::Taken { leases, slot, until }) = fixture.take(0, "s1", guard) else {
        panic!("taken")
    };
    assert_eq!(until, seconds(30));
    let again = IntentOutcome::Taken { leases, slot, until: seconds(35) };
    assert_eq!(fixture.take(5, "s1", guard), Ok(again));
    assert_eq!(fixture.state.lease_count(), 3, "guard, service and one tuner");
}

// O-11: a lost lease is never made anew, by no request.
#[test]
fn lost_lease_ends_the_session_for_every_request() {
    let lost = || Ok(current_outcome(IntentSessionState::Ended, Some(IntentSessionEnd::LeaseLost)));
    type Request = fn(&mut IntentSessionFixture, Fence) -> Result<IntentOutcome, Rejection>;
    let asks: [Request; 4] = [
        |fixture, guard| fixture.take(31, "s1", guard),
        |fixture, guard| fixture.start(31, "s1", guard),
        |fixture, guard| fixture.finish(31, "s1", guard),
        |fixture, _| fixture.stop(31, "s1"),
    ];
    for ask in asks {
        let mut fixture = IntentSessionFixture::default();
        let guard = fixture.acquire_leader_lock(0, "worker:1");
        fixture.accept(0, accept_channel("s1", "ard", 1)).expect("accepted");
        fixture.take(0, "s1", guard).expect("taken");
        fixture.keep_alive(20, guard, &[]).expect("the guard lives on");
        assert_eq!(ask(&mut fixture, guard), lost());
        assert_eq!((fixture.state_of("s1"), fixture.state.lease_count()), (LOST, 1));
    }
    assert_eq!(IntentSessionEnd::LeaseLost.reason(), "R_LEASE_EXPIRED");
}

#[test]
fn session_ends_in_the_decision_that_ends_its_lease() {
    let fence = |fixture: &IntentSessionFixture, name: &str| {
        let name = resource(name);
        fixture.state.leases_on_resource(&name).next().expect("held").fence
    };
    let by = || principal("admin");
    type End = Box<dyn Fn(&IntentSessionFixture) -> Command>;
    let ends: Vec<(u64, End)> = vec![
        (30, Box::new(|_| Command::Expire { max_ended: 100 })),
        (30, Box::new(|_| Command::Expire { max_ended: 1 })),
        (
            5,
            Box::new(move |fixture| Command::Revoke {
                lease: fence(fixture, "tuner:0"),
                cause: RevocationCause::Revoked,
                by: by(),
                detail: "".into(),
            }),
        ),
        (
            5,
            Box::new(move |fixture| Command::Release {
                lease: fence(fixture, "service:ard"),
                claim: LeaseCredential::Token,
                reason: tenure_core::lease::ReleaseReason::Voluntary,
            }),
        ),
        (5, Box::new(move |_| Command::Reclaim { holder: holder("s1"), by: by(), detail: "".into() })),
        (
            5,
            Box::new(move |fixture| Command::Transfer {
                lease: fence(fixture, "tuner:0"),
                claim: LeaseCredential::Token,
                to: holder("bob"),
                principal: by(),
                nonce: Nonce::default(),
            }),
        ),
        (30, Box::new(|_| plain_acquire("bob", "service:ard", ContentionPolicy::Deny))),
    ];
    for (at, end) in ends {
        let mut fixture = IntentSessionFixture::default();
        let guard = fixture.acquire_leader_lock(0, "worker:1");
        fixture.start_running(0, "s1", "ard", 1, guard);
        fixture.keep_alive(1, guard, &[]).expect("the guard lives on");
        let command = end(&fixture);
        fixture.run(at, &command);
        assert_eq!(fixture.state_of("s1"), LOST, "{command:?}");
        let own = |name: &str| fixture.holder_of(name).as_deref() == Some("s1");
        assert!(!own("service:ard") && !own("tuner:0"), "{command:?}");
    }
}

#[test]
fn downgrade_or_transfer_of_session_leases_is_rejected() {
    let mut fixture = IntentSessionFixture::default();
    let guard = fixture.acquire_leader_lock(0, "worker:1");
    fixture.start_running(0, "s1", "ard", 1, guard);
    let lease = fixture.state.leases_of_holder(&holder("s1")).next().expect("held").fence;
    let (claim, nonce) = (LeaseCredential::Token, Nonce::default());
    let change = ChangeMode { lease, credential: claim.clone(), mode: LeaseMode::Shared, nonce };
    let taken = CommandOutcome::Rejected(Rejection::HolderTaken { holder: holder("s1") });
    assert_eq!(fixture.run(1, &Command::Downgrade(change)), taken);
    let CommandOutcome::Granted { leases } =
        fixture.run(1, &plain_acquire("bob", "db", ContentionPolicy::Deny))
    else {
        panic!()
    };
    let to = Command::Transfer {
        lease: leases[0],
        claim,
        to: holder("s1"),
        principal: tenure_core::kernel::orchestrator_principal(),
        nonce,
    };
    assert_eq!(fixture.run(1, &to), taken);
    assert_eq!(fixture.state_of("s1").0, IntentSessionState::Running);
}

// S1-17, S1-20: without a tuner it is over, and what it had of its target is given back.
#[test]
fn session_without_a_free_tuner_ends() {
    let mut fixture = IntentSessionFixture::default();
    let guard = fixture.acquire_leader_lock(0, "worker:1");
    assert!(matches!(
        fixture.run(0, &plain_acquire("bob", "tuner:0", ContentionPolicy::Deny)),
        CommandOutcome::Granted { .. }
    ));
    fixture.accept(0, accept_channel("s1", "ard", 1)).expect("accepted");
    assert!(matches!(fixture.take(0, "s1", guard), Ok(IntentOutcome::Taken { slot: Some(1), .. })));
    fixture.accept(1, with_target_lease(accept_channel("s2", "zdf", 2))).expect("accepted");
    assert_eq!(
        fixture.take(1, "s2", guard),
        Ok(current_outcome(IntentSessionState::Ended, Some(IntentSessionEnd::NoTuner)))
    );
    assert_eq!(
        (fixture.state_of("s2"), fixture.holder_of("service:zdf")),
        (ended(IntentSessionEnd::NoTuner), None)
    );
    assert_eq!(IntentSessionEnd::NoTuner.outcome(), "REJECTED_NO_TUNER");
    fixture.accept(2, accept_channel("s3", "zdf", 2)).expect("accepted");
    assert_eq!(
        fixture.run_intent(2, take_command("s3", guard, 0)),
        Ok(current_outcome(IntentSessionState::Ended, Some(IntentSessionEnd::NoTuner)))
    );
    // Of two reasons the first: busy, whatever there is of tuners.
    fixture.accept(2, accept_channel("s4", "ard", 4)).expect("accepted");
    assert_eq!(
        fixture.run_intent(2, take_command("s4", guard, 0)),
        Ok(current_outcome(IntentSessionState::Ended, Some(IntentSessionEnd::Busy)))
    );
}

#[test]
fn tuner_of_an_ended_session_can_be_taken_in_the_same_decision() {
    let mut fixture = IntentSessionFixture::default();
    let guard = fixture.acquire_leader_lock(0, "worker:1");
    fixture.accept(0, with_target_lease(accept_channel("s1", "ard", 1))).expect("accepted");
    fixture.run_intent(0, take_command("s1", guard, 1)).expect("taken");
    // Its tuner outlives its target.
    let tuner = fixture.state.leases_on_resource(&resource("tuner:0")).next().expect("held").fence;
    fixture.run(20, &Command::Renew { lease: tuner, credential: LeaseCredential::Token, ttl: None });
    fixture.keep_alive(20, guard, &[]).expect("the guard lives on");
    fixture.accept(30, accept_channel("s2", "ard", 2)).expect("accepted");
    assert!(matches!(
        fixture.run_intent(30, take_command("s2", guard, 1)),
        Ok(IntentOutcome::Taken { slot: Some(0), .. })
    ));
    assert_eq!(fixture.state_of("s1"), LOST);
}

#[test]
fn plain_leases_make_the_target_busy() {
    let mut fixture = IntentSessionFixture::default();
    let guard = fixture.acquire_leader_lock(0, "worker:1");
    assert!(matches!(
        fixture.run(0, &plain_acquire("bob", "service:ard", ContentionPolicy::Deny)),
        CommandOutcome::Granted { .. }
    ));
    fixture.accept(0, accept_channel("s1", "ard", 1)).expect("accepted");
    assert_eq!(
        fixture.take(0, "s1", guard),
        Ok(current_outcome(IntentSessionState::Ended, Some(IntentSessionEnd::Busy)))
    );
    fixture.start_running(1, "s2", "zdf", 2, guard);
    for name in ["service:zdf", "tuner:0"] {
        assert!(matches!(
            fixture.run(2, &plain_acquire("kim", name, WAIT_60_SECONDS)),
            CommandOutcome::Queued { .. }
        ));
    }
    let decision = fixture
        .decide(3, &Command::Reclaim { holder: holder("s2"), by: principal("admin"), detail: "".into() });
    let served = decision.events.iter().filter(|event| matches!(event, Event::Issued(_))).count();
    assert_eq!((served, fixture.holder_of("service:zdf").as_deref()), (2, Some("kim")));
}

#[test]
fn session_stays_new_while_grants_are_blocked() {
    for busy in [false, true] {
        let mut fixture = IntentSessionFixture::default();
        let guard = fixture.acquire_leader_lock(0, "worker:1");
        if busy {
            fixture.start_running(0, "s0", "ard", 9, guard);
        }
        fixture.accept(0, accept_channel("s1", "ard", 1)).expect("accepted");
        fixture.state.set_admission_level(AdmissionLevel::Renewals);
        assert_eq!(fixture.take(1, "s1", guard), Err(Rejection::NoSpace));
        fixture.state.set_admission_level(AdmissionLevel::Everything);
        let (at, hold_until) = (seconds(1), seconds(5));
        let restored = Event::Restored { at, epoch: 2, fence: Fence(1 << 40), hold_until };
        fixture.state.apply(&restored).expect("a copy was put back");
        assert!(matches!(fixture.take(4, "s1", guard), Err(Rejection::RestoreHold { .. })));
        assert!(matches!(fixture.keep_alive(4, guard, &[]), Err(Rejection::RestoreHold { .. })));
        assert_eq!(fixture.state_of("s1").0, IntentSessionState::New);
        let taken = fixture.take(5, "s1", guard);
        assert_eq!(matches!(taken, Ok(IntentOutcome::Taken { .. })), !busy, "{taken:?}");
    }
}

#[test]
fn invalid_worker_request_does_not_end_a_session() {
    let mut fixture = IntentSessionFixture::default();
    let guard = fixture.acquire_leader_lock(0, "worker:1");
    fixture.accept(0, accept_channel("s1", "ard", 1)).expect("accepted");
    for slots in [65, u32::MAX] {
        let refused = fixture.run_intent(0, take_command("s1", guard, slots));
        assert!(matches!(refused, Err(Rejection::Invalid(input)) if input.field == "tuners"));
    }
    let IntentCommand::Take(mut short) = take_command("s1", guard, 0) else { unreachable!("it is a take") };
    short.ttl = TickDuration(1);
    assert!(matches!(
        fixture.run_intent(0, IntentCommand::Take(short)),
        Err(Rejection::TtlOutOfRange { .. })
    ));
    let many: Vec<Holder> = vec![holder("s1"); MAX_INTENT_SESSIONS_PER_COMMAND + 1];
    for command in [
        IntentCommand::KeepAlive { guard, ttl: TTL, sessions: many.clone() },
        IntentCommand::Wipe { guard, sessions: many },
    ] {
        let refused = fixture.run_intent(0, command);
        assert!(matches!(refused, Err(Rejection::Invalid(input)) if input.field == "sessions"));
    }
    let keep = IntentCommand::KeepAlive { guard, ttl: TickDuration(1), sessions: Vec::new() };
    assert!(matches!(fixture.run_intent(0, keep), Err(Rejection::TtlOutOfRange { .. })));
    for text in ["two\nlines", &"x".repeat(4_097)] {
        let run = IntentCommand::Run { session: holder("s1"), leader: guard, process: text.into() };
        assert!(matches!(fixture.run_intent(0, run), Err(Rejection::Invalid(_))));
        let (end, detail) = (IntentSessionEnd::Failed, text.into());
        let finish = IntentCommand::Finish { session: holder("s1"), guard, end, detail };
        assert!(matches!(fixture.run_intent(0, finish), Err(Rejection::Invalid(_))));
    }
    for unknown in [fixture.take(0, "x", guard), fixture.start(0, "x", guard), fixture.finish(0, "x", guard)]
    {
        assert_eq!(unknown, Err(Rejection::NoSuchSession));
    }
    assert_eq!(
        fixture.start(0, "s1", guard),
        Ok(current_outcome(IntentSessionState::New, None)),
        "it was never taken"
    );
    assert_eq!(fixture.finish(0, "s1", guard), Err(Rejection::LeaderLost), "nor carried out");
    assert_eq!(fixture.state_of("s1").0, IntentSessionState::New);
}

// O-11: what lives is kept, what is lost is said to be lost, and each once.
#[test]
fn keep_alive_renews_active_sessions_and_reports_lost_ones() {
    let mut fixture = IntentSessionFixture::default();
    let guard = fixture.acquire_leader_lock(0, "worker:1");
    fixture.start_running(0, "s1", "ard", 1, guard);
    fixture.accept(0, accept_channel("s3", "3sat", 3)).expect("accepted");
    fixture.start_running(5, "s2", "zdf", 2, guard);
    fixture.stop(6, "s2").expect("stopped");
    fixture.keep_alive(25, guard, &["s2"]).expect("kept");
    let answer = fixture.keep_alive(31, guard, &["s2", "s1", "s3", "s2", "x"]);
    let kept = kept_alive(61, IntentSessionState::Stopping);
    let sessions = vec![kept, KeepAliveOutcome::Lost, KeepAliveOutcome::Lost, kept, KeepAliveOutcome::Lost];
    assert_eq!(answer, Ok(IntentOutcome::KeptAlive { until: seconds(61), sessions }));
    assert_eq!(fixture.state_of("s1"), LOST);
    let events = fixture.events.len();
    fixture.keep_alive(31, guard, &["s2"]).expect("kept");
    assert_eq!(fixture.events.len(), events, "nothing is longer by it");
    fixture.state.set_admission_level(AdmissionLevel::Nothing);
    assert_eq!(fixture.keep_alive(32, guard, &["s2"]), Err(Rejection::NoSpace));
}

// O-12: whoever does not hold the guard, or not any more, does nothing as the worker.
#[test]
fn worker_requests_without_the_leader_lock_are_rejected() {
    let mut fixture = IntentSessionFixture::default();
    let first = fixture.acquire_leader_lock(0, "worker:1");
    fixture.start_running(0, "s1", "ard", 1, first);
    fixture.accept(0, accept_channel("s2", "zdf", 2)).expect("accepted");
    let other = fixture.state.leases_of_holder(&holder("s1")).next().expect("held").fence;
    let check = |fixture: &mut IntentSessionFixture, at: u64, fence: Fence| {
        let gone = Err(Rejection::LeaderLost);
        for session in ["s1", "s2"] {
            assert_eq!(fixture.take(at, session, fence), gone);
            assert_eq!(fixture.start(at, session, fence), gone);
            assert_eq!(fixture.finish(at, session, fence), gone);
            assert_eq!(fixture.keep_alive(at, fence, &[session]), gone);
            assert_eq!(fixture.wipe(at, fence, &[session]), gone);
        }
    };
    for fence in [Fence(0), other, Fence(99)] {
        check(&mut fixture, 1, fence);
    }
    // It is over at 30, announced or not; then somebody else has it.
    check(&mut fixture, 30, first);
    let second = fixture.acquire_leader_lock(30, "worker:2");
    check(&mut fixture, 30, first);
    assert!(second > first);

    // Held like a plain lease, or together with others, it is no guard.
    let mut fixture = IntentSessionFixture::default();
    let answer =
        fixture.run(0, &plain_acquire("bob", "system:orchestrator:guard_lock", ContentionPolicy::Deny));
    let CommandOutcome::Granted { leases } = answer else { panic!("{answer:?}") };
    assert_eq!(fixture.keep_alive(1, leases[0], &[]), Err(Rejection::LeaderLost));
    let mut fixture = IntentSessionFixture::default();
    let requests = vec![LeaseRequest::new(leader_lock_resource(), LeaseMode::Shared, TTL, Nonce::default())];
    let (principal, contention) = (tenure_core::kernel::orchestrator_principal(), ContentionPolicy::Deny);
    let shared =
        Acquire { principal, holder: holder("worker:1"), requests, contention_policy: contention, key: None };
    let CommandOutcome::Granted { leases } = fixture.run(0, &Command::Acquire(shared)) else {
        panic!("granted")
    };
    assert_eq!(fixture.keep_alive(1, leases[0], &[]), Err(Rejection::LeaderLost));
}

// O-12: only who holds the guard wipes, only what was another's, and only what it names.
#[test]
fn wipe_ends_sessions_of_the_previous_worker() {
    let mut fixture = IntentSessionFixture::default();
    let first = fixture.acquire_leader_lock(0, "worker:1");
    for (name, service, key) in [("s1", "ard", 1), ("s2", "zdf", 2)] {
        fixture.start_running(0, name, service, key, first);
    }
    fixture.accept(1, accept_channel("s3", "3sat", 3)).expect("accepted");
    let dead = Command::Reclaim { holder: holder("worker:1"), by: principal("admin"), detail: "".into() };
    fixture.run(2, &dead);
    let second = fixture.acquire_leader_lock(2, "worker:2");
    assert_eq!(fixture.take(2, "s1", second), Err(Rejection::LeaderLost), "nobody goes on with it");
    let wiped = |sessions| Ok(IntentOutcome::Wiped { sessions });
    assert_eq!(fixture.wipe(3, second, &["s1", "s3", "s1", "x"]), wiped(1));
    assert_eq!(fixture.state_of("s1"), ended(IntentSessionEnd::WorkerRestarted));
    assert_eq!((fixture.holder_of("service:ard"), fixture.state_of("s3").0), (None, IntentSessionState::New));
    assert_eq!(fixture.state_of("s2").0, IntentSessionState::Running, "it was not named");
    let revoked = |event: &&Event| matches!(event, Event::Revoked { cause: RevocationCause::Wiped, .. });
    assert_eq!(fixture.events.iter().filter(revoked).count(), 2);
    assert_eq!(fixture.wipe(3, second, &["s1"]), wiped(0), "once");
    fixture.start_running(3, "s4", "ard", 1, second);
    assert_eq!(fixture.wipe(4, second, &["s4"]), wiped(0), "it is its own");
    // What is over already is not over by this.
    fixture.keep_alive(20, second, &["s4"]).expect("kept");
    assert_eq!(fixture.wipe(30, second, &["s2"]), wiped(0));
    assert_eq!(fixture.state_of("s2"), LOST);
}

/// What people read is stored: it stays within its bounds, whatever others are called.
#[test]
fn busy_detail_is_bounded_for_long_holder_names() {
    let mut fixture = IntentSessionFixture::default();
    let guard = fixture.acquire_leader_lock(0, "worker:1");
    let (service, rival) = ("x".repeat(1_024), "y".repeat(4_096));
    let busy = plain_acquire(&rival, &format!("service:{service}"), ContentionPolicy::Deny);
    assert!(matches!(fixture.run(0, &busy), CommandOutcome::Granted { .. }));
    fixture.accept(0, accept_channel("s1", &service, 1)).expect("accepted");
    assert_eq!(
        fixture.take(0, "s1", guard),
        Ok(current_outcome(IntentSessionState::Ended, Some(IntentSessionEnd::Busy)))
    );
    let detail_length = |event: &Event| match event {
        Event::Intent(event) => match &**event {
            IntentEvent::Ended { detail, .. } => Some(detail.len()),
            _ => None,
        },
        _ => None,
    };
    assert!(fixture.events.iter().filter_map(detail_length).all(|length| length < 256));
    crate::checkpoint::round_trip::restore(&fixture.state);
}

#[test]
fn tuner_slot_accepts_only_canonical_names() {
    let parse = |name: &str| Resource::parse(name).expect("a name");
    assert_eq!(tuner_slot(&parse("tuner:7")), Some(7));
    for name in ["tuner:07", "tuner:+7", "tuner:", "tuner:x", "tuner:4294967296", "service:7"] {
        assert_eq!(tuner_slot(&parse(name)), None, "{name}");
    }
}
