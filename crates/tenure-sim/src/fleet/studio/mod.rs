//! Viewers who want one of a few channels, and the workers that show them: processes that crash, stall, are replaced, and
//! leave pipelines behind that live until their watchdogs end them.

mod worker;

use std::collections::BTreeMap;

use tenure_core::kernel::{
    Accept, Answer, Command, GUARD, Holder, Intent, IntentAnswer, IntentCommand, IntentKey, Nonce, Principal,
    Span, Target, Tick,
};
use tenure_registrar::{Caller, Input, Reply};

pub(super) use self::worker::Told;
use self::worker::{Ask, Seen, Worker};
use super::{Fleet, Next, SECOND};
use crate::clock::Clock;
use crate::laws::{Lawful, Laws, law};
use crate::log::Log;
use crate::rng::Rng;

/// Everybody who has to do with sessions.
#[derive(Debug)]
pub(super) struct Studio {
    rng: Rng,
    workers: BTreeMap<u64, Worker>,
    /// Who works now, or worked last: mostly one, in some worlds two.
    seats: Vec<u64>,
    hired: u64,
    tuners: u32,
    wanted: u64,
    /// Sessions of which somebody was told.
    told: Vec<Holder>,
    pub(super) asked: BTreeMap<Caller, Asked>,
}

#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// Of which worker; of a viewer otherwise.
    worker: Option<u64>,
    /// What the worker's clock said when it was sent.
    sent: u64,
    ask: Ask,
}

impl Studio {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x0057_0D10);
        let (seats, tuners) = (if rng.percent(40) { 2 } else { 1 }, if rng.percent(50) { 1 } else { 2 });
        let (told, asked) = (Vec::new(), BTreeMap::new());
        let mut studio = Self {
            rng,
            workers: BTreeMap::new(),
            seats: Vec::new(),
            hired: 0,
            tuners,
            wanted: 0,
            told,
            asked,
        };
        for machine in 0..seats {
            let worker = studio.hire(machine);
            studio.seats.push(worker);
        }
        studio
    }

    /// When a message arrives, if it does.
    fn carried(&mut self, now: u64, calm: bool) -> Option<u64> {
        if !calm && self.rng.percent(3) {
            return None;
        }
        let longest = if self.rng.percent(3) { 8 * SECOND } else { 20_000 };
        Some(now + self.rng.delay(50, longest))
    }

    /// A new process on a machine.
    fn hire(&mut self, machine: u64) -> u64 {
        self.hired += 1;
        // Each machine's clock drifts in its own way, for ever.
        let drift = i64::try_from(Rng::new(machine).below(4_801)).unwrap_or(0) - 2_400;
        let clock = Clock::new(format!("studio-{machine}"), 0, 33, drift);
        let ttl = Span::from_millis(self.rng.between(3_000, 7_000));
        self.workers.insert(self.hired, Worker::new(self.hired, machine, clock, ttl, self.tuners));
        self.hired
    }

    /// Until when a worker does nothing, if the message is for one.
    pub(super) fn paused_until(&self, next: &Next) -> u64 {
        let worker = match next {
            Next::WorkerActs { seat } => Some(self.seats[*seat]),
            Next::StudioHears { asked, .. } => asked.worker,
            _ => None,
        };
        worker.and_then(|worker| self.workers.get(&worker)).map_or(0, |worker| worker.paused_until)
    }

    /// No two pipelines that anybody believes in show one channel or use one tuner, and none is shown twice.
    pub(super) fn check(&self, now: u64) -> Lawful {
        let mut owners: BTreeMap<&str, &Holder> = BTreeMap::new();
        for (session, needs) in self.workers.values().flat_map(|worker| worker.believes(now)) {
            for need in needs {
                let other = owners.insert(need, session);
                law(other.is_none(), || format!("{session} and {other:?} both believe to have {need}"))?;
            }
        }
        Ok(())
    }
}

impl Fleet {
    pub(super) fn open_studio(&mut self) {
        for seat in 0..self.studio.seats.len() {
            self.agenda.plan(SECOND, Next::WorkerActs { seat });
        }
        self.agenda.plan(SECOND, Next::ViewerActs);
    }

    pub(super) fn viewer_acts(&mut self, log: &mut Log) {
        if self.winding_down {
            return;
        }
        let at = self.now + self.studio.rng.delay(400_000, 6 * SECOND);
        self.agenda.plan(at, Next::ViewerActs);
        let by = Principal::parse("viewer").expect("a plain name");
        let stops = self.studio.rng.percent(20) && !self.studio.told.is_empty();
        let command = if stops {
            let recent = self.studio.told.len().saturating_sub(4);
            let session = self.studio.rng.pick(&self.studio.told[recent..]).clone();
            IntentCommand::Stop { session, by }
        } else {
            log.count("viewer wants something");
            IntentCommand::Accept(self.studio.any_intent(by))
        };
        let asked = Asked { worker: None, sent: 0, ask: Ask::Viewer };
        self.studio_sends(asked, Command::Intent(Box::new(command)));
    }

