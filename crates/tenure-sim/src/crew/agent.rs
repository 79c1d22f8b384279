//! An agent: it declares what it is about to touch, waits, dies and comes back, works, and lets go.

use tenure_core::kernel::{
    AgentAnswer, AgentCommand, Answer, Command, Declare, Fence, Holder, Mode, Nonce, Phase, Principal, Pulse,
    Refusal, Remembered, Report, Resource, Span, Tick, Want,
};

use super::SECOND;
use crate::rng::Rng;

/// One agent, as its own process sees it.
#[derive(Debug)]
pub(super) struct Agent {
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
    ttl: Span,
    /// What it wants and does not have.
    wish: Option<Vec<Want>>,
    ask_at: u64,
    leases: Vec<Fence>,
    beat_at: u64,
    done_at: u64,
    /// How often it has asked for more while it held something.
    more: u32,
    lets_go: bool,
    comes_back: bool,
    /// How often it got all that it wanted.
    pub(super) granted: u64,
}

/// What was asked, so that the answer is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
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

impl Agent {
    pub(super) fn new(number: usize, rng: &mut Rng) -> Self {
        Self {
            number,
            process: 0,
            gone_until: 0,
            cut_off_until: 0,
            epoch: 0,
            skew: rng.below(4),
            priority: 0,
            ttl: Span::from_millis(rng.between(3_000, 10_000)),
            wish: None,
            ask_at: 0,
            leases: Vec::new(),
            beat_at: 0,
            done_at: 0,
            more: 0,
            lets_go: false,
            comes_back: false,
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
    pub(super) fn rests(&self) -> bool {
        self.wish.is_none() && self.leases.is_empty()
    }

    pub(super) fn act(&mut self, now: u64, calm: bool, rng: &mut Rng) -> Vec<(Ask, Command)> {
        let mut asks = Vec::new();
        if self.gone_until > now {
            return asks;
        }
        if std::mem::take(&mut self.comes_back) {
            // What it holds is not what it remembers: it asks.
            let remembers = Some(Remembered { priority: self.priority, epoch: self.epoch });
            asks.push((Ask::Other, self.report(Phase::Verifying, remembers)));
            self.beat_at = now;
        }
        if !self.leases.is_empty() && self.beat_at <= now {
            self.beat_at = now + self.ttl.0 / 3;
            asks.push((
                Ask::Other,
                self.agent(|agent, principal, leases| AgentCommand::Heartbeat { agent, principal, leases }),
            ));
        }
        if self.wish.is_some() {
            if self.ask_at <= now {
                self.ask_at = now + 2 * SECOND;
                asks.push((Ask::Manifest, self.declare(rng)));
            }
        } else if self.lets_go || !self.leases.is_empty() && (calm || self.done_at <= now) {
            if !self.lets_go && !calm && self.more < 2 && rng.percent(35) {
                self.more += 1;
                self.want(now, rng);
            } else {
                self.lets_go = true;
                asks.push((Ask::Other, self.let_go(rng)));
            }
        } else if self.leases.is_empty() && self.done_at <= now && !calm {
            // A fresh attempt; whole seconds, so that many are of the same age.
            self.priority = self.priority.max(now / SECOND + self.skew);
            self.more = 0;
            self.want(now, rng);
        } else if rng.percent(15) && !self.leases.is_empty() {
            asks.push((Ask::Other, self.touch(rng)));
        }
        asks
    }

    pub(super) fn hear(&mut self, ask: Ask, answer: &Answer, stamp: Tick, now: u64, rng: &mut Rng) {
        match answer {
            Answer::Agent(answer) => self.understand(ask, answer, stamp, now, rng),
            Answer::Refused(Refusal::PriorityFixed { has }) if ask == Ask::Manifest => {
                self.priority = *has;
                self.ask_at = now + rng.delay(50_000, SECOND);
            }
            Answer::Refused(Refusal::LeaseTimeUsed { has }) => {
                self.priority = (*has + 1).max(now / SECOND);
                self.ask_at = now + rng.delay(50_000, SECOND);
            }
            _ => {}
        }
    }

    fn understand(&mut self, ask: Ask, answer: &AgentAnswer, stamp: Tick, now: u64, rng: &mut Rng) {
        match answer {
            AgentAnswer::Granted { leases } => {
                self.leases.extend(
                    leases.iter().filter(|lease| !self.leases.contains(lease)).copied().collect::<Vec<_>>(),
                );
                self.granted += u64::from(self.wish.take().is_some());
                self.done_at = now + rng.delay(100_000, 8 * SECOND);
                self.beat_at = self.beat_at.max(now + self.ttl.0 / 3);
            }
            AgentAnswer::Wait { .. } => self.ask_at = now + rng.delay(100_000, SECOND),
            AgentAnswer::Die { retry_at, ended, .. } => {
                self.leases.retain(|lease| !ended.contains(lease));
                self.ask_at = now + retry_at.since(stamp).0;
            }
            AgentAnswer::Beaten(beaten) => {
                let over = |lease: &Fence| {
                    beaten.iter().any(|(fence, pulse)| fence == lease && !matches!(pulse, Pulse::Until(_)))
                };
                self.leases.retain(|lease| !over(lease));
            }
            AgentAnswer::Released(_) | AgentAnswer::Noted if self.lets_go && ask == Ask::Other => {
                self.leases.clear();
                self.lets_go = false;
                self.done_at = now + rng.delay(50_000, 3 * SECOND);
            }
            AgentAnswer::Released(_) | AgentAnswer::Noted | AgentAnswer::Touched { .. } => {}
        }
    }

    /// Its process ends; says what it says before it goes.
    pub(super) fn crash(&mut self, now: u64, orderly: bool, rng: &mut Rng) -> Option<Command> {
        self.gone_until = now + rng.delay(100_000, 20 * SECOND);
        self.process += 1;
        if !orderly {
            // It knows nothing any more, and finds out by being told its age.
            (self.wish, self.lets_go) = (None, false);
            self.leases.clear();
            return None;
        }
        self.epoch += 1;
        self.comes_back = true;
        Some(self.report(Phase::DieRestart, None))
    }

    fn want(&mut self, now: u64, rng: &mut Rng) {
        let mut wants: Vec<Want> = Vec::new();
        for _ in 0..rng.between(1, 5) {
            let resource = any_resource(rng);
            if wants.iter().all(|want| want.resource != resource) {
                let mode = *rng.pick(&Mode::ALL[2..]);
                wants.push(Want::new(resource, mode, self.ttl, Nonce([9; 16])));
            }
        }
        self.wish = Some(wants);
        self.ask_at = now;
    }

    fn declare(&self, rng: &mut Rng) -> Command {
        Command::Agent(Box::new(AgentCommand::Declare(Declare {
            agent: self.holder(),
            principal: self.principal(),
            session: "crew".into(),
            priority: self.priority,
            wants: self.wish.clone().unwrap_or_default(),
            patience: Span::from_millis(rng.between(500, 20_000)),
        })))
    }

    fn let_go(&self, rng: &mut Rng) -> Command {
        match rng.below(4) {
            0 => self.report(Phase::Completed, None),
            1 => self.report(Phase::Aborted, None),
            _ => self.agent(|agent, principal, leases| AgentCommand::Release { agent, principal, leases }),
        }
    }

    fn touch(&self, rng: &mut Rng) -> Command {
        let resource = any_resource(rng);
        let touched = vec![(resource, *rng.pick(&Mode::ALL[2..]))];
        self.agent(|agent, principal, _| AgentCommand::Touch { agent, principal, touched })
    }

    fn report(&self, phase: Phase, remembers: Option<Remembered>) -> Command {
        let (agent, principal) = (self.holder(), self.principal());
        let report = Report { agent, principal, session: "crew".into(), phase, remembers };
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
