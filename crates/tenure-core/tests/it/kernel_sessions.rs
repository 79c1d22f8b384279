//! What becomes of intents: sessions, their leases, and the one worker.

use std::sync::Arc;

use tenure_core::kernel::{
    Accept, Acquire, Answer, Command, Contention, Event, Fence, Holder, Intent, IntentAnswer, IntentCommand,
    IntentKey, Mode, Nonce, Refusal, SessionEnd, SessionState, Span, State, Take, Target, Tick, Want, decide,
    guard, orchestrator,
};

const TTL: Span = Span::from_secs(30);

fn seconds(seconds: u64) -> Tick {
    Tick(seconds * 1_000_000)
}

fn holder(name: &str) -> Holder {
    Holder::parse(name).expect("a name")
}

fn run(state: &mut State, at: u64, command: Command) -> Answer {
    let decision = decide(state, &command, seconds(at));
    for event in &decision.events {
        state.apply(event).expect("what was decided applies");
    }
    state.check_invariants().expect("invariants hold");
    decision.answer
}

fn intent(state: &mut State, at: u64, command: IntentCommand) -> Result<IntentAnswer, Refusal> {
    match run(state, at, Command::Intent(Box::new(command))) {
        Answer::Intent(answer) => Ok(*answer),
        Answer::Refused(refusal) => Err(refusal),
        answer => panic!("{answer:?}"),
    }
}

fn guard_lease(state: &mut State, at: u64, worker: &str) -> Fence {
    let want = Want {
        resource: guard(),
        others: Default::default(),
        mode: Mode::Exclusive,
        ttl: TTL,
        nonce: Nonce([7; 16]),
        labels: Default::default(),
    };
    let acquire = Acquire {
        principal: orchestrator(),
        holder: holder(worker),
        wants: vec![want],
        contention: Contention::RefreshOwn,
        key: None,
    };
    match run(state, at, Command::Acquire(acquire)) {
        Answer::Granted { leases } => leases[0],
        answer => panic!("{answer:?}"),
    }
}

fn accept(session: &str, service: &str, key: u8) -> Accept {
    Accept {
        session: holder(session),
        intent: Intent {
            target: Target::Service(service.into()),
            profile: "hd".into(),
            params: "".into(),
            correlation: "".into(),
        },
        key: IntentKey([key; 32]),
        previous_key: None,
        principal: tenure_core::kernel::Principal::parse("token:a").expect("a name"),
        patience: Span::from_secs(300),
        lease: None,
    }
}

fn take(session: &str, guard: Fence) -> IntentCommand {
    let nonces = [Nonce([1; 16]), Nonce([2; 16])];
    IntentCommand::Take(Take { session: holder(session), guard, slots: 2, ttl: TTL, nonces })
}

fn state_of(state: &State, session: &str) -> (SessionState, Option<SessionEnd>) {
    let session = state.session(&holder(session)).expect("it is known");
    (session.state, session.end)
}

#[test]
fn a_session_goes_from_new_to_its_end_and_gives_back_what_it_held() {
    let mut state = State::default();
    let guard = guard_lease(&mut state, 0, "worker:1");
    let accepted = intent(&mut state, 1, IntentCommand::Accept(accept("s1", "ard", 1)));
    assert_eq!(accepted, Ok(IntentAnswer::Accepted { session: holder("s1"), is_new: true }));
    let taken = intent(&mut state, 1, take("s1", guard));
    assert!(matches!(taken, Ok(IntentAnswer::Taken { slot: Some(0), .. })), "{taken:?}");
    let process: Arc<str> = "pid 1".into();
    intent(&mut state, 1, IntentCommand::Run { session: holder("s1"), guard, process }).expect("runs");
    assert_eq!(state_of(&state, "s1"), (SessionState::Running, None));
    assert_eq!(state.live_leases(), 3, "guard, service and tuner");
    let finish =
        IntentCommand::Finish { session: holder("s1"), guard, end: SessionEnd::Completed, detail: "".into() };
    intent(&mut state, 2, finish).expect("ends");
    assert_eq!(state_of(&state, "s1"), (SessionState::Ended, Some(SessionEnd::Completed)));
    assert_eq!(state.live_leases(), 1);
}

#[test]
fn a_session_whose_lease_runs_out_ends_in_the_same_decision() {
    let mut state = State::default();
    let guard = guard_lease(&mut state, 0, "worker:1");
    intent(&mut state, 0, IntentCommand::Accept(accept("s1", "ard", 1))).expect("accepted");
    intent(&mut state, 0, take("s1", guard)).expect("taken");
    let decision = decide(&state, &Command::Expire { most: 100 }, seconds(30));
    let ends = decision.events.iter().filter(|event| matches!(event, Event::Intent(_))).count();
    assert_eq!(ends, 1);
    run(&mut state, 30, Command::Expire { most: 100 });
    assert_eq!(state_of(&state, "s1"), (SessionState::Ended, Some(SessionEnd::LeaseLost)));
}
