//! The fourth scenario: coding agents that edit one working tree, in processes that start and exit, and a server that fails
//! under them.
//!
//! Each requests a file before it edits, and retries in time, early, or never; it commits, ends its turn, exits, or is killed
//! between two instructions. A request for it checks whether the processes of the holders are alive, and says so.

mod agent;
mod server;

use std::collections::BTreeMap;

use tenure_core::kernel::{
    Acquire, Command, CommandOutcome, ContentionPolicy, FileCommand, FileSessionEnd, Holder, LeaseMode,
    LeaseRequest, Limits, Nonce, Principal, Tick, TickDuration,
};
use tenure_registrar::{BatchSettings, Input, RequestId};

use self::agent::{SimulatedCodingAgent, resource};
use crate::event_queue::EventQueue;
use crate::host::{ServerMachine, WriteResult};
use crate::invariants::{InvariantResult, ensure};
use crate::rng::Rng;
use crate::run::Scenario;
use crate::simulation_log::SimulationLog;
use crate::storage::Storage;

/// A working tree, those who edit it, and their server.
#[derive(Debug)]
pub struct FilesScenario {
    rng: Rng,
    queue: EventQueue<ScenarioEvent>,
    host: ServerMachine,
    agents: Vec<SimulatedCodingAgent>,
    in_flight: BTreeMap<RequestId, InFlightRequest>,
    last_request_id: u64,
    last_request: u64,
    server_wake: Option<u64>,
    server_start: Option<u64>,
    winding_down: bool,
    now: u64,
}

/// A request under way, and whose session it is about, if its answer matters to anybody.
#[derive(Debug, Clone)]
struct InFlightRequest {
    request: u64,
    by: Option<Holder>,
}

#[derive(Debug)]
enum ScenarioEvent {
    AgentActs { agent: usize, incarnation: u64 },
    Retry { by: Holder, checked: Vec<Holder> },
    IdleReleaseDue { session: Holder },
    ProcessDies { agent: usize },
    ProcessRestarts { agent: usize },
    PlainClientActs,
    RequestArrives { request: InFlightRequest, command: Command },
    ReplyArrives { by: Holder, answer: CommandOutcome, stamp: Tick },
    ServerWakes { at: u64 },
    ServerStarts { at: u64 },
    WriteEnds { incarnation: u64, write: WriteResult },
    DiskHasSpace,
    Fault,
}

const SECOND: u64 = 1_000_000;
const AGENTS: usize = 8;
/// So many seconds after the last wish everything is over: somebody who is no agent waits for at most 60, and then has it for
/// at most 90.
const WIND_DOWN_SECONDS: u64 = 180;

impl Scenario for FilesScenario {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x0F11_E500);
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
            agents: (0..AGENTS).map(SimulatedCodingAgent::new).collect(),
            queue: EventQueue::default(),
            in_flight: BTreeMap::new(),
            last_request_id: 0,
            last_request: 0,
            server_wake: None,
            server_start: None,
            winding_down: false,
            now: 0,
            rng,
        };
        scenario.start_server_at(0);
        scenario.queue.schedule(20 * SECOND, ScenarioEvent::Fault);
        scenario.queue.schedule(5 * SECOND, ScenarioEvent::PlainClientActs);
        for agent in 0..AGENTS {
            let at = scenario.rng.below(10 * SECOND);
            scenario.queue.schedule(at, ScenarioEvent::AgentActs { agent, incarnation: 0 });
        }
        scenario
    }

    fn step(&mut self, log: &mut SimulationLog) -> InvariantResult {
        let Some((at, next)) = self.queue.pop() else { return Ok(()) };
        self.now = at;
        log.line(format_args!("{at} {next:?}"));
        self.handle_event(next, log)
    }

    /// Without faults every session comes to its end, and leaves nothing behind.
    fn wind_down(&mut self, log: &mut SimulationLog) -> InvariantResult {
        self.winding_down = true;
        self.queue.schedule(self.now, ScenarioEvent::DiskHasSpace);
        let end = self.now + WIND_DOWN_SECONDS * SECOND;
        let mut next_sweep = self.now + 20 * SECOND;
        // Something has to happen for time to pass.
        for second in 0..=WIND_DOWN_SECONDS {
            self.queue.schedule(self.now + second * SECOND, ScenarioEvent::DiskHasSpace);
        }
        while self.now < end {
            if self.now >= next_sweep {
                next_sweep = self.now + 5 * SECOND;
                let all: Vec<Holder> = self.host.ledger_model().files().sessions().cloned().collect();
                for session in all {
                    self.end(vec![session.clone()], self.end_reason(&session));
                }
            }
            self.step(log)?;
        }
        let files = self.host.ledger_model().files();
        ensure(files.is_idle(), || format!("sessions or files for ever: {files:?}"))?;
        let laws = self.host.ledger_model();
        ensure(laws.is_idle(), || format!("held for ever: {:?}", laws.active_leases().collect::<Vec<_>>()))?;
        self.host.check_state_against_reducer()
    }
}

