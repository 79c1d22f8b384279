//! The first scenario: clients, a network and a server, all of which fail; no lease ever has two holders.

mod faults;
mod sessions;

use std::collections::BTreeMap;

use tenure_client::{
    AttemptId, Effect as ClientEffect, FenceGate, Input as ClientInput, KeepAliveRequest, ReplyOutcome,
};
use tenure_core::kernel::{Command, CommandOutcome, Fence, Rejection, Resource, Tick, TickDuration, Ticket};
use tenure_registrar::{BatchSettings, Effect, Input, Reply, RequestId};

use self::sessions::{IntentSessionActors, IntentSessionRequest, WorkerAnswer};
use crate::client::SimulatedClient;
use crate::clock::SimulatedClock;
use crate::coverage::{record_client_effect, record_server_effect};
use crate::event_queue::EventQueue;
use crate::host::{ServerMachine, WriteResult};
use crate::invariants::{InvariantResult, Violation, ensure};
use crate::rng::Rng;
use crate::run::Scenario;
use crate::simulation_log::SimulationLog;
use crate::storage::Storage;

#[derive(Debug)]
pub struct ClientsScenario {
    rng: Rng,
    queue: EventQueue<ScenarioEvent>,
    host: ServerMachine,
    server_paused_until: u64,
    server_wake: Option<u64>,
    server_start: Option<u64>,
    clients: Vec<SimulatedClient>,
    /// Those who have to do with sessions.
    sessions: IntentSessionActors,
    resources: u64,
    /// Whether clocks differ by so little that belief alone is safe.
    clocks_agree: bool,
    in_flight: BTreeMap<RequestId, RequestOrigin>,
    tickets: BTreeMap<Ticket, (RequestOrigin, Tick)>,
    last_request_id: u64,
    /// What each fence that a client was told of is for.
    granted: BTreeMap<Fence, Resource>,
    gates: BTreeMap<Resource, FenceGate>,
    /// The newest fence that each store was written with.
    written: BTreeMap<Resource, Fence>,
    /// No more faults and errands: everything should come to an end by itself.
    winding_down: bool,
    now: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RequestOrigin {
    client: usize,
    process: u64,
    task: u64,
    attempt: AttemptId,
}

#[derive(Debug)]
enum ScenarioEvent {
    RequestArrives { from: RequestOrigin, command: Command },
    ReplyArrives { to: RequestOrigin, outcome: ReplyOutcome },
    ServerWakes { at: u64 },
    ServerStarts { at: u64 },
    WriteEnds { incarnation: u64, write: WriteResult },
    ClientWakes { client: usize, at: u64 },
    ClientActs { client: usize },
    StoreWrite { resource: Resource, fence: Fence },
    ViewerActs,
    WorkerActs { worker_index: usize },
    SessionRequestArrives { request: IntentSessionRequest, command: Command },
    SessionAnswerArrives { request: IntentSessionRequest, answer: WorkerAnswer },
    DiskHasSpace,
    Fault,
}

const SECOND: u64 = 1_000_000;

impl Scenario for ClientsScenario {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let clocks_agree = !rng.percent(20);
        let max_drift: u64 = if clocks_agree { 2_400 } else { 100_000 };
        let mut drift = || {
            i64::try_from(rng.below(2 * max_drift + 1)).unwrap_or(0) - i64::try_from(max_drift).unwrap_or(0)
        };
        let server_drift = drift().clamp(-2_400, 2_400);
        let drifts: Vec<i64> = (0..8).map(|_| drift()).collect();
        let count = rng.between(2, 9);
        let settings = BatchSettings {
            max_waiting: 64,
            max_batch: 8,
            max_sweep: 4,
            stride: 2,
            write_threshold: 3,
            ..BatchSettings::default()
        };
        let clients = drifts.iter().zip(0..count).enumerate().map(|(number, (drift, _))| {
            SimulatedClient::new(number, SimulatedClock::new(format!("client-{number}"), 0, 17, *drift))
        });
        let mut scenario = Self {
            host: ServerMachine::new(0, server_drift, settings, Default::default(), Storage::for_seed(seed)),
            clients: clients.collect(),
            sessions: IntentSessionActors::new(seed),
            queue: EventQueue::default(),
            server_paused_until: 0,
            server_wake: None,
            server_start: None,
            resources: rng.between(1, 5),
            clocks_agree,
            in_flight: BTreeMap::new(),
            tickets: BTreeMap::new(),
            last_request_id: 0,
            granted: BTreeMap::new(),
            gates: BTreeMap::new(),
            written: BTreeMap::new(),
            winding_down: false,
            now: 0,
            rng,
        };
        scenario.start_server_at(0);
        scenario.queue.schedule(2 * SECOND, ScenarioEvent::Fault);
        for client in 0..scenario.clients.len() {
            let at = scenario.rng.below(SECOND);
            scenario.queue.schedule(at, ScenarioEvent::ClientActs { client });
        }
        scenario.schedule_sessions();
        scenario
    }

