//! The fifth scenario: clients that claim work, derive leases for each other and spend, and a server that fails under them.
//!
//! A request with an idempotency key is repeated until it is answered, by the next process of its client too. Some clients
//! use leases of others with a credential that is not theirs. An administrator revokes leases, and reclaims those of a client
//! whose process exited.

mod client;
mod server;

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::kernel::{
    Command, CommandOutcome, Fence, Holder, Limits, Principal, Rejection, RevocationCause,
};
use tenure_registrar::{BatchSettings, Input, RequestId};

use self::client::{HeldWorkLease, SimulatedWorkClient};
use crate::event_queue::EventQueue;
use crate::host::{ServerMachine, WriteResult};
use crate::invariants::{InvariantResult, ensure};
use crate::rng::Rng;
use crate::run::Scenario;
use crate::simulation_log::SimulationLog;
use crate::storage::Storage;

#[derive(Debug)]
pub struct WorkScenario {
    rng: Rng,
    queue: EventQueue<ScenarioEvent>,
    host: ServerMachine,
    clients: Vec<SimulatedWorkClient>,
    in_flight: BTreeMap<RequestId, InFlightRequest>,
    last_request_id: u64,
    /// Requests that the server acknowledged.
    acknowledged: BTreeSet<RequestOrigin>,
    server_wake: Option<u64>,
    server_start: Option<u64>,
    server_paused_until: u64,
    winding_down: bool,
    now: u64,
}

/// A client and the number of its request.
type RequestOrigin = (usize, u64);

#[derive(Debug, Clone)]
struct InFlightRequest {
    /// Nothing for requests of the administrator.
    origin: Option<RequestOrigin>,
    command: Command,
}

#[derive(Debug)]
enum ScenarioEvent {
    ClientActs { client: usize },
    RequestArrives { request: InFlightRequest },
    ReplyArrives { origin: RequestOrigin, answer: CommandOutcome },
    LeaseArrives { client: usize, lease: HeldWorkLease },
    AdministratorActs,
    ServerWakes { at: u64 },
    ServerStarts { at: u64 },
    WriteEnds { incarnation: u64, write: WriteResult },
    DiskHasSpace,
    Fault,
}

const SECOND: u64 = 1_000_000;
const CLIENTS: usize = 12;
/// Clients with one principal. Only they derive leases for each other.
const TEAM_SIZE: usize = 4;
/// Longer than a client is away, repeats a request, and holds its last lease.
const WIND_DOWN_SECONDS: u64 = 120;

impl Scenario for WorkScenario {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x3082_D6E7);
        let settings = BatchSettings {
            max_waiting: 128,
            max_batch: 8,
            max_sweep: 4,
            stride: 2,
            write_threshold: 3,
            ..BatchSettings::default()
        };
        let drift = i64::try_from(rng.below(4_801)).unwrap_or(0) - 2_400;
        let mut scenario = Self {
            host: ServerMachine::new(0, drift, settings, Limits::default(), Storage::for_seed(seed)),
            clients: (0..CLIENTS).map(SimulatedWorkClient::new).collect(),
            queue: EventQueue::default(),
            in_flight: BTreeMap::new(),
            last_request_id: 0,
            acknowledged: BTreeSet::new(),
            server_wake: None,
            server_start: None,
            server_paused_until: 0,
            winding_down: false,
            now: 0,
            rng,
        };
        scenario.start_server_at(0);
        scenario.queue.schedule(2 * SECOND, ScenarioEvent::Fault);
        scenario.queue.schedule(5 * SECOND, ScenarioEvent::AdministratorActs);
        for client in 0..CLIENTS {
            let at = scenario.rng.below(SECOND);
            scenario.queue.schedule(at, ScenarioEvent::ClientActs { client });
        }
        scenario
    }

    fn step(&mut self, log: &mut SimulationLog) -> InvariantResult {
        let Some((at, next)) = self.queue.pop() else { return Ok(()) };
        self.now = at;
        let is_of_server = matches!(
            next,
            ScenarioEvent::RequestArrives { .. }
                | ScenarioEvent::ServerWakes { .. }
                | ScenarioEvent::WriteEnds { .. }
        );
        if is_of_server && self.server_paused_until > at {
            self.queue.schedule(self.server_paused_until, next);
            return Ok(());
        }
        log.line(format_args!("{at} {next:?}"));
        self.handle_event(next, log)
    }

    /// Without faults every request is answered, and every lease is released or expires.
    fn wind_down(&mut self, log: &mut SimulationLog) -> InvariantResult {
        self.winding_down = true;
        self.queue.schedule(self.now, ScenarioEvent::DiskHasSpace);
        let end = self.now + WIND_DOWN_SECONDS * SECOND;
        while self.now < end {
            self.step(log)?;
        }
        let waiting = self.clients.iter().find(|client| !client.is_idle());
        ensure(waiting.is_none(), || format!("a client never gets an answer: {waiting:?}"))?;
        let model = self.host.ledger_model();
        ensure(model.is_idle(), || {
            format!("leases never end: {:?}", model.active_leases().collect::<Vec<_>>())
        })?;
        self.host.registrar().map_or(Ok(()), |registrar| model.work().check_sums(registrar.state()))?;
        self.host.check_state_against_reducer()
    }
}

