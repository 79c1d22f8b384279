//! An agent: it declares what it is about to touch, waits, dies and comes back, works, and lets go.

use tenure_core::kernel::{
    AgentCommand, AgentOutcome, AgentPhase, AgentReport, Command, CommandOutcome, DeclareManifest, Fence,
    HeartbeatOutcome, Holder, LeaseMode, LeaseRequest, Nonce, Principal, Rejection, ReportedAgentState,
    Resource, Tick, TickDuration,
};

use super::SECOND;
use crate::rng::Rng;

/// One agent, as its own process sees it.
#[derive(Debug)]
pub(super) struct SimulatedAgent {
    number: usize,
    /// Counts processes, so that what was said to an earlier one finds nobody.
    pub(super) process: u64,
    /// Its process is not there until then.
    pub(super) gone_until: u64,
    /// Nothing reaches it, and it reaches nobody, until then.
    pub(super) cut_off_until: u64,
    epoch: u64,
    /// How far its clock is off, in seconds.
    skew: u64,
    priority: u64,
    ttl: TickDuration,
    /// What it wants and does not have.
    pending_manifest: Option<Vec<LeaseRequest>>,
    request_at: u64,
    leases: Vec<Fence>,
    heartbeat_at: u64,
    done_at: u64,
    /// How often it has asked for more while it held something.
    follow_up_manifests: u32,
    is_releasing: bool,
    is_resuming: bool,
    /// How often it got all that it wanted.
    pub(super) granted: u64,
}

/// What was asked, so that the answer is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestKind {
    Manifest,
    Other,
}

/// Folders, what is below them, patterns, and other things.
const RESOURCES: [&str; 20] = [
    "FILE:src/",
    "FILE:src/a",
    "FILE:src/b",
    "FILE:src/c/",
    "FILE:src/c/d",
    "FILE:src/*.rs",
    "FILE:doc/",
    "FILE:doc/guide.md",
    "FILE:doc/*",
    "FILE:Cargo.toml",
    "FILE:Cargo.lock",
    "SYMBOL:main",
    "SYMBOL:lease::*",
    "SYMBOL:lease::grant",
    "API_ENDPOINT:/v1/leases",
    "API_ENDPOINT:/v1/",
    "DATABASE_TABLE:users",
    "DATABASE_TABLE:orders",
    "CONFIG_KEY:server.port",
    "CONFIG_KEY:server.*",
];

impl SimulatedAgent {
    pub(super) fn new(number: usize, rng: &mut Rng) -> Self {
        Self {
            number,
            process: 0,
            gone_until: 0,
            cut_off_until: 0,
            epoch: 0,
            skew: rng.below(4),
            priority: 0,
            ttl: TickDuration::from_millis(rng.between(3_000, 10_000)),
            pending_manifest: None,
            request_at: 0,
            leases: Vec::new(),
            heartbeat_at: 0,
            done_at: 0,
            follow_up_manifests: 0,
            is_releasing: false,
            is_resuming: false,
            granted: 0,
        }
    }

    pub(super) fn holder(&self) -> Holder {
        Holder::parse(&format!("agent-{:02}", self.number)).expect("a plain name")
    }

    fn principal(&self) -> Principal {
        Principal::parse(&format!("owner-{}", self.number % 5)).expect("a plain name")
    }

    /// Whether it wants nothing and knows of nothing that it has.
    pub(super) fn is_idle(&self) -> bool {
        self.pending_manifest.is_none() && self.leases.is_empty()
    }

    pub(super) fn due_requests(
        &mut self,
        now: u64,
        is_winding_down: bool,
        rng: &mut Rng,
    ) -> Vec<(RequestKind, Command)> {
        let mut asks = Vec::new();
        if self.gone_until > now {
            return asks;
        }
        if std::mem::take(&mut self.is_resuming) {
            // What it holds is not what it remembers: it asks.
            let remembers = Some(ReportedAgentState { priority: self.priority, epoch: self.epoch });
            asks.push((RequestKind::Other, self.report(AgentPhase::Verifying, remembers)));
            self.heartbeat_at = now;
        }
        if !self.leases.is_empty() && self.heartbeat_at <= now {
            self.heartbeat_at = now + self.ttl.0 / 3;
            asks.push((
                RequestKind::Other,
                self.agent(|agent, principal, leases| AgentCommand::Heartbeat { agent, principal, leases }),
            ));
        }
        if self.pending_manifest.is_some() {
            if self.request_at <= now {
                self.request_at = now + 2 * SECOND;
                asks.push((RequestKind::Manifest, self.declare(rng)));
            }
        } else if self.is_releasing || !self.leases.is_empty() && (is_winding_down || self.done_at <= now) {
            if !self.is_releasing && !is_winding_down && self.follow_up_manifests < 2 && rng.percent(35) {
                self.follow_up_manifests += 1;
                self.plan_manifest(now, rng);
            } else {
                self.is_releasing = true;
                asks.push((RequestKind::Other, self.release_command(rng)));
            }
        } else if self.leases.is_empty() && self.done_at <= now && !is_winding_down {
            // A fresh attempt; whole seconds, so that many are of the same age.
            self.priority = self.priority.max(now / SECOND + self.skew);
            self.follow_up_manifests = 0;
            self.plan_manifest(now, rng);
        } else if rng.percent(15) && !self.leases.is_empty() {
            asks.push((RequestKind::Other, self.touch(rng)));
        }
        asks
    }

