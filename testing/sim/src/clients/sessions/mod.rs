//! Viewers of a few channels, and the workers that show them: processes that crash, stall, are replaced, and
//! leave pipelines behind that run until their watchdogs end them.

mod worker;

use std::collections::BTreeMap;

use tenure_core::kernel::{
    AcceptIntent, Command, CommandOutcome, Holder, Intent, IntentCommand, IntentKey, IntentOutcome,
    IntentTarget, LEADER_LOCK, Nonce, Principal, Tick, TickDuration,
};
use tenure_registrar::{Input, Reply, RequestId};

pub(super) use self::worker::WorkerAnswer;
use self::worker::{SimulatedWorker, WorkerObservation, WorkerRequestKind};
use super::{ClientsScenario, SECOND, ScenarioEvent};
use crate::clock::SimulatedClock;
use crate::invariants::{InvariantResult, LedgerModel, ensure};
use crate::rng::Rng;
use crate::simulation_log::SimulationLog;

/// Everybody who has to do with sessions.
#[derive(Debug)]
pub(super) struct IntentSessionActors {
    rng: Rng,
    workers: BTreeMap<u64, SimulatedWorker>,
    /// Who works now, or worked last: mostly one, in some worlds two.
    current_workers: Vec<u64>,
    workers_started: u64,
    tuners: u32,
    intents_created: u64,
    /// Sessions whose acceptance was answered.
    acknowledged: Vec<Holder>,
    pub(super) requests: BTreeMap<RequestId, IntentSessionRequest>,
}

#[derive(Debug, Clone)]
pub(super) struct IntentSessionRequest {
    /// Of which worker; of a viewer otherwise.
    worker: Option<u64>,
    /// What the worker's clock said when it was sent.
    sent: u64,
    kind: WorkerRequestKind,
}

impl IntentSessionActors {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x0057_0D10);
        let (worker_count, tuners) =
            (if rng.percent(40) { 2 } else { 1 }, if rng.percent(50) { 1 } else { 2 });
        let mut sessions = Self {
            rng,
            workers: BTreeMap::new(),
            current_workers: Vec::new(),
            workers_started: 0,
            tuners,
            intents_created: 0,
            acknowledged: Vec::new(),
            requests: BTreeMap::new(),
        };
        for machine in 0..worker_count {
            let worker = sessions.start_worker(machine);
            sessions.current_workers.push(worker);
        }
        sessions
    }

    /// When a message arrives, if it does.
    fn delivery_time(&mut self, now: u64, calm: bool) -> Option<u64> {
        if !calm && self.rng.percent(3) {
            return None;
        }
        let longest = if self.rng.percent(3) { 8 * SECOND } else { 20_000 };
        Some(now + self.rng.delay(50, longest))
    }

    /// A new process on a machine.
    fn start_worker(&mut self, machine: u64) -> u64 {
        self.workers_started += 1;
        // Each machine's clock drifts in its own way, for ever.
        let drift = i64::try_from(Rng::new(machine).below(4_801)).unwrap_or(0) - 2_400;
        let clock = SimulatedClock::new(format!("studio-{machine}"), 0, 33, drift);
        let ttl = TickDuration::from_millis(self.rng.between(3_000, 7_000));
        self.workers.insert(
            self.workers_started,
            SimulatedWorker::new(self.workers_started, machine, clock, ttl, self.tuners),
        );
        self.workers_started
    }

    /// Until when a worker does nothing, if the message is for one.
    pub(super) fn paused_until(&self, next: &ScenarioEvent) -> u64 {
        let worker = match next {
            ScenarioEvent::WorkerActs { worker_index } => Some(self.current_workers[*worker_index]),
            ScenarioEvent::SessionAnswerArrives { request, .. } => request.worker,
            _ => None,
        };
        worker.and_then(|worker| self.workers.get(&worker)).map_or(0, |worker| worker.paused_until)
    }

    /// No two pipelines that anybody believes in show one channel or use one tuner, and none is shown twice.
    pub(super) fn check_exclusive_resources(&self, now: u64) -> InvariantResult {
        let mut believers: BTreeMap<&str, &Holder> = BTreeMap::new();
        for (session, resources) in
            self.workers.values().flat_map(|worker| worker.locally_valid_sessions(now))
        {
            for resource in resources {
                let other = believers.insert(resource, session);
                ensure(other.is_none(), || {
                    format!("{session} and {other:?} both believe to have {resource}")
                })?;
            }
        }
        Ok(())
    }
}