impl WorkScenario {
    fn handle_event(&mut self, next: ScenarioEvent, log: &mut SimulationLog) -> InvariantResult {
        match next {
            ScenarioEvent::ClientActs { client } => self.act_client(client),
            ScenarioEvent::RequestArrives { request } if self.host.registrar().is_some() => {
                self.last_request_id += 1;
                let caller = RequestId(self.last_request_id);
                let command = request.command.clone();
                self.in_flight.insert(caller, request);
                return self.step_server(Input::Request { caller, command }, log);
            }
            ScenarioEvent::ReplyArrives { origin: (client, request), answer } => {
                if self.clients[client].gone_until <= self.now {
                    let granted = self.clients[client].handle_answer(request, &answer, self.now);
                    if let Some((recipient, lease)) = granted {
                        self.pass_on(client, recipient, lease, log);
                    }
                }
            }
            ScenarioEvent::LeaseArrives { client, lease } if self.clients[client].gone_until <= self.now => {
                self.clients[client].add_lease(lease);
            }
            ScenarioEvent::AdministratorActs => self.act_administrator(log),
            ScenarioEvent::ServerStarts { at } if self.server_start == Some(at) => {
                return self.start_server(log);
            }
            ScenarioEvent::ServerWakes { at } if self.server_wake == Some(at) => {
                self.server_wake = None;
                return self.step_server(Input::Woken, log);
            }
            ScenarioEvent::WriteEnds { incarnation, write } if incarnation == self.host.incarnation => {
                let effects = self.host.complete_write(write, self.now)?;
                return self.apply_server_effects(effects, log);
            }
            ScenarioEvent::DiskHasSpace => {
                self.host.free_disk();
                return self.step_server(Input::Woken, log);
            }
            ScenarioEvent::Fault => return self.inject_fault(log),
            ScenarioEvent::RequestArrives { .. }
            | ScenarioEvent::LeaseArrives { .. }
            | ScenarioEvent::ServerStarts { .. }
            | ScenarioEvent::ServerWakes { .. }
            | ScenarioEvent::WriteEnds { .. } => {}
        }
        Ok(())
    }

