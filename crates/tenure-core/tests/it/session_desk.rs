//! A kernel for sessions, and who asks it: those who want something, workers, and plain callers.

use tenure_core::kernel::{
    Accept, Acquire, Answer, Command, Contention, Decision, Event, Fence, Holder, Intent, IntentAnswer,
    IntentCommand, IntentKey, Limits, Mode, Nonce, Principal, Refusal, Resource, SessionEnd, SessionState,
    Span, State, Take, Target, Tick, Want, decide, guard, orchestrator,
};

pub const TTL: Span = Span::from_secs(30);

/// The state, and everything that happened to it.
#[derive(Default)]
pub struct Desk {
    pub state: State,
    pub events: Vec<Event>,
}

pub fn seconds(seconds: u64) -> Tick {
    Tick(seconds * 1_000_000)
}

pub fn holder(name: &str) -> Holder {
    Holder::parse(name).expect("a name")
}

pub fn resource(name: &str) -> Resource {
    Resource::parse(name).expect("a name")
}

pub fn principal(name: &str) -> Principal {
    Principal::parse(name).expect("a name")
}

/// Somebody wants a channel.
pub fn channel(session: &str, service: &str, key: u8) -> Accept {
    accept(session, Target::Service(service.into()), key)
}

/// Somebody wants a recording.
pub fn recording(session: &str, id: &str, start_ms: u64, key: u8) -> Accept {
    accept(session, Target::Recording { id: id.into(), start_ms }, key)
}

fn accept(session: &str, target: Target, key: u8) -> Accept {
    Accept {
        session: holder(session),
        intent: Intent { target, profile: "hd".into(), params: "".into(), correlation: "".into() },
        key: IntentKey([key; 32]),
        previous_key: None,
        principal: principal("token:a"),
        patience: Span::from_secs(300),
        lease: None,
    }
}

/// With the lease of its target first.
pub fn leased(accept: Accept) -> Accept {
    Accept { lease: Some((TTL, Nonce([9; 16]))), ..accept }
}

/// A plain request for a lease.
pub fn plain(who: &str, what: &str, contention: Contention) -> Command {
    let want = Want::new(resource(what), Mode::Exclusive, TTL, Nonce([5; 16]));
    let (holder, principal) = (holder(who), principal("token:b"));
    Command::Acquire(Acquire { principal, holder, wants: vec![want], contention, key: None })
}

pub const SECONDS_60: Contention = Contention::Queue { patience: Span::from_secs(60) };

impl Desk {
    pub fn with(limits: Limits) -> Self {
        Self { state: State::new(Default::default(), limits, Default::default()), events: Vec::new() }
    }

    /// Decides and records; whatever was decided applies, and nothing is broken by it.
    pub fn decide(&mut self, at: u64, command: &Command) -> Decision {
        let decision = decide(&self.state, command, seconds(at));
        for event in &decision.events {
            self.state.apply(event).unwrap_or_else(|misfit| panic!("{misfit}: {event:?}"));
        }
        self.state.check_invariants().unwrap_or_else(|wrong| panic!("{wrong} after {command:?}"));
        self.events.extend(decision.events.iter().cloned());
        decision
    }

    pub fn run(&mut self, at: u64, command: &Command) -> Answer {
        self.decide(at, command).answer
    }

    pub fn ask(&mut self, at: u64, command: IntentCommand) -> Result<IntentAnswer, Refusal> {
        match self.run(at, &Command::Intent(Box::new(command))) {
            Answer::Intent(answer) => Ok(*answer),
            Answer::Refused(refusal) => Err(refusal),
            answer => panic!("{answer:?}"),
        }
    }

    pub fn sweep(&mut self, at: u64) {
        self.run(at, &Command::Expire { most: 1_000 });
    }

    /// Somebody becomes the worker.
    pub fn guard(&mut self, at: u64, worker: &str) -> Fence {
        let want = Want::new(guard(), Mode::Exclusive, TTL, Nonce([7; 16]));
        let (principal, holder) = (orchestrator(), holder(worker));
        let contention = Contention::RefreshOwn;
        let acquire = Acquire { principal, holder, wants: vec![want], contention, key: None };
        match self.run(at, &Command::Acquire(acquire)) {
            Answer::Granted { leases } => leases[0],
            answer => panic!("{answer:?}"),
        }
    }

    pub fn accept(&mut self, at: u64, accept: Accept) -> Result<(Holder, bool), Refusal> {
        match self.ask(at, IntentCommand::Accept(accept))? {
            IntentAnswer::Accepted { session, is_new } => Ok((session, is_new)),
            answer => panic!("{answer:?}"),
        }
    }

    pub fn take(&mut self, at: u64, session: &str, guard: Fence) -> Result<IntentAnswer, Refusal> {
        self.ask(at, take(session, guard, 2))
    }

    pub fn start(&mut self, at: u64, session: &str, guard: Fence) -> Result<IntentAnswer, Refusal> {
        self.ask(at, IntentCommand::Run { session: holder(session), guard, process: "pid 1".into() })
    }

    /// Accepts, takes and runs a channel.
    pub fn running(&mut self, at: u64, session: &str, service: &str, key: u8, guard: Fence) {
        self.accept(at, channel(session, service, key)).expect("accepted");
        let taken = self.take(at, session, guard);
        assert!(matches!(taken, Ok(IntentAnswer::Taken { .. })), "{taken:?}");
        assert_eq!(self.start(at, session, guard), Ok(now(SessionState::Running, None)));
    }

    pub fn finish(&mut self, at: u64, session: &str, guard: Fence) -> Result<IntentAnswer, Refusal> {
        let (end, detail) = (SessionEnd::Completed, "".into());
        self.ask(at, IntentCommand::Finish { session: holder(session), guard, end, detail })
    }

    pub fn stop(&mut self, at: u64, session: &str) -> Result<IntentAnswer, Refusal> {
        self.ask(at, IntentCommand::Stop { session: holder(session), by: principal("token:a") })
    }

    pub fn keep(&mut self, at: u64, guard: Fence, sessions: &[&str]) -> Result<IntentAnswer, Refusal> {
        let sessions = sessions.iter().map(|session| holder(session)).collect();
        self.ask(at, IntentCommand::Keep { guard, ttl: TTL, sessions })
    }

    pub fn wipe(&mut self, at: u64, guard: Fence, sessions: &[&str]) -> Result<IntentAnswer, Refusal> {
        let sessions = sessions.iter().map(|session| holder(session)).collect();
        self.ask(at, IntentCommand::Wipe { guard, sessions })
    }

    /// Where a session is, and why it is over.
    pub fn of(&self, session: &str) -> (SessionState, Option<SessionEnd>) {
        let session = self.state.session(&holder(session)).expect("it is known");
        (session.state, session.end)
    }

    /// Who has a resource.
    pub fn has(&self, name: &str) -> Option<String> {
        let resource = resource(name);
        let mut leases = self.state.leases_on_resource(&resource);
        leases.next().map(|lease| lease.holder.to_string())
    }
}

pub fn take(session: &str, guard: Fence, slots: u32) -> IntentCommand {
    let nonces = [Nonce([1; 16]), Nonce([2; 16])];
    IntentCommand::Take(Take { session: holder(session), guard, slots, ttl: TTL, nonces })
}

pub fn now(state: SessionState, end: Option<SessionEnd>) -> IntentAnswer {
    IntentAnswer::Now { state, end }
}

pub const fn ended(end: SessionEnd) -> (SessionState, Option<SessionEnd>) {
    (SessionState::Ended, Some(end))
}