impl FilesScenario {
    fn handle_event(&mut self, next: ScenarioEvent, log: &mut SimulationLog) -> InvariantResult {
        match next {
            ScenarioEvent::AgentActs { agent, incarnation: life }
                if self.agents[agent].incarnation == life =>
            {
                self.step_agent(agent, log)
            }
            ScenarioEvent::Retry { by, checked } => self.retry_request(&by, checked),
            ScenarioEvent::IdleReleaseDue { session } => self.release_idle(&session),
            ScenarioEvent::ProcessDies { agent } => self.kill_agent_process(agent, log),
            ScenarioEvent::ProcessRestarts { agent } if !self.winding_down => {
                self.agents[agent].restart();
                let life = self.agents[agent].incarnation;
                self.queue.schedule(self.now, ScenarioEvent::AgentActs { agent, incarnation: life });
            }
            ScenarioEvent::PlainClientActs => self.act_plain_client(),
            ScenarioEvent::RequestArrives { request, command } => {
                if self.host.registrar().is_some() {
                    self.last_request_id += 1;
                    let caller = RequestId(self.last_request_id);
                    self.in_flight.insert(caller, request);
                    return self.step_server(Input::Request { caller, command }, log);
                }
                self.host.ledger_model_mut().files_mut().end_request(request.request);
            }
            ScenarioEvent::ReplyArrives { by, answer, stamp } => self.handle_answer(&by, &answer, stamp, log),
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
            ScenarioEvent::AgentActs { .. }
            | ScenarioEvent::ProcessRestarts { .. }
            | ScenarioEvent::ServerStarts { .. }
            | ScenarioEvent::ServerWakes { .. }
            | ScenarioEvent::WriteEnds { .. } => {}
        }
        Ok(())
    }

    /// Sends a request; `checked` is whose life was just made sure of, for whom.
    fn send(&mut self, by: Option<Holder>, command: FileCommand, checked: Option<(Holder, Vec<Holder>)>) {
        self.last_request += 1;
        let request = self.last_request;
        if let Some(at) = self.delivery_time() {
            if let Some((asking, living)) = checked {
                self.host.ledger_model_mut().files_mut().record_liveness_check(request, asking, living);
            }
            let command = Command::File(Box::new(command));
            self.queue.schedule(
                at,
                ScenarioEvent::RequestArrives { request: InFlightRequest { request, by }, command },
            );
        }
    }

    /// When a message arrives, if it does.
    fn delivery_time(&mut self) -> Option<u64> {
        if !self.winding_down && self.rng.percent(3) {
            return None;
        }
        let longest = if !self.winding_down && self.rng.percent(3) { 20 * SECOND } else { 20_000 };
        Some(self.now + self.rng.delay(50, longest))
    }

    fn end(&mut self, sessions: Vec<Holder>, end: FileSessionEnd) {
        self.send(None, FileCommand::End { sessions, end, detail: "ended".into() }, None);
    }

    fn end_reason(&self, session: &Holder) -> FileSessionEnd {
        if self.is_process_alive(session) { FileSessionEnd::Ended } else { FileSessionEnd::Died }
    }

    /// Whether the process of a session lives: somebody looks.
    fn is_process_alive(&self, session: &Holder) -> bool {
        self.agents.iter().any(|agent| agent.is_alive && agent.has_session(session))
    }

    /// Somebody who is no agent leases a file now and then, and may wait for it.
    fn act_plain_client(&mut self) {
        if self.winding_down {
            return;
        }
        let at = self.now + self.rng.delay(SECOND, 60 * SECOND);
        self.queue.schedule(at, ScenarioEvent::PlainClientActs);
        let ttl = TickDuration::from_secs(self.rng.between(1, 90));
        let request =
            LeaseRequest::new(resource(self.rng.below(8)), LeaseMode::Exclusive, ttl, Nonce([8; 16]));
        let patience = TickDuration::from_secs(self.rng.below(60));
        let command = Command::Acquire(Acquire {
            principal: Principal::parse("owner").expect("a plain name"),
            holder: Holder::parse(&format!("person-{}", self.rng.below(3))).expect("a plain name"),
            requests: vec![request],
            contention_policy: ContentionPolicy::Queue { wait_timeout: patience },
            key: None,
        });
        self.last_request += 1;
        let request = InFlightRequest { request: self.last_request, by: None };
        if let Some(at) = self.delivery_time() {
            self.queue.schedule(at, ScenarioEvent::RequestArrives { request, command });
        }
    }
}
