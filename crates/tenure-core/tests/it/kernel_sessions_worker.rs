//! What the one worker does with sessions: their leases, their pipelines, and what another one left behind.

use tenure_core::kernel::{
    Acquire, Answer, Cause, ChangeMode, Claim, Command, Contention, Event, Fence, Granting, Holder,
    IntentAnswer, IntentCommand, IntentEvent, Kept, Mode, Nonce, Refusal, Resource, SESSIONS_AT_ONCE,
    SessionEnd, SessionState, Span, Want, guard, slot_of,
};

use crate::session_desk::{
    Desk, SECONDS_60, TTL, channel, ended, holder, leased, now, plain, principal, recording, resource,
    seconds, take,
};

const LOST: (SessionState, Option<SessionEnd>) = ended(SessionEnd::LeaseLost);

fn kept(seconds_from_start: u64, state: SessionState) -> Kept {
    Kept::Until { until: seconds(seconds_from_start), state }
}

// S1-13, S1-16, S1-48: first the target, then a tuner, by the names that `Target` and `tuner` give and nobody else.
#[test]
fn session_lifecycle_acquires_and_releases_its_leases() {
    let mut desk = Desk::default();
    let guard = desk.guard(0, "worker:1");
    desk.accept(1, channel("s1", "ard", 1)).expect("accepted");
    desk.take(1, "s1", guard).expect("taken");
    let issued = |event: &Event| match event {
        Event::Issued(issued) if issued.holder == holder("s1") => Some(issued.resource.to_string()),
        _ => None,
    };
    let leases: Vec<_> = desk.events.iter().filter_map(issued).collect();
    assert_eq!(leases, ["service:ard", "tuner:0"]);
    assert_eq!(desk.of("s1"), (SessionState::Starting, None));
    assert_eq!(desk.start(1, "s1", guard), Ok(now(SessionState::Running, None)));
    let session = desk.state.session(&holder("s1")).expect("known");
    assert_eq!((session.slot, &*session.process), (Some(0), "pid 1"));
    assert_eq!(session.worker, Some((holder("worker:1"), guard)));
    // S1-20: what is over holds nothing.
    assert_eq!(desk.finish(2, "s1", guard), Ok(now(SessionState::Ended, Some(SessionEnd::Completed))));
    assert_eq!((desk.has("service:ard"), desk.has("tuner:0")), (None, None));
    let events = desk.events.len();
    assert_eq!(desk.finish(3, "s1", guard), Ok(now(SessionState::Ended, Some(SessionEnd::Completed))));
    assert_eq!(desk.events.len(), events, "once");
}

#[test]
fn recording_requires_no_tuner_and_is_leased_by_second() {
    let mut desk = Desk::default();
    let guard = desk.guard(0, "worker:1");
    for (name, start, key) in [("s1", 10_000, 1), ("s2", 10_500, 2), ("s3", 60_000, 3)] {
        desk.accept(0, recording(name, "film", start, key)).expect("accepted");
    }
    assert!(matches!(desk.ask(0, take("s1", guard, 0)), Ok(IntentAnswer::Taken { slot: None, .. })));
    assert_eq!(desk.has("recording:film:10").as_deref(), Some("s1"));
    assert_eq!(desk.ask(0, take("s2", guard, 0)), Ok(now(SessionState::Ended, Some(SessionEnd::Busy))));
    assert!(matches!(desk.ask(0, take("s3", guard, 0)), Ok(IntentAnswer::Taken { slot: None, .. })));
}

// S1-14, S1-21: a take that is repeated refreshes, and takes nothing twice.
#[test]
fn repeated_take_refreshes_the_leases() {
    let mut desk = Desk::default();
    let guard = desk.guard(0, "worker:1");
    desk.accept(0, channel("s1", "ard", 1)).expect("accepted");
    let Ok(IntentAnswer::Taken { leases, slot, until }) = desk.take(0, "s1", guard) else { panic!("taken") };
    assert_eq!(until, seconds(30));
    let again = IntentAnswer::Taken { leases, slot, until: seconds(35) };
    assert_eq!(desk.take(5, "s1", guard), Ok(again));
    assert_eq!(desk.state.live_leases(), 3, "guard, service and one tuner");
}

