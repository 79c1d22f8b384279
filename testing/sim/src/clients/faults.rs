//! Faults of clients, network and server, one at a time.

use super::{ClientsScenario, SECOND, ScenarioEvent};
use crate::invariants::InvariantResult;
use crate::simulation_log::SimulationLog;

impl ClientsScenario {
    /// Lets one thing go wrong, and plans the next.
    pub(super) fn inject_fault(&mut self, log: &mut SimulationLog) -> InvariantResult {
        if self.winding_down {
            return Ok(());
        }
        let at = self.now + self.rng.delay(100_000, 8 * SECOND);
        self.queue.schedule(at, ScenarioEvent::Fault);
        let client = usize::try_from(self.rng.below(self.clients.len() as u64)).unwrap_or(0);
        match self.rng.below(11) {
            0 | 1 => {
                log.record_coverage("server crashed");
                let reboots = self.rng.percent(40);
                log.line(format_args!("{} server crashes, reboot {reboots}", self.now));
                let kept = self.rng.percent(50);
                self.host.crash(kept)?;
                self.host.incarnation += 1;
                self.tickets.clear();
                self.in_flight.clear();
                self.sessions.requests.clear();
                // A machine that goes down while it comes up is not there before its clock runs.
                let back = (self.now + self.rng.delay(1_000, 5 * SECOND)).max(self.host.boot_time());
                if reboots {
                    log.record_coverage("server rebooted");
                    self.host.reboot(back, &mut self.rng);
                }
                self.start_server_at(back);
            }
            2 => {
                log.record_coverage("server paused");
                self.server_paused_until = self.now + self.rng.delay(1_000, 12 * SECOND);
            }
            3 => self.host.set_wall_clock(&mut self.rng),
            4 => {
                log.record_coverage("client crashed");
                log.line(format_args!("{} client {client} crashes", self.now));
                self.clients[client].crash();
            }
            // A holder that suddenly sees a later time stops earlier: that is safe. Ahead is not for the server's
            // clock: nothing could be promised on one that runs away.
            7 => {
                log.record_coverage("client clock jumped");
                let ahead = i64::try_from(self.rng.delay(1_000, 20 * SECOND)).unwrap_or(0);
                self.clients[client].clock.shift(ahead);
            }
            8 => {
                log.record_coverage("server clock went back");
                self.host.set_clock_back(&mut self.rng);
            }
            10 => {
                log.record_coverage("disk filled up");
                self.host.fill_disk();
                let at = self.now + self.rng.delay(100_000, 20 * SECOND);
                self.queue.schedule(at, ScenarioEvent::DiskHasSpace);
            }
            5 | 6 => {
                log.record_coverage("client paused");
                self.clients[client].paused_until = self.now + self.rng.delay(10_000, 20 * SECOND);
            }
            _ => {
                log.record_coverage("client cut off");
                self.clients[client].cut_off_until = self.now + self.rng.delay(10_000, 20 * SECOND);
            }
        }
        Ok(())
    }
}