    pub(super) fn worker_acts(&mut self, seat: usize, log: &mut Log) {
        let calm = self.winding_down;
        let studio = &mut self.studio;
        let mut number = studio.seats[seat];
        if studio.workers.get(&number).is_none_or(|worker| worker.is_gone) {
            log.count("worker replaced");
            let machine = if studio.rng.percent(70) { seat as u64 } else { studio.rng.below(4) };
            number = studio.hire(machine);
            studio.seats[seat] = number;
            let now = self.now;
            let hired = studio.hired;
            studio.workers.retain(|number, worker| {
                // The last few are remembered: the ledger may still tell of them.
                !worker.is_gone || worker.believes(now).next().is_some() || number + 8 > hired
            });
        }
        let laws = self.host.laws();
        let (remains, dead) = (studio.remains_of_others(number, laws), studio.dead_guard(number, laws));
        let seen = Seen { sessions: laws.sessions(), remains, dead };
        let worker = studio.workers.get_mut(&number).expect("it was just looked for");
        if !calm && studio.rng.percent(2) {
            log.count("worker crashed");
            worker.is_gone = true;
        } else if !calm && studio.rng.percent(2) {
            log.count("worker paused");
            worker.paused_until = self.now + studio.rng.delay(100_000, 15 * SECOND);
        }
        let sent = worker.clock.microseconds(self.now);
        let was_there = !worker.is_gone;
        let asks = worker.act(self.now, &seen, calm, &mut studio.rng);
        if was_there && worker.is_gone {
            log.count("worker lost its guard");
        }
        let pace = worker.ttl.0 / 5;
        for (ask, command) in asks {
            self.studio_sends(Asked { worker: Some(number), sent, ask }, command);
        }
        let at = self.now + pace + self.studio.rng.below(pace);
        self.agenda.plan(at, Next::WorkerActs { seat });
    }

    fn studio_sends(&mut self, asked: Asked, command: Command) {
        for _ in 0..if self.studio.rng.percent(2) { 2 } else { 1 } {
            if let Some(at) = self.studio.carried(self.now, self.winding_down) {
                let (asked, command) = (asked.clone(), command.clone());
                self.agenda.plan(at, Next::StudioAsks { asked, command });
            }
        }
    }

    pub(super) fn studio_asks(&mut self, asked: Asked, command: Command, log: &mut Log) -> Lawful {
        if self.host.registrar().is_none() {
            return Ok(());
        }
        self.last_caller += 1;
        let caller = Caller(self.last_caller);
        self.studio.asked.insert(caller, asked);
        self.server_steps(Input::Asked { caller, command }, log)
    }

    /// The server answers: what it says is durable.
    pub(super) fn studio_is_answered(&mut self, asked: Asked, reply: Reply) -> Lawful {
        let Reply::Answered { answer, stamp } = reply else { return Ok(()) };
        if let Answer::Intent(answer) = &answer
            && let IntentAnswer::Accepted { session, .. } = &**answer
        {
            let known = self.host.laws().sessions().knows(session);
            law(known, || format!("{session} was acknowledged and is not durable"))?;
            self.studio.told.push(session.clone());
        }
        let lives_for = self.guard_lives_for(&answer, stamp);
        if let Some(at) = self.studio.carried(self.now, self.winding_down) {
            let told = Told { answer, stamp, lives_for };
            self.agenda.plan(at, Next::StudioHears { asked, told });
        }
        Ok(())
    }

    /// What a worker is told of its guard.
    fn guard_lives_for(&self, answer: &Answer, stamp: Tick) -> Span {
        let Answer::Granted { leases } = answer else { return Span(0) };
        let view = self.host.registrar().and_then(|registrar| registrar.state().lease(leases[0]));
        view.map_or(Span(0), |view| view.terms.expires_at.since(stamp))
    }

    pub(super) fn studio_hears(&mut self, asked: Asked, told: Told, log: &mut Log) {
        let Some(worker) = asked.worker.and_then(|number| self.studio.workers.get_mut(&number)) else {
            return;
        };
        let was_there = !worker.is_gone;
        worker.hear(&asked.ask, asked.sent, told, self.now);
        if was_there && worker.is_gone {
            log.count("worker lost its guard");
        }
    }
}

impl Studio {
    fn any_intent(&mut self, principal: Principal) -> Accept {
        self.wanted += 1;
        let number = u8::try_from(self.rng.below(8)).unwrap_or(0);
        // Two profiles of each of three channels, and a recording.
        let target = match number {
            6 | 7 => Target::Recording { id: "film".into(), start_ms: u64::from(number) * 1_000 },
            other => Target::Service(format!("{}", other / 2).into()),
        };
        let lease = self.rng.percent(15).then_some((Span::from_secs(3), Nonce([5; 16])));
        Accept {
            session: Holder::parse(&format!("session-{}", self.wanted)).expect("a plain name"),
            intent: Intent { target, profile: "p".into(), params: "".into(), correlation: "".into() },
            key: IntentKey([number; 32]),
            previous_key: None,
            principal,
            patience: Span::from_millis(self.rng.between(1_000, 20_000)),
            lease,
        }
    }

    /// Who has the guard, if that is a process of the same machine that is gone.
    fn dead_guard(&self, number: u64, laws: &Laws) -> Option<Holder> {
        let machine = self.workers[&number].machine;
        let (.., name) = laws.live().find(|(_, resource, _)| resource.as_str() == GUARD)?;
        let other = self.workers.get(&worker::number_of(name)?)?;
        (other.is_gone && other.machine == machine).then(|| name.clone())
    }

    /// Sessions of workers of the same machine that are gone: a worker ends what is left of them, and sees it gone.
    fn remains_of_others(&mut self, number: u64, laws: &Laws) -> Vec<Holder> {
        let machine = self.workers[&number].machine;
        let mut found = Vec::new();
        for (id, session) in laws.sessions().live() {
            let Some((name, _)) = &session.worker else { continue };
            let Some(other) = worker::number_of(name).filter(|other| *other != number) else { continue };
            match self.workers.get_mut(&other) {
                Some(other) if other.machine != machine || !other.is_gone => {}
                Some(other) => {
                    other.kill(id);
                    found.push(id.clone());
                }
                // Whoever is gone for so long has left nothing that anybody believes in.
                None => found.push(id.clone()),
            }
        }
        found
    }
}