// O-11: a lost lease is never made anew, by no request.
#[test]
fn lost_lease_ends_the_session_for_every_request() {
    let lost = || Ok(now(SessionState::Ended, Some(SessionEnd::LeaseLost)));
    type Asked = fn(&mut Desk, Fence) -> Result<IntentAnswer, Refusal>;
    let asks: [Asked; 4] = [
        |desk, guard| desk.take(31, "s1", guard),
        |desk, guard| desk.start(31, "s1", guard),
        |desk, guard| desk.finish(31, "s1", guard),
        |desk, _| desk.stop(31, "s1"),
    ];
    for ask in asks {
        let mut desk = Desk::default();
        let guard = desk.guard(0, "worker:1");
        desk.accept(0, channel("s1", "ard", 1)).expect("accepted");
        desk.take(0, "s1", guard).expect("taken");
        desk.keep(20, guard, &[]).expect("the guard lives on");
        assert_eq!(ask(&mut desk, guard), lost());
        assert_eq!((desk.of("s1"), desk.state.live_leases()), (LOST, 1));
    }
    assert_eq!(SessionEnd::LeaseLost.reason(), "R_LEASE_EXPIRED");
}

#[test]
fn session_ends_in_the_decision_that_ends_its_lease() {
    let fence = |desk: &Desk, name: &str| {
        let name = resource(name);
        desk.state.leases_on_resource(&name).next().expect("held").fence
    };
    let by = || principal("admin");
    type End = Box<dyn Fn(&Desk) -> Command>;
    let ends: Vec<(u64, End)> = vec![
        (30, Box::new(|_| Command::Expire { most: 100 })),
        (30, Box::new(|_| Command::Expire { most: 1 })),
        (
            5,
            Box::new(move |desk| Command::Revoke {
                lease: fence(desk, "tuner:0"),
                cause: Cause::Revoked,
                by: by(),
                detail: "".into(),
            }),
        ),
        (
            5,
            Box::new(move |desk| Command::Release {
                lease: fence(desk, "service:ard"),
                claim: Claim::Token,
                reason: tenure_core::lease::ReleaseReason::Voluntary,
            }),
        ),
        (5, Box::new(move |_| Command::Reclaim { holder: holder("s1"), by: by(), detail: "".into() })),
        (
            5,
            Box::new(move |desk| Command::Transfer {
                lease: fence(desk, "tuner:0"),
                claim: Claim::Token,
                to: holder("bob"),
                principal: by(),
                nonce: Nonce::default(),
            }),
        ),
        (30, Box::new(|_| plain("bob", "service:ard", Contention::Refuse))),
    ];
    for (at, end) in ends {
        let mut desk = Desk::default();
        let guard = desk.guard(0, "worker:1");
        desk.running(0, "s1", "ard", 1, guard);
        desk.keep(1, guard, &[]).expect("the guard lives on");
        let command = end(&desk);
        desk.run(at, &command);
        assert_eq!(desk.of("s1"), LOST, "{command:?}");
        let own = |name: &str| desk.has(name).as_deref() == Some("s1");
        assert!(!own("service:ard") && !own("tuner:0"), "{command:?}");
    }
}

#[test]
fn downgrade_or_transfer_of_session_leases_is_rejected() {
    let mut desk = Desk::default();
    let guard = desk.guard(0, "worker:1");
    desk.running(0, "s1", "ard", 1, guard);
    let lease = desk.state.leases_of_holder(&holder("s1")).next().expect("held").fence;
    let (claim, nonce) = (Claim::Token, Nonce::default());
    let change = ChangeMode { lease, claim: claim.clone(), mode: Mode::Shared, nonce };
    let taken = Answer::Refused(Refusal::HolderTaken { holder: holder("s1") });
    assert_eq!(desk.run(1, &Command::Downgrade(change)), taken);
    let Answer::Granted { leases } = desk.run(1, &plain("bob", "db", Contention::Refuse)) else { panic!() };
    let to = Command::Transfer {
        lease: leases[0],
        claim,
        to: holder("s1"),
        principal: tenure_core::kernel::orchestrator(),
        nonce,
    };
    assert_eq!(desk.run(1, &to), taken);
    assert_eq!(desk.of("s1").0, SessionState::Running);
}