    pub(super) fn handle_answer(
        &mut self,
        ask: RequestKind,
        answer: &CommandOutcome,
        stamp: Tick,
        now: u64,
        rng: &mut Rng,
    ) {
        match answer {
            CommandOutcome::Agent(answer) => self.handle_agent_answer(ask, answer, stamp, now, rng),
            CommandOutcome::Rejected(Rejection::PriorityFixed { current: has })
                if ask == RequestKind::Manifest =>
            {
                self.priority = *has;
                self.request_at = now + rng.delay(50_000, SECOND);
            }
            CommandOutcome::Rejected(Rejection::LeaseTimeUsed { has }) => {
                self.priority = (*has + 1).max(now / SECOND);
                self.request_at = now + rng.delay(50_000, SECOND);
            }
            _ => {}
        }
    }

    fn handle_agent_answer(
        &mut self,
        ask: RequestKind,
        answer: &AgentOutcome,
        stamp: Tick,
        now: u64,
        rng: &mut Rng,
    ) {
        match answer {
            AgentOutcome::Granted { leases } => {
                self.leases.extend(
                    leases.iter().filter(|lease| !self.leases.contains(lease)).copied().collect::<Vec<_>>(),
                );
                self.granted += u64::from(self.pending_manifest.take().is_some());
                self.done_at = now + rng.delay(100_000, 8 * SECOND);
                self.heartbeat_at = self.heartbeat_at.max(now + self.ttl.0 / 3);
            }
            AgentOutcome::Wait { .. } => self.request_at = now + rng.delay(100_000, SECOND),
            AgentOutcome::Die { retry_at, ended, .. } => {
                self.leases.retain(|lease| !ended.contains(lease));
                self.request_at = now + retry_at.since(stamp).0;
            }
            AgentOutcome::Heartbeats(beaten) => {
                let is_ended = |lease: &Fence| {
                    beaten.iter().any(|(fence, outcome)| {
                        fence == lease && !matches!(outcome, HeartbeatOutcome::Active(_))
                    })
                };
                self.leases.retain(|lease| !is_ended(lease));
            }
            AgentOutcome::Released(_) | AgentOutcome::Acknowledged
                if self.is_releasing && ask == RequestKind::Other =>
            {
                self.leases.clear();
                self.is_releasing = false;
                self.done_at = now + rng.delay(50_000, 3 * SECOND);
            }
            AgentOutcome::Released(_) | AgentOutcome::Acknowledged | AgentOutcome::Touched { .. } => {}
        }
    }

    /// Its process ends; says what it says before it goes.
    pub(super) fn crash(&mut self, now: u64, orderly: bool, rng: &mut Rng) -> Option<Command> {
        self.gone_until = now + rng.delay(100_000, 20 * SECOND);
        self.process += 1;
        if !orderly {
            // It knows nothing any more, and finds out by being told its age.
            (self.pending_manifest, self.is_releasing) = (None, false);
            self.leases.clear();
            return None;
        }
        self.epoch += 1;
        self.is_resuming = true;
        Some(self.report(AgentPhase::DieRestart, None))
    }

    fn plan_manifest(&mut self, now: u64, rng: &mut Rng) {
        let mut requests: Vec<LeaseRequest> = Vec::new();
        for _ in 0..rng.between(1, 5) {
            let resource = any_resource(rng);
            if requests.iter().all(|request| request.resource != resource) {
                let mode = *rng.pick(&LeaseMode::ALL[2..]);
                requests.push(LeaseRequest::new(resource, mode, self.ttl, Nonce([9; 16])));
            }
        }
        self.pending_manifest = Some(requests);
        self.request_at = now;
    }

    fn declare(&self, rng: &mut Rng) -> Command {
        Command::Agent(Box::new(AgentCommand::Declare(DeclareManifest {
            agent: self.holder(),
            principal: self.principal(),
            session: "crew".into(),
            priority: self.priority,
            requests: self.pending_manifest.clone().unwrap_or_default(),
            wait_timeout: TickDuration::from_millis(rng.between(500, 20_000)),
        })))
    }

    fn release_command(&self, rng: &mut Rng) -> Command {
        match rng.below(4) {
            0 => self.report(AgentPhase::Completed, None),
            1 => self.report(AgentPhase::Aborted, None),
            _ => self.agent(|agent, principal, leases| AgentCommand::Release { agent, principal, leases }),
        }
    }

    fn touch(&self, rng: &mut Rng) -> Command {
        let resource = any_resource(rng);
        let touched = vec![(resource, *rng.pick(&LeaseMode::ALL[2..]))];
        self.agent(|agent, principal, _| AgentCommand::Touch { agent, principal, touched })
    }

    fn report(&self, phase: AgentPhase, remembers: Option<ReportedAgentState>) -> Command {
        let (agent, principal) = (self.holder(), self.principal());
        let report = AgentReport { agent, principal, session: "crew".into(), phase, memory: remembers };
        Command::Agent(Box::new(AgentCommand::Report(report)))
    }

    fn agent(&self, ask: impl FnOnce(Holder, Principal, Vec<Fence>) -> AgentCommand) -> Command {
        Command::Agent(Box::new(ask(self.holder(), self.principal(), self.leases.clone())))
    }
}

fn any_resource(rng: &mut Rng) -> Resource {
    let name = rng.pick::<&str>(&RESOURCES);
    Resource::parse(name).expect("a plain name")
}