    fn step(&mut self, log: &mut SimulationLog) -> InvariantResult {
        let Some((at, next)) = self.queue.pop() else { return Ok(()) };
        self.now = at;
        if let Some(later) = self.paused_until(&next) {
            self.queue.schedule(later, next);
            return Ok(());
        }
        log.line(format_args!("{at} {next:?}"));
        self.handle_event(next, log)?;
        self.sessions.check_exclusive_resources(self.now)?;
        self.check_no_conflicting_beliefs()
    }

    fn wind_down(&mut self, log: &mut SimulationLog) -> InvariantResult {
        self.winding_down = true;
        self.queue.schedule(self.now, ScenarioEvent::DiskHasSpace);
        let end = self.now + 120 * SECOND;
        while self.now < end {
            self.step(log)?;
        }
        let is_idle = self.host.ledger_model().is_idle();
        ensure(is_idle, || {
            format!(
                "still held or waited for: {:?}",
                self.host.ledger_model().active_leases().collect::<Vec<_>>()
            )
        })?;
        let unfinished_session = self.host.ledger_model().sessions().active().next();
        ensure(unfinished_session.is_none(), || format!("a session never ends: {unfinished_session:?}"))?;
        self.host.check_state_against_reducer()
    }
}

impl ClientsScenario {
    /// A process that is paused does nothing until it goes on.
    fn paused_until(&self, next: &ScenarioEvent) -> Option<u64> {
        let until = match next {
            ScenarioEvent::RequestArrives { .. }
            | ScenarioEvent::SessionRequestArrives { .. }
            | ScenarioEvent::ServerWakes { .. }
            | ScenarioEvent::WriteEnds { .. } => self.server_paused_until,
            ScenarioEvent::WorkerActs { .. } | ScenarioEvent::SessionAnswerArrives { .. } => {
                self.sessions.paused_until(next)
            }
            ScenarioEvent::ReplyArrives { to: RequestOrigin { client, .. }, .. }
            | ScenarioEvent::ClientWakes { client, .. }
            | ScenarioEvent::ClientActs { client } => self.clients[*client].paused_until,
            _ => 0,
        };
        (until > self.now).then_some(until)
    }