// S1-17, S1-20: without a tuner it is over, and what it had of its target is given back.
#[test]
fn session_without_a_free_tuner_ends() {
    let mut desk = Desk::default();
    let guard = desk.guard(0, "worker:1");
    assert!(matches!(desk.run(0, &plain("bob", "tuner:0", Contention::Refuse)), Answer::Granted { .. }));
    desk.accept(0, channel("s1", "ard", 1)).expect("accepted");
    assert!(matches!(desk.take(0, "s1", guard), Ok(IntentAnswer::Taken { slot: Some(1), .. })));
    desk.accept(1, leased(channel("s2", "zdf", 2))).expect("accepted");
    assert_eq!(desk.take(1, "s2", guard), Ok(now(SessionState::Ended, Some(SessionEnd::NoTuner))));
    assert_eq!((desk.of("s2"), desk.has("service:zdf")), (ended(SessionEnd::NoTuner), None));
    assert_eq!(SessionEnd::NoTuner.outcome(), "REJECTED_NO_TUNER");
    desk.accept(2, channel("s3", "zdf", 2)).expect("accepted");
    assert_eq!(desk.ask(2, take("s3", guard, 0)), Ok(now(SessionState::Ended, Some(SessionEnd::NoTuner))));
    // Of two reasons the first: busy, whatever there is of tuners.
    desk.accept(2, channel("s4", "ard", 4)).expect("accepted");
    assert_eq!(desk.ask(2, take("s4", guard, 0)), Ok(now(SessionState::Ended, Some(SessionEnd::Busy))));
}

#[test]
fn tuner_of_an_ended_session_can_be_taken_in_the_same_decision() {
    let mut desk = Desk::default();
    let guard = desk.guard(0, "worker:1");
    desk.accept(0, leased(channel("s1", "ard", 1))).expect("accepted");
    desk.ask(0, take("s1", guard, 1)).expect("taken");
    // Its tuner outlives its target.
    let tuner = desk.state.leases_on_resource(&resource("tuner:0")).next().expect("held").fence;
    desk.run(20, &Command::Renew { lease: tuner, claim: Claim::Token, ttl: None });
    desk.keep(20, guard, &[]).expect("the guard lives on");
    desk.accept(30, channel("s2", "ard", 2)).expect("accepted");
    assert!(matches!(desk.ask(30, take("s2", guard, 1)), Ok(IntentAnswer::Taken { slot: Some(0), .. })));
    assert_eq!(desk.of("s1"), LOST);
}

#[test]
fn plain_leases_make_the_target_busy() {
    let mut desk = Desk::default();
    let guard = desk.guard(0, "worker:1");
    assert!(matches!(desk.run(0, &plain("bob", "service:ard", Contention::Refuse)), Answer::Granted { .. }));
    desk.accept(0, channel("s1", "ard", 1)).expect("accepted");
    assert_eq!(desk.take(0, "s1", guard), Ok(now(SessionState::Ended, Some(SessionEnd::Busy))));
    desk.running(1, "s2", "zdf", 2, guard);
    for name in ["service:zdf", "tuner:0"] {
        assert!(matches!(desk.run(2, &plain("kim", name, SECONDS_60)), Answer::Queued { .. }));
    }
    let decision =
        desk.decide(3, &Command::Reclaim { holder: holder("s2"), by: principal("admin"), detail: "".into() });
    let served = decision.events.iter().filter(|event| matches!(event, Event::Issued(_))).count();
    assert_eq!((served, desk.has("service:zdf").as_deref()), (2, Some("kim")));
}

#[test]
fn session_stays_new_while_grants_are_blocked() {
    for busy in [false, true] {
        let mut desk = Desk::default();
        let guard = desk.guard(0, "worker:1");
        if busy {
            desk.running(0, "s0", "ard", 9, guard);
        }
        desk.accept(0, channel("s1", "ard", 1)).expect("accepted");
        desk.state.set_granting(Granting::Renewals);
        assert_eq!(desk.take(1, "s1", guard), Err(Refusal::NoSpace));
        desk.state.set_granting(Granting::Everything);
        let (at, hold_until) = (seconds(1), seconds(5));
        let restored = Event::Restored { at, epoch: 2, fence: Fence(1 << 40), hold_until };
        desk.state.apply(&restored).expect("a copy was put back");
        assert!(matches!(desk.take(4, "s1", guard), Err(Refusal::HeldBack { .. })));
        assert!(matches!(desk.keep(4, guard, &[]), Err(Refusal::HeldBack { .. })));
        assert_eq!(desk.of("s1").0, SessionState::New);
        let taken = desk.take(5, "s1", guard);
        assert_eq!(matches!(taken, Ok(IntentAnswer::Taken { .. })), !busy, "{taken:?}");
    }
}

