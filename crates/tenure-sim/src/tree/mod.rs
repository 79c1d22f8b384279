//! The fourth scenario: coding agents that edit one working tree, in processes that live and die, and a server that fails
//! under them.
//!
//! Each asks before it edits, comes back at its retry, early, or never; it commits, ends its turn, ends, or is gone from one
//! instruction to the next. Whoever asks for them looks whether those in the way live, and says so.

mod agent;
mod server;

use std::collections::BTreeMap;

use tenure_core::kernel::{
    Acquire, Answer, Command, Contention, FileCommand, FileEnd, Holder, Limits, Mode, Nonce, Principal, Span,
    Tick, Want,
};
use tenure_registrar::{Caller, Input, Settings};

use self::agent::{Agent, resource};
use crate::agenda::Agenda;
use crate::host::{Host, Write};
use crate::laws::{Lawful, law};
use crate::log::Log;
use crate::rng::Rng;
use crate::run::Scenario;
use crate::storage::Storage;

/// A working tree, those who edit it, and their server.
#[derive(Debug)]
pub struct Tree {
    rng: Rng,
    agenda: Agenda<Next>,
    host: Host,
    agents: Vec<Agent>,
    asked: BTreeMap<Caller, Asked>,
    last_caller: u64,
    last_request: u64,
    server_wake: Option<u64>,
    server_start: Option<u64>,
    winding_down: bool,
    now: u64,
}

/// A request under way, and whose session it is about, if its answer matters to anybody.
#[derive(Debug, Clone)]
struct Asked {
    request: u64,
    by: Option<Holder>,
}

#[derive(Debug)]
enum Next {
    Acts { agent: usize, life: u64 },
    AsksAgain { by: Holder, checked: Vec<Holder> },
    RestIsDue { session: Holder },
    Dies { agent: usize },
    IsBack { agent: usize },
    SomebodyElse,
    RequestArrives { asked: Asked, command: Command },
    ReplyArrives { by: Holder, answer: Answer, stamp: Tick },
    ServerWakes { at: u64 },
    ServerStarts { at: u64 },
    WriteEnds { incarnation: u64, write: Write },
    DiskHasRoom,
    Fault,
}

const SECOND: u64 = 1_000_000;
const AGENTS: usize = 8;
/// So many seconds after the last wish everything is over: somebody who is no agent waits for at most 60, and then has it for
/// at most 90.
const LAST_TO_END: u64 = 180;

impl Scenario for Tree {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x0F11_E500);
        let settings =
            Settings { inbox: 128, batch: 8, sweep: 4, stride: 2, enough: 3, ..Settings::default() };
        let drift = i64::try_from(rng.below(4_801)).unwrap_or(0) - 2_400;
        let mut tree = Self {
            host: Host::new(0, drift, settings, Limits::default(), Storage::of_seed(seed)),
            agents: (0..AGENTS).map(Agent::new).collect(),
            agenda: Agenda::default(),
            asked: BTreeMap::new(),
            last_caller: 0,
            last_request: 0,
            server_wake: None,
            server_start: None,
            winding_down: false,
            now: 0,
            rng,
        };
        tree.start_server_at(0);
        tree.agenda.plan(20 * SECOND, Next::Fault);
        tree.agenda.plan(5 * SECOND, Next::SomebodyElse);
        for agent in 0..AGENTS {
            let at = tree.rng.below(10 * SECOND);
            tree.agenda.plan(at, Next::Acts { agent, life: 0 });
        }
        tree
    }

    fn step(&mut self, log: &mut Log) -> Lawful {
        let Some((at, next)) = self.agenda.next() else { return Ok(()) };
        self.now = at;
        log.line(format_args!("{at} {next:?}"));
        self.happen(next, log)
    }

    /// Without faults every session comes to its end, and leaves nothing behind.
    fn wind_down(&mut self, log: &mut Log) -> Lawful {
        self.winding_down = true;
        self.agenda.plan(self.now, Next::DiskHasRoom);
        let end = self.now + LAST_TO_END * SECOND;
        let mut next_sweep = self.now + 20 * SECOND;
        // Something has to happen for time to pass.
        for second in 0..=LAST_TO_END {
            self.agenda.plan(self.now + second * SECOND, Next::DiskHasRoom);
        }
        while self.now < end {
            if self.now >= next_sweep {
                next_sweep = self.now + 5 * SECOND;
                let all: Vec<Holder> = self.host.laws().files().sessions().cloned().collect();
                for session in all {
                    self.end(vec![session.clone()], self.how_it_ends(&session));
                }
            }
            self.step(log)?;
        }
        let files = self.host.laws().files();
        law(files.is_quiet(), || format!("sessions or files for ever: {files:?}"))?;
        let laws = self.host.laws();
        law(laws.is_quiet(), || format!("held for ever: {:?}", laws.live().collect::<Vec<_>>()))?;
        self.host.check_agreement()
    }
}