    fn handle_event(&mut self, next: ScenarioEvent, log: &mut SimulationLog) -> InvariantResult {
        match next {
            ScenarioEvent::ServerStarts { at } if self.server_start != Some(at) => Ok(()),
            ScenarioEvent::ServerStarts { .. } => {
                self.server_start = None;
                let effects = self.host.start(self.now, log)?;
                if self.host.registrar().is_none() {
                    self.start_server_at(self.now + SECOND);
                }
                self.apply_server_effects(effects, log)
            }
            ScenarioEvent::ServerWakes { at } if self.server_wake == Some(at) => {
                self.server_wake = None;
                self.step_server(Input::Woken, log)
            }
            ScenarioEvent::WriteEnds { incarnation, write } if incarnation == self.host.incarnation => {
                let effects = self.host.complete_write(write, self.now)?;
                self.apply_server_effects(effects, log)
            }
            ScenarioEvent::ServerWakes { .. } | ScenarioEvent::WriteEnds { .. } => Ok(()),
            ScenarioEvent::RequestArrives { from, command } => {
                self.last_request_id += 1;
                let caller = RequestId(self.last_request_id);
                if self.host.registrar().is_none() {
                    self.reply(from, ReplyOutcome::Failed);
                    return Ok(());
                }
                self.in_flight.insert(caller, from);
                self.step_server(Input::Request { caller, command }, log)
            }
            ScenarioEvent::ReplyArrives { to, outcome } => {
                let client = &self.clients[to.client];
                if (client.process, client.tasks_started) == (to.process, to.task) {
                    let input = ClientInput::Replied { request_id: to.attempt, outcome };
                    self.step_client(to.client, input, log);
                }
                Ok(())
            }
            ScenarioEvent::ClientWakes { client, at } => {
                if self.clients[client].planned_wake == Some(at) {
                    self.clients[client].planned_wake = None;
                    self.step_client(client, ClientInput::Woken, log);
                }
                Ok(())
            }
            ScenarioEvent::ClientActs { client } => {
                self.act_client(client, log);
                Ok(())
            }
            ScenarioEvent::StoreWrite { resource, fence } => self.write_store(resource, fence, log),
            ScenarioEvent::ViewerActs => {
                self.step_viewer(log);
                Ok(())
            }
            ScenarioEvent::WorkerActs { worker_index } => {
                self.step_worker(worker_index, log);
                Ok(())
            }
            ScenarioEvent::SessionRequestArrives { request, command } => {
                self.receive_session_request(request, command, log)
            }
            ScenarioEvent::SessionAnswerArrives { request, answer } => {
                self.handle_session_answer(request, answer, log);
                Ok(())
            }
            ScenarioEvent::DiskHasSpace => {
                self.host.free_disk();
                self.step_server(Input::Woken, log)
            }
            ScenarioEvent::Fault => self.inject_fault(log),
        }
    }

    /// Whatever start was planned before is off: a machine that goes down again comes up once.
    fn start_server_at(&mut self, at: u64) {
        self.server_start = Some(at);
        self.queue.schedule(at, ScenarioEvent::ServerStarts { at });
    }

    fn step_server(&mut self, input: Input, log: &mut SimulationLog) -> InvariantResult {
        let effects = self.host.step(input, self.now)?;
        self.apply_server_effects(effects, log)
    }

    fn apply_server_effects(&mut self, effects: Vec<Effect>, log: &mut SimulationLog) -> InvariantResult {
        for effect in effects {
            record_server_effect(&effect, log);
            match effect {
                Effect::Append(_) => {
                    let write = WriteResult::any(self.winding_down, &mut self.rng);
                    let slow = !self.winding_down && self.rng.percent(1);
                    let longest = if slow { 6 * SECOND } else { 3_000 };
                    let at = self.now + self.rng.delay(100, longest);
                    let incarnation = self.host.incarnation;
                    self.queue.schedule(at, ScenarioEvent::WriteEnds { incarnation, write });
                }
                Effect::Publish(events) => log.line(format_args!("{} durable {events:?}", self.now)),
                Effect::Answer { request: caller, reply } => self.deliver_answer(caller, reply)?,
                Effect::Served { ticket, leases } => {
                    if let Some((from, stamp)) = self.tickets.remove(&ticket) {
                        let outcome = self.grant_outcome(&leases, stamp)?;
                        self.reply(from, outcome);
                    }
                }
                Effect::Unserved { ticket, .. } => {
                    if let Some((from, _)) = self.tickets.remove(&ticket) {
                        self.reply(from, ReplyOutcome::Refused);
                    }
                }
                Effect::ServedTooLate { ticket } => {
                    if let Some((from, _)) = self.tickets.remove(&ticket) {
                        self.reply(from, ReplyOutcome::Failed);
                    }
                }
                Effect::StepDown(_) => {
                    self.tickets.clear();
                    let at = self.now + self.rng.delay(1_000, SECOND);
                    self.start_server_at(at);
                }
            }
        }
        // One timer, set to the next thing to do.
        let wake = self.host.next_wake_time().map(|at| at.max(self.now));
        if let Some(at) = wake.filter(|_| wake != self.server_wake) {
            self.queue.schedule(at, ScenarioEvent::ServerWakes { at });
        }
        self.server_wake = wake;
        Ok(())
    }