#[test]
fn invalid_worker_request_does_not_end_a_session() {
    let mut desk = Desk::default();
    let guard = desk.guard(0, "worker:1");
    desk.accept(0, channel("s1", "ard", 1)).expect("accepted");
    for slots in [65, u32::MAX] {
        let refused = desk.ask(0, take("s1", guard, slots));
        assert!(matches!(refused, Err(Refusal::Invalid(input)) if input.field == "tuners"));
    }
    let IntentCommand::Take(mut short) = take("s1", guard, 0) else { unreachable!("it is a take") };
    short.ttl = Span(1);
    assert!(matches!(desk.ask(0, IntentCommand::Take(short)), Err(Refusal::TtlOutOfRange { .. })));
    let many: Vec<Holder> = vec![holder("s1"); SESSIONS_AT_ONCE + 1];
    for command in [
        IntentCommand::Keep { guard, ttl: TTL, sessions: many.clone() },
        IntentCommand::Wipe { guard, sessions: many },
    ] {
        let refused = desk.ask(0, command);
        assert!(matches!(refused, Err(Refusal::Invalid(input)) if input.field == "sessions"));
    }
    let keep = IntentCommand::Keep { guard, ttl: Span(1), sessions: Vec::new() };
    assert!(matches!(desk.ask(0, keep), Err(Refusal::TtlOutOfRange { .. })));
    for text in ["two\nlines", &"x".repeat(4_097)] {
        let run = IntentCommand::Run { session: holder("s1"), guard, process: text.into() };
        assert!(matches!(desk.ask(0, run), Err(Refusal::Invalid(_))));
        let (end, detail) = (SessionEnd::Failed, text.into());
        let finish = IntentCommand::Finish { session: holder("s1"), guard, end, detail };
        assert!(matches!(desk.ask(0, finish), Err(Refusal::Invalid(_))));
    }
    for unknown in [desk.take(0, "x", guard), desk.start(0, "x", guard), desk.finish(0, "x", guard)] {
        assert_eq!(unknown, Err(Refusal::NoSuchSession));
    }
    assert_eq!(desk.start(0, "s1", guard), Ok(now(SessionState::New, None)), "it was never taken");
    assert_eq!(desk.finish(0, "s1", guard), Err(Refusal::GuardLost), "nor carried out");
    assert_eq!(desk.of("s1").0, SessionState::New);
}

// O-11: what lives is kept, what is lost is said to be lost, and each once.
#[test]
fn keep_alive_renews_active_sessions_and_reports_lost_ones() {
    let mut desk = Desk::default();
    let guard = desk.guard(0, "worker:1");
    desk.running(0, "s1", "ard", 1, guard);
    desk.accept(0, channel("s3", "3sat", 3)).expect("accepted");
    desk.running(5, "s2", "zdf", 2, guard);
    desk.stop(6, "s2").expect("stopped");
    desk.keep(25, guard, &["s2"]).expect("kept");
    let answer = desk.keep(31, guard, &["s2", "s1", "s3", "s2", "x"]);
    let stopping = kept(61, SessionState::Stopping);
    let sessions = vec![stopping, Kept::Lost, Kept::Lost, stopping, Kept::Lost];
    assert_eq!(answer, Ok(IntentAnswer::Kept { until: seconds(61), sessions }));
    assert_eq!(desk.of("s1"), LOST);
    let events = desk.events.len();
    desk.keep(31, guard, &["s2"]).expect("kept");
    assert_eq!(desk.events.len(), events, "nothing is longer by it");
    desk.state.set_granting(Granting::Nothing);
    assert_eq!(desk.keep(32, guard, &["s2"]), Err(Refusal::NoSpace));
}

