//! The server of a crew: what it does, and what goes wrong with it.

use tenure_core::kernel::{AgentAnswer, Answer};
use tenure_registrar::{AppendFailure, Effect, Input, Reply};

use super::{Asked, Crew, Next, SECOND};
use crate::census::note_server;
use crate::host::Write;
use crate::laws::Lawful;
use crate::log::Log;

impl Crew {
    pub(super) fn start_server_at(&mut self, at: u64) {
        self.server_start = Some(at);
        self.agenda.plan(at, Next::ServerStarts { at });
    }

    pub(super) fn server_starts(&mut self, log: &mut Log) -> Lawful {
        self.server_start = None;
        let effects = self.host.start(self.now, log)?;
        if self.host.registrar().is_none() {
            self.start_server_at(self.now + SECOND);
        }
        self.server_does(effects, log)
    }

    pub(super) fn server_steps(&mut self, input: Input, log: &mut Log) -> Lawful {
        let effects = self.host.step(input, self.now)?;
        self.server_does(effects, log)
    }

    pub(super) fn server_does(&mut self, effects: Vec<Effect>, log: &mut Log) -> Lawful {
        for effect in effects {
            note_server(&effect, log);
            match effect {
                Effect::Append(_) => {
                    let write = self.how_the_write_ends();
                    let slow = !self.winding_down && self.rng.percent(1);
                    let at = self.now + self.rng.delay(100, if slow { 6 * SECOND } else { 3_000 });
                    self.agenda.plan(at, Next::WriteEnds { incarnation: self.host.incarnation, write });
                }
                Effect::Publish(events) => log.line(format_args!("{} durable {events:?}", self.now)),
                Effect::Answer { caller, reply } => {
                    if let Some(asked) = self.asked.remove(&caller) {
                        self.answer(asked, reply)?;
                    }
                }
                Effect::Served { leases, .. } => {
                    leases.iter().try_for_each(|lease| self.host.laws().acknowledged(*lease))?;
                }
                Effect::Unserved { .. } => {}
                Effect::StepDown(_) => {
                    self.asked.clear();
                    let at = self.now + self.rng.delay(1_000, SECOND);
                    self.start_server_at(at);
                }
            }
        }
        // One timer, set to the next thing to do.
        let wake = self.host.wake_time().map(|at| at.max(self.now));
        if let Some(at) = wake.filter(|_| wake != self.server_wake) {
            self.agenda.plan(at, Next::ServerWakes { at });
        }
        self.server_wake = wake;
        Ok(())
    }

    /// What an agent is told is durable: a grant that it hears of can be found again.
    fn answer(&mut self, asked: Asked, reply: Reply) -> Lawful {
        let Reply::Answered { answer, stamp } = reply else { return Ok(()) };
        if let Answer::Agent(answer) = &answer
            && let AgentAnswer::Granted { leases } = &**answer
        {
            leases.iter().try_for_each(|lease| self.host.laws().acknowledged(*lease))?;
        }
        if let Some(at) = self.carried(asked.agent) {
            self.agenda.plan(at, Next::ReplyArrives { asked, answer, stamp });
        }
        Ok(())
    }

    fn how_the_write_ends(&mut self) -> Write {
        if self.winding_down || self.rng.below(400) > 0 {
            return Write::Done;
        }
        let failure = *self.rng.pick(&[AppendFailure::NotWritten, AppendFailure::Unknown]);
        Write::Failed { failure, kept: failure == AppendFailure::Unknown && self.rng.percent(50) }
    }

    /// Lets one thing go wrong, and plans the next.
    pub(super) fn fault(&mut self, log: &mut Log) -> Lawful {
        if self.winding_down {
            return Ok(());
        }
        let at = self.now + self.rng.delay(100_000, 4 * SECOND);
        self.agenda.plan(at, Next::Fault);
        match self.rng.below(12) {
            0 => {
                log.count("server crashed");
                let (kept, reboots) = (self.rng.percent(50), self.rng.percent(40));
                self.host.crash(kept)?;
                self.host.incarnation += 1;
                self.asked.clear();
                let back = (self.now + self.rng.delay(1_000, 5 * SECOND)).max(self.host.booted());
                if reboots {
                    log.count("server rebooted");
                    self.host.reboot(back, &mut self.rng);
                }
                self.start_server_at(back);
            }
            1 => {
                log.count("server paused");
                self.server_paused_until = self.now + self.rng.delay(1_000, 8 * SECOND);
            }
            2 => {
                log.count("server clock went back");
                self.host.set_clock_back(&mut self.rng);
            }
            3 => {
                log.count("disk filled up");
                self.host.fill_disk();
                let at = self.now + self.rng.delay(100_000, 10 * SECOND);
                self.agenda.plan(at, Next::DiskHasRoom);
            }
            _ => self.agent_fails(log),
        }
        Ok(())
    }
}