impl ClientsScenario {
    pub(super) fn schedule_sessions(&mut self) {
        for worker_index in 0..self.sessions.current_workers.len() {
            self.queue.schedule(SECOND, ScenarioEvent::WorkerActs { worker_index });
        }
        self.queue.schedule(SECOND, ScenarioEvent::ViewerActs);
    }

    pub(super) fn step_viewer(&mut self, log: &mut SimulationLog) {
        if self.winding_down {
            return;
        }
        let at = self.now + self.sessions.rng.delay(400_000, 6 * SECOND);
        self.queue.schedule(at, ScenarioEvent::ViewerActs);
        let by = Principal::parse("viewer").expect("a plain name");
        let stops = self.sessions.rng.percent(20) && !self.sessions.acknowledged.is_empty();
        let command = if stops {
            let recent = self.sessions.acknowledged.len().saturating_sub(4);
            let session = self.sessions.rng.pick(&self.sessions.acknowledged[recent..]).clone();
            IntentCommand::Stop { session, by }
        } else {
            log.record_coverage("viewer wants something");
            IntentCommand::Accept(self.sessions.any_intent(by))
        };
        let request = IntentSessionRequest { worker: None, sent: 0, kind: WorkerRequestKind::Viewer };
        self.send_session_request(request, Command::Intent(Box::new(command)));
    }

    pub(super) fn step_worker(&mut self, worker_index: usize, log: &mut SimulationLog) {
        let calm = self.winding_down;
        let sessions = &mut self.sessions;
        let mut number = sessions.current_workers[worker_index];
        if sessions.workers.get(&number).is_none_or(|worker| worker.is_gone) {
            log.record_coverage("worker replaced");
            let machine = if sessions.rng.percent(70) { worker_index as u64 } else { sessions.rng.below(4) };
            number = sessions.start_worker(machine);
            sessions.current_workers[worker_index] = number;
            let now = self.now;
            let hired = sessions.workers_started;
            sessions.workers.retain(|number, worker| {
                // The last few are remembered: the ledger may still tell of them.
                !worker.is_gone || worker.locally_valid_sessions(now).next().is_some() || number + 8 > hired
            });
        }
        let laws = self.host.ledger_model();
        let (remains, dead) = (sessions.stale_sessions(number, laws), sessions.dead_leader(number, laws));
        let seen =
            WorkerObservation { sessions: laws.sessions(), stale_sessions: remains, dead_leader: dead };
        let worker = sessions.workers.get_mut(&number).expect("it was just looked for");
        if !calm && sessions.rng.percent(2) {
            log.record_coverage("worker crashed");
            worker.is_gone = true;
        } else if !calm && sessions.rng.percent(2) {
            log.record_coverage("worker paused");
            worker.paused_until = self.now + sessions.rng.delay(100_000, 15 * SECOND);
        }
        let sent = worker.clock.microseconds(self.now);
        let was_there = !worker.is_gone;
        let asks = worker.due_requests(self.now, &seen, calm, &mut sessions.rng);
        if was_there && worker.is_gone {
            log.record_coverage("worker lost its guard");
        }
        let interval = worker.ttl.0 / 5;
        for (ask, command) in asks {
            self.send_session_request(
                IntentSessionRequest { worker: Some(number), sent, kind: ask },
                command,
            );
        }
        let at = self.now + interval + self.sessions.rng.below(interval);
        self.queue.schedule(at, ScenarioEvent::WorkerActs { worker_index });
    }

    fn send_session_request(&mut self, request: IntentSessionRequest, command: Command) {
        for _ in 0..if self.sessions.rng.percent(2) { 2 } else { 1 } {
            if let Some(at) = self.sessions.delivery_time(self.now, self.winding_down) {
                let (request, command) = (request.clone(), command.clone());
                self.queue.schedule(at, ScenarioEvent::SessionRequestArrives { request, command });
            }
        }
    }

    pub(super) fn receive_session_request(
        &mut self,
        request: IntentSessionRequest,
        command: Command,
        log: &mut SimulationLog,
    ) -> InvariantResult {
        if self.host.registrar().is_none() {
            return Ok(());
        }
        self.last_request_id += 1;
        let caller = RequestId(self.last_request_id);
        self.sessions.requests.insert(caller, request);
        self.step_server(Input::Request { caller, command }, log)
    }