// O-12: whoever does not hold the guard, or not any more, does nothing as the worker.
#[test]
fn worker_requests_without_the_leader_lock_are_rejected() {
    let mut desk = Desk::default();
    let first = desk.guard(0, "worker:1");
    desk.running(0, "s1", "ard", 1, first);
    desk.accept(0, channel("s2", "zdf", 2)).expect("accepted");
    let other = desk.state.leases_of_holder(&holder("s1")).next().expect("held").fence;
    let check = |desk: &mut Desk, at: u64, fence: Fence| {
        let gone = Err(Refusal::GuardLost);
        for session in ["s1", "s2"] {
            assert_eq!(desk.take(at, session, fence), gone);
            assert_eq!(desk.start(at, session, fence), gone);
            assert_eq!(desk.finish(at, session, fence), gone);
            assert_eq!(desk.keep(at, fence, &[session]), gone);
            assert_eq!(desk.wipe(at, fence, &[session]), gone);
        }
    };
    for fence in [Fence(0), other, Fence(99)] {
        check(&mut desk, 1, fence);
    }
    // It is over at 30, announced or not; then somebody else has it.
    check(&mut desk, 30, first);
    let second = desk.guard(30, "worker:2");
    check(&mut desk, 30, first);
    assert!(second > first);

    // Held like a plain lease, or together with others, it is no guard.
    let mut desk = Desk::default();
    let answer = desk.run(0, &plain("bob", "system:orchestrator:guard_lock", Contention::Refuse));
    let Answer::Granted { leases } = answer else { panic!("{answer:?}") };
    assert_eq!(desk.keep(1, leases[0], &[]), Err(Refusal::GuardLost));
    let mut desk = Desk::default();
    let wants = vec![Want::new(guard(), Mode::Shared, TTL, Nonce::default())];
    let (principal, contention) = (tenure_core::kernel::orchestrator(), Contention::Refuse);
    let shared = Acquire { principal, holder: holder("worker:1"), wants, contention, key: None };
    let Answer::Granted { leases } = desk.run(0, &Command::Acquire(shared)) else { panic!("granted") };
    assert_eq!(desk.keep(1, leases[0], &[]), Err(Refusal::GuardLost));
}

// O-12: only who holds the guard wipes, only what was another's, and only what it names.
#[test]
fn wipe_ends_sessions_of_the_previous_worker() {
    let mut desk = Desk::default();
    let first = desk.guard(0, "worker:1");
    for (name, service, key) in [("s1", "ard", 1), ("s2", "zdf", 2)] {
        desk.running(0, name, service, key, first);
    }
    desk.accept(1, channel("s3", "3sat", 3)).expect("accepted");
    let dead = Command::Reclaim { holder: holder("worker:1"), by: principal("admin"), detail: "".into() };
    desk.run(2, &dead);
    let second = desk.guard(2, "worker:2");
    assert_eq!(desk.take(2, "s1", second), Err(Refusal::GuardLost), "nobody goes on with it");
    let wiped = |sessions| Ok(IntentAnswer::Wiped { sessions });
    assert_eq!(desk.wipe(3, second, &["s1", "s3", "s1", "x"]), wiped(1));
    assert_eq!(desk.of("s1"), ended(SessionEnd::WorkerRestarted));
    assert_eq!((desk.has("service:ard"), desk.of("s3").0), (None, SessionState::New));
    assert_eq!(desk.of("s2").0, SessionState::Running, "it was not named");
    let revoked = |event: &&Event| matches!(event, Event::Revoked { cause: Cause::Wiped, .. });
    assert_eq!(desk.events.iter().filter(revoked).count(), 2);
    assert_eq!(desk.wipe(3, second, &["s1"]), wiped(0), "once");
    desk.running(3, "s4", "ard", 1, second);
    assert_eq!(desk.wipe(4, second, &["s4"]), wiped(0), "it is its own");
    // What is over already is not over by this.
    desk.keep(20, second, &["s4"]).expect("kept");
    assert_eq!(desk.wipe(30, second, &["s2"]), wiped(0));
    assert_eq!(desk.of("s2"), LOST);
}

/// What people read is stored: it stays within its bounds, whatever others are called.
#[test]
fn busy_detail_is_bounded_for_long_holder_names() {
    let mut desk = Desk::default();
    let guard = desk.guard(0, "worker:1");
    let (service, rival) = ("x".repeat(1_024), "y".repeat(4_096));
    let busy = plain(&rival, &format!("service:{service}"), Contention::Refuse);
    assert!(matches!(desk.run(0, &busy), Answer::Granted { .. }));
    desk.accept(0, channel("s1", &service, 1)).expect("accepted");
    assert_eq!(desk.take(0, "s1", guard), Ok(now(SessionState::Ended, Some(SessionEnd::Busy))));
    let told = |event: &Event| match event {
        Event::Intent(event) => match &**event {
            IntentEvent::Ended { detail, .. } => Some(detail.len()),
            _ => None,
        },
        _ => None,
    };
    assert!(desk.events.iter().filter_map(told).all(|length| length < 256));
    crate::kernel_bytes::restore(&desk.state);
}

#[test]
fn tuner_slot_accepts_only_canonical_names() {
    let parse = |name: &str| Resource::parse(name).expect("a name");
    assert_eq!(slot_of(&parse("tuner:7")), Some(7));
    for name in ["tuner:07", "tuner:+7", "tuner:", "tuner:x", "tuner:4294967296", "service:7"] {
        assert_eq!(slot_of(&parse(name)), None, "{name}");
    }
}
