//! The third scenario: thirty-two agents that want to touch the same twenty things, and a server that fails under them.
//!
//! Each follows the protocol as its messages are lost, come twice or late, and as its process goes and comes back.

mod agent;
mod server;

use std::collections::BTreeMap;

use tenure_core::kernel::{Answer, Command, Limits, Span, Tick};
use tenure_registrar::{Caller, Input, Settings};

use self::agent::{Agent, Ask};
use crate::agenda::Agenda;
use crate::host::{Host, Write};
use crate::laws::{Lawful, law};
use crate::log::Log;
use crate::rng::Rng;
use crate::run::Scenario;
use crate::storage::Storage;

#[derive(Debug)]
pub struct Crew {
    rng: Rng,
    agenda: Agenda<Next>,
    host: Host,
    agents: Vec<Agent>,
    asked: BTreeMap<Caller, Asked>,
    last_caller: u64,
    server_wake: Option<u64>,
    server_start: Option<u64>,
    server_paused_until: u64,
    winding_down: bool,
    now: u64,
}

#[derive(Debug, Clone, Copy)]
struct Asked {
    agent: usize,
    process: u64,
    ask: Ask,
}

#[derive(Debug)]
enum Next {
    Acts { agent: usize },
    RequestArrives { asked: Asked, command: Command },
    ReplyArrives { asked: Asked, answer: Answer, stamp: Tick },
    ServerWakes { at: u64 },
    ServerStarts { at: u64 },
    WriteEnds { incarnation: u64, write: Write },
    DiskHasRoom,
    Fault,
}

const SECOND: u64 = 1_000_000;
const AGENTS: usize = 32;

impl Scenario for Crew {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x0A6E_4757);
        let settings =
            Settings { inbox: 128, batch: 8, sweep: 4, stride: 2, enough: 3, ..Settings::default() };
        let tight = rng.percent(40);
        let limits = Limits {
            lease_time: tight.then_some(Span::from_secs(20)),
            idle: tight.then_some(Span::from_secs(6)),
            ..Limits::default()
        };
        let drift = i64::try_from(rng.below(4_801)).unwrap_or(0) - 2_400;
        let mut crew = Self {
            host: Host::new(0, drift, settings, limits, Storage::of_seed(seed)),
            agents: (0..AGENTS).map(|number| Agent::new(number, &mut rng)).collect(),
            agenda: Agenda::default(),
            asked: BTreeMap::new(),
            last_caller: 0,
            server_wake: None,
            server_start: None,
            server_paused_until: 0,
            winding_down: false,
            now: 0,
            rng,
        };
        crew.start_server_at(0);
        crew.agenda.plan(2 * SECOND, Next::Fault);
        for agent in 0..AGENTS {
            let at = crew.rng.below(SECOND);
            crew.agenda.plan(at, Next::Acts { agent });
        }
        crew
    }

    fn step(&mut self, log: &mut Log) -> Lawful {
        let Some((at, next)) = self.agenda.next() else { return Ok(()) };
        self.now = at;
        let of_server =
            matches!(next, Next::RequestArrives { .. } | Next::ServerWakes { .. } | Next::WriteEnds { .. });
        if of_server && self.server_paused_until > at {
            self.agenda.plan(self.server_paused_until, next);
            return Ok(());
        }
        log.line(format_args!("{at} {next:?}"));
        self.happen(next, log)
    }

    /// Without faults everybody gets what it wants, the oldest first, and lets go of it.
    fn wind_down(&mut self, log: &mut Log) -> Lawful {
        self.winding_down = true;
        self.agenda.plan(self.now, Next::DiskHasRoom);
        let end = self.now + 300 * SECOND;
        while self.now < end {
            self.step(log)?;
        }
        let stuck = self.agents.iter().find(|agent| !agent.rests());
        law(stuck.is_none(), || format!("somebody never gets through: {stuck:?}"))?;
        law(self.host.laws().is_quiet(), || {
            let laws = self.host.laws();
            format!("held or waited for, for ever: {:?}", laws.live().collect::<Vec<_>>())
        })?;
        self.host.check_agreement()
    }
}

impl Crew {
    fn happen(&mut self, next: Next, log: &mut Log) -> Lawful {
        match next {
            Next::Acts { agent } => {
                self.acts(agent);
                Ok(())
            }
            Next::RequestArrives { asked, command } => {
                if self.host.registrar().is_none() {
                    return Ok(());
                }
                self.last_caller += 1;
                let caller = Caller(self.last_caller);
                self.asked.insert(caller, asked);
                self.server_steps(Input::Asked { caller, command }, log)
            }
            Next::ReplyArrives { asked, answer, stamp } => {
                let agent = &mut self.agents[asked.agent];
                if agent.process == asked.process && agent.gone_until <= self.now {
                    let before = agent.granted;
                    agent.hear(asked.ask, &answer, stamp, self.now, &mut self.rng);
                    if agent.granted > before {
                        log.count("agent got all that it wanted");
                    }
                }
                Ok(())
            }
            Next::ServerStarts { at } if self.server_start != Some(at) => Ok(()),
            Next::ServerStarts { .. } => self.server_starts(log),
            Next::ServerWakes { at } if self.server_wake == Some(at) => {
                self.server_wake = None;
                self.server_steps(Input::Woken, log)
            }
            Next::WriteEnds { incarnation, write } if incarnation == self.host.incarnation => {
                let effects = self.host.written(write, self.now)?;
                self.server_does(effects, log)
            }
            Next::ServerWakes { .. } | Next::WriteEnds { .. } => Ok(()),
            Next::DiskHasRoom => {
                self.host.free_disk();
                self.server_steps(Input::Woken, log)
            }
            Next::Fault => self.fault(log),
        }
    }

    fn acts(&mut self, number: usize) {
        let agent = &mut self.agents[number];
        let asks = agent.act(self.now, self.winding_down, &mut self.rng);
        for (ask, command) in asks {
            self.send(number, ask, command);
        }
        let at = self.now + self.rng.between(100_000, 600_000);
        self.agenda.plan(at, Next::Acts { agent: number });
    }

    /// A message may arrive twice; nothing may happen twice.
    fn send(&mut self, number: usize, ask: Ask, command: Command) {
        let asked = Asked { agent: number, process: self.agents[number].process, ask };
        for _ in 0..if self.rng.percent(2) { 2 } else { 1 } {
            if let Some(at) = self.carried(number) {
                self.agenda.plan(at, Next::RequestArrives { asked, command: command.clone() });
            }
        }
    }

    /// When a message from or to this agent arrives, if it does.
    fn carried(&mut self, number: usize) -> Option<u64> {
        let cut_off = self.agents[number].cut_off_until > self.now;
        if cut_off || (!self.winding_down && self.rng.percent(3)) {
            return None;
        }
        let longest = if !self.winding_down && self.rng.percent(3) { 10 * SECOND } else { 20_000 };
        Some(self.now + self.rng.delay(50, longest))
    }

    fn agent_fails(&mut self, log: &mut Log) {
        let number = usize::try_from(self.rng.below(AGENTS as u64)).unwrap_or(0);
        match self.rng.below(4) {
            0 => {
                log.count("agent cut off");
                self.agents[number].cut_off_until = self.now + self.rng.delay(10_000, 20 * SECOND);
            }
            kind => {
                let orderly = kind != 1;
                log.count(if orderly { "agent restarted" } else { "agent crashed" });
                let said = self.agents[number].crash(self.now, orderly, &mut self.rng);
                if let Some(command) = said {
                    self.send(number, Ask::Other, command);
                }
            }
        }
    }
}
