//! The third scenario: thirty-two agents that need the same twenty resources, and a server that fails under them.
//!
//! Each follows the protocol while its messages are lost, duplicated or delayed, and while its process exits and restarts.

mod agent;
mod server;

use std::collections::BTreeMap;

use tenure_core::kernel::{Command, CommandOutcome, Limits, Tick, TickDuration};
use tenure_registrar::{BatchSettings, Input, RequestId};

use self::agent::{RequestKind, SimulatedAgent};
use crate::event_queue::EventQueue;
use crate::host::{ServerMachine, WriteResult};
use crate::invariants::{InvariantResult, ensure};
use crate::rng::Rng;
use crate::run::Scenario;
use crate::simulation_log::SimulationLog;
use crate::storage::Storage;

#[derive(Debug)]
pub struct AgentsScenario {
    rng: Rng,
    queue: EventQueue<ScenarioEvent>,
    host: ServerMachine,
    agents: Vec<SimulatedAgent>,
    in_flight: BTreeMap<RequestId, InFlightRequest>,
    last_request_id: u64,
    server_wake: Option<u64>,
    server_start: Option<u64>,
    server_paused_until: u64,
    winding_down: bool,
    now: u64,
}

#[derive(Debug, Clone, Copy)]
struct InFlightRequest {
    agent: usize,
    process: u64,
    ask: RequestKind,
}

#[derive(Debug)]
enum ScenarioEvent {
    AgentActs { agent: usize },
    RequestArrives { request: InFlightRequest, command: Command },
    ReplyArrives { request: InFlightRequest, answer: CommandOutcome, stamp: Tick },
    ServerWakes { at: u64 },
    ServerStarts { at: u64 },
    WriteEnds { incarnation: u64, write: WriteResult },
    DiskHasSpace,
    Fault,
}

const SECOND: u64 = 1_000_000;
const AGENTS: usize = 32;

impl Scenario for AgentsScenario {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x0A6E_4757);
        let settings = BatchSettings {
            max_waiting: 128,
            max_batch: 8,
            max_sweep: 4,
            stride: 2,
            write_threshold: 3,
            ..BatchSettings::default()
        };
        let tight = rng.percent(40);
        let limits = Limits {
            max_agent_hold_time: tight.then_some(TickDuration::from_secs(20)),
            max_agent_idle_time: tight.then_some(TickDuration::from_secs(6)),
            ..Limits::default()
        };
        let drift = i64::try_from(rng.below(4_801)).unwrap_or(0) - 2_400;
        let mut scenario = Self {
            host: ServerMachine::new(0, drift, settings, limits, Storage::for_seed(seed)),
            agents: (0..AGENTS).map(|number| SimulatedAgent::new(number, &mut rng)).collect(),
            queue: EventQueue::default(),
            in_flight: BTreeMap::new(),
            last_request_id: 0,
            server_wake: None,
            server_start: None,
            server_paused_until: 0,
            winding_down: false,
            now: 0,
            rng,
        };
        scenario.start_server_at(0);
        scenario.queue.schedule(2 * SECOND, ScenarioEvent::Fault);
        for agent in 0..AGENTS {
            let at = scenario.rng.below(SECOND);
            scenario.queue.schedule(at, ScenarioEvent::AgentActs { agent });
        }
        scenario
    }

    fn step(&mut self, log: &mut SimulationLog) -> InvariantResult {
        let Some((at, next)) = self.queue.pop() else { return Ok(()) };
        self.now = at;
        let of_server = matches!(
            next,
            ScenarioEvent::RequestArrives { .. }
                | ScenarioEvent::ServerWakes { .. }
                | ScenarioEvent::WriteEnds { .. }
        );
        if of_server && self.server_paused_until > at {
            self.queue.schedule(self.server_paused_until, next);
            return Ok(());
        }
        log.line(format_args!("{at} {next:?}"));
        self.handle_event(next, log)
    }

    /// Without faults everybody gets what it wants, the oldest first, and lets go of it.
    fn wind_down(&mut self, log: &mut SimulationLog) -> InvariantResult {
        self.winding_down = true;
        self.queue.schedule(self.now, ScenarioEvent::DiskHasSpace);
        let end = self.now + 300 * SECOND;
        while self.now < end {
            self.step(log)?;
        }
        let stuck = self.agents.iter().find(|agent| !agent.is_idle());
        ensure(stuck.is_none(), || format!("somebody never gets through: {stuck:?}"))?;
        ensure(self.host.ledger_model().is_idle(), || {
            let laws = self.host.ledger_model();
            format!("held or waited for, for ever: {:?}", laws.active_leases().collect::<Vec<_>>())
        })?;
        self.host.check_state_against_reducer()
    }
}

