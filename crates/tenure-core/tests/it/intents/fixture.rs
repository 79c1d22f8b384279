//! A kernel for sessions, and who asks it: those who want something, workers, and plain callers.

use tenure_core::kernel::{
    AcceptIntent, Acquire, Command, CommandOutcome, ContentionPolicy, Decision, Event, Fence, Holder, Intent,
    IntentCommand, IntentKey, IntentOutcome, IntentSessionEnd, IntentSessionState, IntentTarget, KernelState,
    LeaseMode, LeaseRequest, Limits, Nonce, Principal, Rejection, Resource, TakeIntentSession, Tick,
    TickDuration, decide, leader_lock_resource, orchestrator_principal,
};

pub const TTL: TickDuration = TickDuration::from_secs(30);

/// The state, and everything that happened to it.
#[derive(Default)]
pub struct IntentSessionFixture {
    pub state: KernelState,
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
pub fn accept_channel(session: &str, service: &str, key: u8) -> AcceptIntent {
    accept_intent(session, IntentTarget::Service(service.into()), key)
}

/// Somebody wants a recording.
pub fn accept_recording(session: &str, id: &str, start_ms: u64, key: u8) -> AcceptIntent {
    accept_intent(session, IntentTarget::Recording { id: id.into(), start_ms }, key)
}

fn accept_intent(session: &str, target: IntentTarget, key: u8) -> AcceptIntent {
    AcceptIntent {
        session: holder(session),
        intent: Intent { target, profile: "hd".into(), params: "".into(), correlation: "".into() },
        key: IntentKey([key; 32]),
        previous_key: None,
        principal: principal("token:a"),
        wait_timeout: TickDuration::from_secs(300),
        lease: None,
    }
}

/// With the lease of its target first.
pub fn with_target_lease(accept: AcceptIntent) -> AcceptIntent {
    AcceptIntent { lease: Some((TTL, Nonce([9; 16]))), ..accept }
}

/// A plain request for a lease.
pub fn plain_acquire(name: &str, what: &str, contention: ContentionPolicy) -> Command {
    let request = LeaseRequest::new(resource(what), LeaseMode::Exclusive, TTL, Nonce([5; 16]));
    let (holder, principal) = (holder(name), principal("token:b"));
    Command::Acquire(Acquire {
        principal,
        holder,
        requests: vec![request],
        contention_policy: contention,
        key: None,
    })
}

pub const WAIT_60_SECONDS: ContentionPolicy =
    ContentionPolicy::Queue { wait_timeout: TickDuration::from_secs(60) };

impl IntentSessionFixture {
    pub fn with_limits(limits: Limits) -> Self {
        Self { state: KernelState::new(Default::default(), limits, Default::default()), events: Vec::new() }
    }

    /// Decides and records; whatever was decided applies, and nothing is broken by it.
    pub fn decide(&mut self, at: u64, command: &Command) -> Decision {
        let decision = decide(&self.state, command, seconds(at));
        for event in &decision.events {
            self.state.apply(event).unwrap_or_else(|error| panic!("{error}: {event:?}"));
        }
        self.state.check_invariants().unwrap_or_else(|wrong| panic!("{wrong} after {command:?}"));
        self.events.extend(decision.events.iter().cloned());
        decision
    }

    pub fn run(&mut self, at: u64, command: &Command) -> CommandOutcome {
        self.decide(at, command).outcome
    }

    pub fn run_intent(&mut self, at: u64, command: IntentCommand) -> Result<IntentOutcome, Rejection> {
        match self.run(at, &Command::Intent(Box::new(command))) {
            CommandOutcome::Intent(answer) => Ok(*answer),
            CommandOutcome::Rejected(rejection) => Err(rejection),
            answer => panic!("{answer:?}"),
        }
    }

    pub fn sweep(&mut self, at: u64) {
        self.run(at, &Command::Expire { max_ended: 1_000 });
    }

