//! The server of the work API in the simulation, and its faults.

use tenure_core::kernel::{CommandOutcome, Event};
use tenure_registrar::{Effect, Input, Reply};

use super::{InFlightRequest, SECOND, ScenarioEvent, WorkScenario, administrator};
use crate::coverage::record_server_effect;
use crate::host::WriteResult;
use crate::invariants::InvariantResult;
use crate::simulation_log::SimulationLog;

impl WorkScenario {
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
                    // Slow ones have more requests in the next write, and more crashes in their middle.
                    let longest = match self.rng.below(100) {
                        0 if !self.winding_down => 6 * SECOND,
                        1..20 => SECOND,
                        _ => 3_000,
                    };
                    let at = self.now + self.rng.delay(100, longest);
                    let incarnation = self.host.incarnation;
                    self.queue.schedule(at, ScenarioEvent::WriteEnds { incarnation, write });
                }
                Effect::Publish(events) => {
                    log.line(format_args!("{} durable {events:?}", self.now));
                    events.iter().filter_map(event_kind).for_each(|kind| log.record_coverage(kind));
                }
                Effect::Answer { request, reply } => {
                    if let Some(request) = self.in_flight.remove(&request) {
                        self.deliver_answer(request, reply, log)?;
                    }
                }
                // No client of this scenario waits in the queue.
                Effect::Served { .. } | Effect::Unserved { .. } | Effect::ServedTooLate { .. } => {}
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

    /// The laws judge each answer, whether it reaches the client or not.
    fn deliver_answer(
        &mut self,
        request: InFlightRequest,
        reply: Reply,
        log: &mut SimulationLog,
    ) -> InvariantResult {
        let Reply::Answered { answer, stamp } = reply else { return Ok(()) };
        let InFlightRequest { origin: Some(origin), command } = request else { return Ok(()) };
        self.host.ledger_model_mut().work_mut().check_answer(&command, &answer, stamp)?;
        if !matches!(answer, CommandOutcome::Rejected(_)) && !self.acknowledged.insert(origin) {
            log.record_coverage(match answer {
                CommandOutcome::Spent { .. } => "spend acknowledged again",
                CommandOutcome::Granted { .. } => "grant acknowledged again",
                _ => "renewal or release acknowledged again",
            });
        }
        if let Some(at) = self.delivery_time(origin.0) {
            self.queue.schedule(at, ScenarioEvent::ReplyArrives { origin, answer });
        }
        Ok(())
    }

    /// Lets one thing go wrong, and plans the next.
    pub(super) fn inject_fault(&mut self, log: &mut SimulationLog) -> InvariantResult {
        if self.winding_down {
            return Ok(());
        }
        let at = self.now + self.rng.delay(100_000, 8 * SECOND);
        self.queue.schedule(at, ScenarioEvent::Fault);
        match self.rng.below(12) {
            0 | 1 => {
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
            2 => {
                log.record_coverage("server paused");
                self.server_paused_until = self.now + self.rng.delay(1_000, 8 * SECOND);
            }
            3 => {
                log.record_coverage("server clock went back");
                self.host.set_clock_back(&mut self.rng);
            }
            4 => {
                log.record_coverage("disk filled up");
                self.host.fill_disk();
                let at = self.now + self.rng.delay(100_000, 10 * SECOND);
                self.queue.schedule(at, ScenarioEvent::DiskHasSpace);
            }
            _ => self.fail_client(log),
        }
        Ok(())
    }
}

/// What happened to a derived lease.
fn event_kind(event: &Event) -> Option<&'static str> {
    match event {
        Event::Issued(issued) => issued.authority.as_ref()?.parent.map(|_| "lease derived"),
        Event::Revoked { by, .. } => (*by != administrator()).then_some("lease ended with its parent"),
        _ => None,
    }
}