impl AgentsScenario {
    fn handle_event(&mut self, next: ScenarioEvent, log: &mut SimulationLog) -> InvariantResult {
        match next {
            ScenarioEvent::AgentActs { agent } => {
                self.act_agent(agent);
                Ok(())
            }
            ScenarioEvent::RequestArrives { request, command } => {
                if self.host.registrar().is_none() {
                    return Ok(());
                }
                self.last_request_id += 1;
                let caller = RequestId(self.last_request_id);
                self.in_flight.insert(caller, request);
                self.step_server(Input::Request { caller, command }, log)
            }
            ScenarioEvent::ReplyArrives { request, answer, stamp } => {
                let agent = &mut self.agents[request.agent];
                if agent.process == request.process && agent.gone_until <= self.now {
                    let before = agent.granted;
                    agent.handle_answer(request.ask, &answer, stamp, self.now, &mut self.rng);
                    if agent.granted > before {
                        log.record_coverage("agent got all that it wanted");
                    }
                }
                Ok(())
            }
            ScenarioEvent::ServerStarts { at } if self.server_start != Some(at) => Ok(()),
            ScenarioEvent::ServerStarts { .. } => self.start_server(log),
            ScenarioEvent::ServerWakes { at } if self.server_wake == Some(at) => {
                self.server_wake = None;
                self.step_server(Input::Woken, log)
            }
            ScenarioEvent::WriteEnds { incarnation, write } if incarnation == self.host.incarnation => {
                let effects = self.host.complete_write(write, self.now)?;
                self.apply_server_effects(effects, log)
            }
            ScenarioEvent::ServerWakes { .. } | ScenarioEvent::WriteEnds { .. } => Ok(()),
            ScenarioEvent::DiskHasSpace => {
                self.host.free_disk();
                self.step_server(Input::Woken, log)
            }
            ScenarioEvent::Fault => self.inject_fault(log),
        }
    }

    fn act_agent(&mut self, number: usize) {
        let agent = &mut self.agents[number];
        let asks = agent.due_requests(self.now, self.winding_down, &mut self.rng);
        for (ask, command) in asks {
            self.send(number, ask, command);
        }
        let at = self.now + self.rng.between(100_000, 600_000);
        self.queue.schedule(at, ScenarioEvent::AgentActs { agent: number });
    }

    /// A message may arrive twice; nothing may happen twice.
    fn send(&mut self, number: usize, ask: RequestKind, command: Command) {
        let request = InFlightRequest { agent: number, process: self.agents[number].process, ask };
        for _ in 0..if self.rng.percent(2) { 2 } else { 1 } {
            if let Some(at) = self.delivery_time(number) {
                self.queue.schedule(at, ScenarioEvent::RequestArrives { request, command: command.clone() });
            }
        }
    }

    /// When a message from or to this agent arrives, if it does.
    fn delivery_time(&mut self, number: usize) -> Option<u64> {
        let cut_off = self.agents[number].cut_off_until > self.now;
        if cut_off || (!self.winding_down && self.rng.percent(3)) {
            return None;
        }
        let longest = if !self.winding_down && self.rng.percent(3) { 10 * SECOND } else { 20_000 };
        Some(self.now + self.rng.delay(50, longest))
    }

    fn fail_agent(&mut self, log: &mut SimulationLog) {
        let number = usize::try_from(self.rng.below(AGENTS as u64)).unwrap_or(0);
        match self.rng.below(4) {
            0 => {
                log.record_coverage("agent cut off");
                self.agents[number].cut_off_until = self.now + self.rng.delay(10_000, 20 * SECOND);
            }
            kind => {
                let orderly = kind != 1;
                log.record_coverage(if orderly { "agent restarted" } else { "agent crashed" });
                let command = self.agents[number].crash(self.now, orderly, &mut self.rng);
                if let Some(command) = command {
                    self.send(number, RequestKind::Other, command);
                }
            }
        }
    }
}