    fn deliver_answer(&mut self, caller: RequestId, reply: Reply) -> InvariantResult {
        if let Some(request) = self.sessions.requests.remove(&caller) {
            return self.deliver_session_answer(request, reply);
        }
        let Some(from) = self.in_flight.remove(&caller) else { return Ok(()) };
        let outcome = match reply {
            Reply::Answered { answer, stamp } => match answer {
                CommandOutcome::Granted { leases } => self.grant_outcome(&leases, stamp)?,
                CommandOutcome::Renewed { lease, .. } => self.grant_outcome(&[lease], stamp)?,
                CommandOutcome::Queued { ticket, .. } => {
                    self.tickets.insert(ticket, (from, stamp));
                    ReplyOutcome::Queued
                }
                CommandOutcome::Rejected(Rejection::Ended { .. } | Rejection::NotFound) => {
                    ReplyOutcome::Ended
                }
                _ => ReplyOutcome::Refused,
            },
            Reply::Busy | Reply::Unavailable | Reply::OutcomeUnknown | Reply::TooLate => ReplyOutcome::Failed,
        };
        self.reply(from, outcome);
        Ok(())
    }

    /// What a holder is told: how long its lease lives on from when its request came in.
    fn grant_outcome(&mut self, leases: &[Fence], stamp: Tick) -> Result<ReplyOutcome, Violation> {
        let fence = leases[0];
        self.host.ledger_model().check_acknowledged(fence)?;
        let view = self.host.registrar().and_then(|registrar| registrar.state().lease(fence));
        let valid_for = view.map_or(TickDuration(0), |view| view.terms.expires_at.since(stamp));
        self.granted.extend(view.map(|view| (fence, view.resource.clone())));
        Ok(ReplyOutcome::Valid { fence, valid_for })
    }

    fn reply(&mut self, to: RequestOrigin, outcome: ReplyOutcome) {
        if let Some(at) = self.delivery_time(to.client) {
            self.queue.schedule(at, ScenarioEvent::ReplyArrives { to, outcome });
        }
    }

    /// When a message from or to this client arrives, if it does.
    fn delivery_time(&mut self, client: usize) -> Option<u64> {
        let cut_off = self.clients[client].cut_off_until > self.now;
        if cut_off || (!self.winding_down && self.rng.percent(3)) {
            return None;
        }
        let longest = if self.rng.percent(3) { 10 * SECOND } else { 20_000 };
        Some(self.now + self.rng.delay(50, longest))
    }

    fn step_client(&mut self, client: usize, input: ClientInput, log: &mut SimulationLog) {
        let effects = self.clients[client].step(input, self.now, &mut self.rng);
        self.apply_client_effects(client, &effects, log);
    }

    fn apply_client_effects(&mut self, client: usize, effects: &[ClientEffect], log: &mut SimulationLog) {
        for effect in effects {
            record_client_effect(effect, log);
            match effect {
                ClientEffect::Send { request_id: attempt, request: call } => {
                    self.send(client, *attempt, *call)
                }
                ClientEffect::Held(_) | ClientEffect::Lost | ClientEffect::Refused => {}
            }
        }
        let now = self.now;
        let machine = &mut self.clients[client];
        let wake = machine.next_wake_time().map(|at| at.max(now));
        if let Some(at) = wake.filter(|_| wake != machine.planned_wake) {
            self.queue.schedule(at, ScenarioEvent::ClientWakes { client, at });
        }
        machine.planned_wake = wake;
    }

