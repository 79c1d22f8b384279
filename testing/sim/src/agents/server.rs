//! The server of the agents: what it does, and its faults.

use tenure_core::kernel::{AgentOutcome, CommandOutcome};
use tenure_registrar::{Effect, Input, Reply};

use super::{AgentsScenario, InFlightRequest, SECOND, ScenarioEvent};
use crate::coverage::record_server_effect;
use crate::host::WriteResult;
use crate::invariants::InvariantResult;
use crate::simulation_log::SimulationLog;

impl AgentsScenario {
    pub(super) fn start_server_at(&mut self, at: u64) {
        self.server_start = Some(at);
        self.queue.schedule(at, ScenarioEvent::ServerStarts { at });
    }

    pub(super) fn start_server(&mut self, log: &mut SimulationLog) -> InvariantResult {
        self.server_start = None;
        let effects = self.host.start(self.now, log)?;
        if self.host.registrar().is_none() {
            self.start_server_at(self.now + SECOND);
        }
        self.apply_server_effects(effects, log)
    }

    pub(super) fn step_server(&mut self, input: Input, log: &mut SimulationLog) -> InvariantResult {
        let effects = self.host.step(input, self.now)?;
        self.apply_server_effects(effects, log)
    }

    pub(super) fn apply_server_effects(
        &mut self,
        effects: Vec<Effect>,
        log: &mut SimulationLog,
    ) -> InvariantResult {
        for effect in effects {
            record_server_effect(&effect, log);
            match effect {
                Effect::Append(_) => {
                    let write = WriteResult::any(self.winding_down, &mut self.rng);
                    let slow = !self.winding_down && self.rng.percent(1);
                    let at = self.now + self.rng.delay(100, if slow { 6 * SECOND } else { 3_000 });
                    self.queue
                        .schedule(at, ScenarioEvent::WriteEnds { incarnation: self.host.incarnation, write });
                }
                Effect::Publish(events) => log.line(format_args!("{} durable {events:?}", self.now)),
                Effect::Answer { request: caller, reply } => {
                    if let Some(request) = self.in_flight.remove(&caller) {
                        self.deliver_answer(request, reply)?;
                    }
                }
                Effect::Served { leases, .. } => {
                    leases
                        .iter()
                        .try_for_each(|lease| self.host.ledger_model().check_acknowledged(*lease))?;
                }
                Effect::Unserved { .. } | Effect::ServedTooLate { .. } => {}
                Effect::StepDown(_) => {
                    self.in_flight.clear();
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

    /// What an agent is told is durable: a grant that it hears of can be found again.
    fn deliver_answer(&mut self, request: InFlightRequest, reply: Reply) -> InvariantResult {
        let Reply::Answered { answer, stamp } = reply else { return Ok(()) };
        if let CommandOutcome::Agent(answer) = &answer
            && let AgentOutcome::Granted { leases } = &**answer
        {
            leases.iter().try_for_each(|lease| self.host.ledger_model().check_acknowledged(*lease))?;
        }
        if let Some(at) = self.delivery_time(request.agent) {
            self.queue.schedule(at, ScenarioEvent::ReplyArrives { request, answer, stamp });
        }
        Ok(())
    }

    /// Lets one thing go wrong, and plans the next.
    pub(super) fn inject_fault(&mut self, log: &mut SimulationLog) -> InvariantResult {
        if self.winding_down {
            return Ok(());
        }
        let at = self.now + self.rng.delay(100_000, 4 * SECOND);
        self.queue.schedule(at, ScenarioEvent::Fault);
        match self.rng.below(12) {
            0 => {
                log.record_coverage("server crashed");
                let (kept, reboots) = (self.rng.percent(50), self.rng.percent(40));
                self.host.crash(kept)?;
                self.host.incarnation += 1;
                self.in_flight.clear();
                let back = (self.now + self.rng.delay(1_000, 5 * SECOND)).max(self.host.boot_time());
                if reboots {
                    log.record_coverage("server rebooted");
                    self.host.reboot(back, &mut self.rng);
                }
                self.start_server_at(back);
            }
            1 => {
                log.record_coverage("server paused");
                self.server_paused_until = self.now + self.rng.delay(1_000, 8 * SECOND);
            }
            2 => {
                log.record_coverage("server clock went back");
                self.host.set_clock_back(&mut self.rng);
            }
            3 => {
                log.record_coverage("disk filled up");
                self.host.fill_disk();
                let at = self.now + self.rng.delay(100_000, 10 * SECOND);
                self.queue.schedule(at, ScenarioEvent::DiskHasSpace);
            }
            _ => self.fail_agent(log),
        }
        Ok(())
    }
}