    fn act_client(&mut self, number: usize) {
        // Leases that another client holds, for requests without a credential of theirs.
        let foreign = if self.rng.percent(10) { self.foreign_lease(number) } else { None };
        let client = &mut self.clients[number];
        let requests = client.due_requests(self.now, self.winding_down, foreign, &mut self.rng);
        for (request, command) in requests {
            self.host.ledger_model_mut().work_mut().record_request(&command);
            // A message may arrive twice.
            for _ in 0..if self.rng.percent(3) { 2 } else { 1 } {
                if let Some(at) = self.delivery_time(number) {
                    let request =
                        InFlightRequest { origin: Some((number, request)), command: command.clone() };
                    self.queue.schedule(at, ScenarioEvent::RequestArrives { request });
                }
            }
        }
        let at = self.now + self.rng.between(200_000, 1_500_000);
        self.queue.schedule(at, ScenarioEvent::ClientActs { client: number });
    }

    fn foreign_lease(&mut self, number: usize) -> Option<(Fence, Holder)> {
        let own = self.clients[number].holder();
        let active = self.host.ledger_model().work().active_leases().filter(|(_, holder)| **holder != own);
        let active: Vec<_> = active.map(|(fence, holder)| (fence, holder.clone())).collect();
        (!active.is_empty()).then(|| self.rng.pick(&active).clone())
    }

    /// A client has a lease that it derived for a teammate.
    fn pass_on(&mut self, from: usize, recipient: usize, lease: HeldWorkLease, log: &mut SimulationLog) {
        if recipient == from {
            self.clients[from].add_lease(lease);
        } else if let Some(at) = self.delivery_time(from) {
            log.record_coverage("derived lease passed on");
            self.queue.schedule(at, ScenarioEvent::LeaseArrives { client: recipient, lease });
        }
    }

    fn act_administrator(&mut self, log: &mut SimulationLog) {
        let active: Vec<Fence> =
            self.host.ledger_model().work().active_leases().map(|(fence, _)| fence).collect();
        if self.winding_down {
            return;
        }
        let at = self.now + self.rng.delay(SECOND, 30 * SECOND);
        self.queue.schedule(at, ScenarioEvent::AdministratorActs);
        if !active.is_empty() {
            log.record_coverage("administrator revoked");
            let (lease, cause) = (*self.rng.pick(&active), RevocationCause::Revoked);
            self.send_as_administrator(Command::Revoke {
                lease,
                cause,
                by: administrator(),
                detail: "".into(),
            });
        }
    }

    fn send_as_administrator(&mut self, command: Command) {
        let at = self.now + self.rng.delay(50, 20_000);
        let request = InFlightRequest { origin: None, command };
        self.queue.schedule(at, ScenarioEvent::RequestArrives { request });
    }

    /// When a message from or to this client arrives, if it does.
    fn delivery_time(&mut self, number: usize) -> Option<u64> {
        let is_cut_off = self.clients[number].cut_off_until > self.now;
        if is_cut_off || (!self.winding_down && self.rng.percent(4)) {
            return None;
        }
        let longest = if !self.winding_down && self.rng.percent(4) { 10 * SECOND } else { 20_000 };
        Some(self.now + self.rng.delay(50, longest))
    }

    fn fail_client(&mut self, log: &mut SimulationLog) {
        let number = usize::try_from(self.rng.below(CLIENTS as u64)).unwrap_or(0);
        let client = &mut self.clients[number];
        if self.rng.percent(25) {
            log.record_coverage("client cut off");
            client.cut_off_until = self.now + self.rng.delay(10_000, 20 * SECOND);
            return;
        }
        let keeps_journal = self.rng.percent(60);
        log.record_coverage(if keeps_journal { "client restarted" } else { "client crashed" });
        client.crash(self.now + self.rng.delay(100_000, 15 * SECOND), keeps_journal);
        if self.rng.percent(30) {
            log.record_coverage("client reclaimed");
            let holder = client.holder();
            self.send_as_administrator(Command::Reclaim { holder, by: administrator(), detail: "".into() });
        }
    }
}

/// Whether the server may accept the same request later.
fn is_temporary(rejection: &Rejection) -> bool {
    matches!(rejection, Rejection::NoSpace)
}

fn administrator() -> Principal {
    Principal::parse("administrator").expect("a plain name")
}