    /// Somebody becomes the worker.
    pub fn acquire_leader_lock(&mut self, at: u64, worker: &str) -> Fence {
        let request = LeaseRequest::new(leader_lock_resource(), LeaseMode::Exclusive, TTL, Nonce([7; 16]));
        let (principal, holder) = (orchestrator_principal(), holder(worker));
        let contention = ContentionPolicy::RefreshOwn;
        let acquire =
            Acquire { principal, holder, requests: vec![request], contention_policy: contention, key: None };
        match self.run(at, &Command::Acquire(acquire)) {
            CommandOutcome::Granted { leases } => leases[0],
            answer => panic!("{answer:?}"),
        }
    }

    pub fn accept(&mut self, at: u64, accept: AcceptIntent) -> Result<(Holder, bool), Rejection> {
        match self.run_intent(at, IntentCommand::Accept(accept))? {
            IntentOutcome::Accepted { session, is_new } => Ok((session, is_new)),
            answer => panic!("{answer:?}"),
        }
    }

    pub fn take(&mut self, at: u64, session: &str, guard: Fence) -> Result<IntentOutcome, Rejection> {
        self.run_intent(at, take_command(session, guard, 2))
    }

    pub fn start(&mut self, at: u64, session: &str, guard: Fence) -> Result<IntentOutcome, Rejection> {
        self.run_intent(
            at,
            IntentCommand::Run { session: holder(session), leader: guard, process: "pid 1".into() },
        )
    }

    /// Accepts, takes and runs a channel.
    pub fn start_running(&mut self, at: u64, session: &str, service: &str, key: u8, guard: Fence) {
        self.accept(at, accept_channel(session, service, key)).expect("accepted");
        let taken = self.take(at, session, guard);
        assert!(matches!(taken, Ok(IntentOutcome::Taken { .. })), "{taken:?}");
        assert_eq!(self.start(at, session, guard), Ok(current_outcome(IntentSessionState::Running, None)));
    }

    pub fn finish(&mut self, at: u64, session: &str, guard: Fence) -> Result<IntentOutcome, Rejection> {
        let (end, detail) = (IntentSessionEnd::Completed, "".into());
        self.run_intent(at, IntentCommand::Finish { session: holder(session), guard, end, detail })
    }

    pub fn stop(&mut self, at: u64, session: &str) -> Result<IntentOutcome, Rejection> {
        self.run_intent(at, IntentCommand::Stop { session: holder(session), by: principal("token:a") })
    }

    pub fn keep_alive(
        &mut self,
        at: u64,
        guard: Fence,
        sessions: &[&str],
    ) -> Result<IntentOutcome, Rejection> {
        let sessions = sessions.iter().map(|session| holder(session)).collect();
        self.run_intent(at, IntentCommand::KeepAlive { guard, ttl: TTL, sessions })
    }

    pub fn wipe(&mut self, at: u64, guard: Fence, sessions: &[&str]) -> Result<IntentOutcome, Rejection> {
        let sessions = sessions.iter().map(|session| holder(session)).collect();
        self.run_intent(at, IntentCommand::Wipe { guard, sessions })
    }

    /// Where a session is, and why it is over.
    pub fn state_of(&self, session: &str) -> (IntentSessionState, Option<IntentSessionEnd>) {
        let session = self.state.intent_session(&holder(session)).expect("it is known");
        (session.state, session.end)
    }

    /// Who has a resource.
    pub fn holder_of(&self, name: &str) -> Option<String> {
        let resource = resource(name);
        let mut leases = self.state.leases_on_resource(&resource);
        leases.next().map(|lease| lease.holder.to_string())
    }
}

pub fn take_command(session: &str, guard: Fence, slots: u32) -> IntentCommand {
    let nonces = [Nonce([1; 16]), Nonce([2; 16])];
    IntentCommand::Take(TakeIntentSession {
        session: holder(session),
        leader: guard,
        slots,
        ttl: TTL,
        nonces,
    })
}

pub fn current_outcome(state: IntentSessionState, end: Option<IntentSessionEnd>) -> IntentOutcome {
    IntentOutcome::Current { state, end }
}

pub const fn ended(end: IntentSessionEnd) -> (IntentSessionState, Option<IntentSessionEnd>) {
    (IntentSessionState::Ended, Some(end))
}