impl Tree {
    fn happen(&mut self, next: Next, log: &mut Log) -> Lawful {
        match next {
            Next::Acts { agent, life } if self.agents[agent].life == life => self.acts(agent, log),
            Next::AsksAgain { by, checked } => self.asks_again(&by, checked),
            Next::RestIsDue { session } => self.rest(&session),
            Next::Dies { agent } => self.dies(agent, log),
            Next::IsBack { agent } if !self.winding_down => {
                self.agents[agent].begin();
                let life = self.agents[agent].life;
                self.agenda.plan(self.now, Next::Acts { agent, life });
            }
            Next::SomebodyElse => self.somebody_else(),
            Next::RequestArrives { asked, command } => {
                if self.host.registrar().is_some() {
                    self.last_caller += 1;
                    let caller = Caller(self.last_caller);
                    self.asked.insert(caller, asked);
                    return self.server_steps(Input::Asked { caller, command }, log);
                }
                self.host.laws_mut().files_mut().answered(asked.request);
            }
            Next::ReplyArrives { by, answer, stamp } => self.hears(&by, &answer, stamp, log),
            Next::ServerStarts { at } if self.server_start == Some(at) => return self.server_starts(log),
            Next::ServerWakes { at } if self.server_wake == Some(at) => {
                self.server_wake = None;
                return self.server_steps(Input::Woken, log);
            }
            Next::WriteEnds { incarnation, write } if incarnation == self.host.incarnation => {
                let effects = self.host.written(write, self.now)?;
                return self.server_does(effects, log);
            }
            Next::DiskHasRoom => {
                self.host.free_disk();
                return self.server_steps(Input::Woken, log);
            }
            Next::Fault => return self.fault(log),
            Next::Acts { .. }
            | Next::IsBack { .. }
            | Next::ServerStarts { .. }
            | Next::ServerWakes { .. }
            | Next::WriteEnds { .. } => {}
        }
        Ok(())
    }

    /// Sends a request; `checked` is whose life was just made sure of, for whom.
    fn send(&mut self, by: Option<Holder>, command: FileCommand, checked: Option<(Holder, Vec<Holder>)>) {
        self.last_request += 1;
        let request = self.last_request;
        if let Some(at) = self.carried() {
            if let Some((asking, living)) = checked {
                self.host.laws_mut().files_mut().vouch(request, asking, living);
            }
            let command = Command::File(Box::new(command));
            self.agenda.plan(at, Next::RequestArrives { asked: Asked { request, by }, command });
        }
    }

    /// When a message arrives, if it does.
    fn carried(&mut self) -> Option<u64> {
        if !self.winding_down && self.rng.percent(3) {
            return None;
        }
        let longest = if !self.winding_down && self.rng.percent(3) { 20 * SECOND } else { 20_000 };
        Some(self.now + self.rng.delay(50, longest))
    }

    fn end(&mut self, sessions: Vec<Holder>, end: FileEnd) {
        self.send(None, FileCommand::End { sessions, end, detail: "ended".into() }, None);
    }

    fn how_it_ends(&self, session: &Holder) -> FileEnd {
        if self.lives(session) { FileEnd::Ended } else { FileEnd::Died }
    }

    /// Whether the process of a session lives: somebody looks.
    fn lives(&self, session: &Holder) -> bool {
        self.agents.iter().any(|agent| agent.is_alive && agent.has(session))
    }

    /// Somebody who is no agent leases a file now and then, and may wait for it.
    fn somebody_else(&mut self) {
        if self.winding_down {
            return;
        }
        let at = self.now + self.rng.delay(SECOND, 60 * SECOND);
        self.agenda.plan(at, Next::SomebodyElse);
        let ttl = Span::from_secs(self.rng.between(1, 90));
        let want = Want::new(resource(self.rng.below(8)), Mode::Exclusive, ttl, Nonce([8; 16]));
        let patience = Span::from_secs(self.rng.below(60));
        let command = Command::Acquire(Acquire {
            principal: Principal::parse("owner").expect("a plain name"),
            holder: Holder::parse(&format!("person-{}", self.rng.below(3))).expect("a plain name"),
            wants: vec![want],
            contention: Contention::Queue { patience },
            key: None,
        });
        self.last_request += 1;
        let asked = Asked { request: self.last_request, by: None };
        if let Some(at) = self.carried() {
            self.agenda.plan(at, Next::RequestArrives { asked, command });
        }
    }
}