    /// The server answers: what it says is durable.
    pub(super) fn deliver_session_answer(
        &mut self,
        request: IntentSessionRequest,
        reply: Reply,
    ) -> InvariantResult {
        let Reply::Answered { answer, stamp } = reply else { return Ok(()) };
        if let CommandOutcome::Intent(answer) = &answer
            && let IntentOutcome::Accepted { session, .. } = &**answer
        {
            let known = self.host.ledger_model().sessions().has_session(session);
            ensure(known, || format!("{session} was acknowledged and is not durable"))?;
            self.sessions.acknowledged.push(session.clone());
        }
        let valid_for = self.leader_lock_valid_for(&answer, stamp);
        if let Some(at) = self.sessions.delivery_time(self.now, self.winding_down) {
            let answer = WorkerAnswer { answer, stamp, valid_for };
            self.queue.schedule(at, ScenarioEvent::SessionAnswerArrives { request, answer });
        }
        Ok(())
    }

    /// What a worker is told of its guard.
    fn leader_lock_valid_for(&self, answer: &CommandOutcome, stamp: Tick) -> TickDuration {
        let CommandOutcome::Granted { leases } = answer else { return TickDuration(0) };
        let view = self.host.registrar().and_then(|registrar| registrar.state().lease(leases[0]));
        view.map_or(TickDuration(0), |view| view.terms.expires_at.since(stamp))
    }

    pub(super) fn handle_session_answer(
        &mut self,
        request: IntentSessionRequest,
        answer: WorkerAnswer,
        log: &mut SimulationLog,
    ) {
        let Some(worker) = request.worker.and_then(|number| self.sessions.workers.get_mut(&number)) else {
            return;
        };
        let was_there = !worker.is_gone;
        worker.handle_answer(&request.kind, request.sent, answer, self.now);
        if was_there && worker.is_gone {
            log.record_coverage("worker lost its guard");
        }
    }
}

impl IntentSessionActors {
    fn any_intent(&mut self, principal: Principal) -> AcceptIntent {
        self.intents_created += 1;
        let number = u8::try_from(self.rng.below(8)).unwrap_or(0);
        // Two profiles of each of three channels, and a recording.
        let target = match number {
            6 | 7 => IntentTarget::Recording { id: "film".into(), start_ms: u64::from(number) * 1_000 },
            other => IntentTarget::Service(format!("{}", other / 2).into()),
        };
        let lease = self.rng.percent(15).then_some((TickDuration::from_secs(3), Nonce([5; 16])));
        AcceptIntent {
            session: Holder::parse(&format!("session-{}", self.intents_created)).expect("a plain name"),
            intent: Intent { target, profile: "p".into(), params: "".into(), correlation: "".into() },
            key: IntentKey([number; 32]),
            previous_key: None,
            principal,
            wait_timeout: TickDuration::from_millis(self.rng.between(1_000, 20_000)),
            lease,
        }
    }

    /// Who has the guard, if that is a process of the same machine that is gone.
    fn dead_leader(&self, number: u64, laws: &LedgerModel) -> Option<Holder> {
        let machine = self.workers[&number].machine;
        let (.., name) = laws.active_leases().find(|(_, resource, _)| resource.as_str() == LEADER_LOCK)?;
        let other = self.workers.get(&worker::parse_worker_number(name)?)?;
        (other.is_gone && other.machine == machine).then(|| name.clone())
    }

    /// Sessions of workers of the same machine that are gone: a worker ends what is left of them, and sees it gone.
    fn stale_sessions(&mut self, number: u64, laws: &LedgerModel) -> Vec<Holder> {
        let machine = self.workers[&number].machine;
        let mut found = Vec::new();
        for (id, session) in laws.sessions().active() {
            let Some((name, _)) = &session.worker else { continue };
            let Some(other) = worker::parse_worker_number(name).filter(|other| *other != number) else {
                continue;
            };
            match self.workers.get_mut(&other) {
                Some(other) if other.machine != machine || !other.is_gone => {}
                Some(other) => {
                    other.remove_pipeline(id);
                    found.push(id.clone());
                }
                // Whoever is gone for so long has left nothing that anybody believes in.
                None => found.push(id.clone()),
            }
        }
        found
    }
}