    fn send(&mut self, client: usize, attempt: AttemptId, call: KeepAliveRequest) {
        let SimulatedClient { process, tasks_started: task, .. } = self.clients[client];
        let from = RequestOrigin { client, process, task, attempt };
        let Some(command) = self.clients[client].command(call, self.ticket_of(client)) else {
            // Who looks for its place in the queue, and finds none, need not leave it.
            return self.reply(from, ReplyOutcome::Ended);
        };
        // A message may arrive twice; nothing may happen twice.
        for _ in 0..if self.rng.percent(2) { 2 } else { 1 } {
            if let Some(at) = self.delivery_time(client) {
                self.queue.schedule(at, ScenarioEvent::RequestArrives { from, command: command.clone() });
            }
        }
    }

    /// Where in the queue a client is, as the server would tell it.
    fn ticket_of(&self, client: usize) -> Option<Ticket> {
        let machine = &self.clients[client];
        // It stands in the queue of each; one is enough to find it.
        let (holder, resource) = (machine.holder(), machine.task.as_ref()?.resources.first()?);
        let mut queue = self.host.registrar()?.state().queue_of(resource);
        queue.find(|waiting| *waiting.holder == holder).map(|waiting| waiting.ticket)
    }

    fn act_client(&mut self, client: usize, log: &mut SimulationLog) {
        let is_idle = self.clients[client].task.as_ref().is_none_or(|errand| errand.keepalive.is_done());
        let done = self.clients[client].task.as_ref().is_some_and(|errand| errand.done_at <= self.now);
        if is_idle && !self.winding_down {
            let effects = self.clients[client].start_task(self.now, self.resources, &mut self.rng);
            self.apply_client_effects(client, &effects, log);
        } else if done || self.winding_down {
            self.step_client(client, ClientInput::Stop, log);
        } else if let Some((fence, _)) = self.clients[client].locally_valid_lease(self.now) {
            // The write is on its way for a while, and may arrive when the lease is long over.
            let resource = self.granted[&fence].clone();
            let at = self.now + self.rng.delay(100, 15 * SECOND);
            self.queue.schedule(at, ScenarioEvent::StoreWrite { resource, fence });
        }
        let at = self.now + self.rng.delay(100_000, 2 * SECOND);
        self.queue.schedule(at, ScenarioEvent::ClientActs { client });
    }

    /// The store refuses every writer that is late, and never the newest one.
    fn write_store(&mut self, resource: Resource, fence: Fence, log: &mut SimulationLog) -> InvariantResult {
        let admitted = self.gates.entry(resource.clone()).or_default().admit(fence).is_ok();
        log.record_coverage(if admitted { "store written" } else { "stale write refused" });
        let newest = self.written.entry(resource.clone()).or_default();
        ensure(admitted == (fence >= *newest), || {
            format!("{resource}: {fence:?} after {newest:?}: {admitted}")
        })?;
        *newest = fence.max(*newest);
        Ok(())
    }

    fn check_no_conflicting_beliefs(&self) -> InvariantResult {
        if !self.clocks_agree {
            return Ok(());
        }
        let believers: Vec<_> =
            self.clients.iter().filter_map(|client| client.locally_valid_lease(self.now)).collect();
        for (index, (fence, errand)) in believers.iter().enumerate() {
            for (other, rival) in &believers[index + 1..] {
                let (resource, another) = (&self.granted[fence], &self.granted[other]);
                let is_exclusive = resource != another || errand.mode.is_compatible(rival.mode);
                ensure(is_exclusive, || format!("{fence:?} and {other:?} both believe to hold {resource}"))?;
            }
        }
        Ok(())
    }
}
