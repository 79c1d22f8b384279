//! When a command has to be ended, as a step function. It touches neither clock nor process.

use tenure_core::kernel::TickDuration;

/// What is to be done to the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminationStep {
    Terminate,
    Kill,
}

/// How much time an end takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminationMargins {
    /// Between asking the command to end and ending it.
    pub grace: TickDuration,
    /// Between ending it and the deadline: for a machine that is busy, and for a process that takes its time to go.
    pub reserve: TickDuration,
}

impl TerminationMargins {
    /// What suits a lease of this length, unless the user chose a grace.
    pub fn for_lease(ttl: TickDuration, grace: Option<TickDuration>) -> Self {
        let usual = TickDuration((ttl.0 / 4).min(TickDuration::from_secs(5).0));
        Self {
            grace: grace.unwrap_or(usual),
            reserve: TickDuration((ttl.0 / 10).min(TickDuration::from_millis(500).0)),
        }
    }
}

/// One command under a lease, from its start to its end. Times are microseconds of the local clock.
#[derive(Debug, Clone)]
pub struct TerminationPlan {
    margins: TerminationMargins,
    /// Until when the lease is surely ours.
    deadline: u64,
    /// When to kill, once the command was asked to end. From then on no deadline helps any more.
    kill_at: Option<u64>,
    is_killed: bool,
}

impl TerminationPlan {
    /// A command that may run until `deadline`, unless that moves.
    pub fn new(margins: TerminationMargins, deadline: u64) -> Self {
        Self { margins, deadline, kill_at: None, is_killed: false }
    }

    pub fn move_deadline(&mut self, deadline: u64) {
        if self.kill_at.is_none() {
            self.deadline = deadline;
        }
    }

    pub fn is_killed(&self) -> bool {
        self.is_killed
    }

    /// The command has to end, whatever the deadline is.
    pub fn terminate(&mut self, now: u64) -> Option<TerminationStep> {
        if self.kill_at.is_some() {
            return None;
        }
        self.kill_at = Some(now.saturating_add(self.margins.grace.0).min(self.last_moment()));
        Some(TerminationStep::Terminate)
    }

    /// The command has to be gone at once.
    pub fn kill(&mut self, now: u64) -> Option<TerminationStep> {
        if std::mem::replace(&mut self.is_killed, true) {
            return None;
        }
        self.kill_at = Some(now);
        Some(TerminationStep::Kill)
    }

    pub fn wake_at(&self) -> Option<u64> {
        match self.kill_at {
            None => Some(self.last_moment().saturating_sub(self.margins.grace.0)),
            Some(_) if self.is_killed => None,
            Some(at) => Some(at),
        }
    }

    /// What is due at `now`. Ask until nothing is.
    pub fn next_step(&mut self, now: u64) -> Option<TerminationStep> {
        if self.wake_at().is_none_or(|at| now < at) {
            return None;
        }
        if self.kill_at.is_none() {
            return self.terminate(now);
        }
        self.kill(now)
    }

    fn last_moment(&self) -> u64 {
        self.deadline.saturating_sub(self.margins.reserve.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARGINS: TerminationMargins =
        TerminationMargins { grace: TickDuration(250), reserve: TickDuration(100) };

    #[test]
    fn command_is_terminated_and_killed_before_the_deadline() {
        let mut plan = TerminationPlan::new(MARGINS, 1_000);
        assert_eq!(plan.wake_at(), Some(650));
        assert_eq!(plan.next_step(649), None);
        assert_eq!(plan.next_step(650), Some(TerminationStep::Terminate));
        assert_eq!((plan.next_step(899), plan.wake_at()), (None, Some(900)));
        assert_eq!(plan.next_step(900), Some(TerminationStep::Kill));
        assert_eq!((plan.next_step(1_000), plan.wake_at()), (None, None));
    }

    #[test]
    fn late_wake_up_kills_at_once() {
        let mut plan = TerminationPlan::new(MARGINS, 1_000);
        assert_eq!(plan.next_step(5_000), Some(TerminationStep::Terminate));
        assert_eq!(plan.next_step(5_000), Some(TerminationStep::Kill));
    }

    #[test]
    fn renewal_moves_the_deadline_until_termination_begins() {
        let mut plan = TerminationPlan::new(MARGINS, 1_000);
        plan.move_deadline(2_000);
        assert_eq!((plan.next_step(1_000), plan.wake_at()), (None, Some(1_650)));
        assert_eq!(plan.next_step(1_650), Some(TerminationStep::Terminate));
        plan.move_deadline(9_000);
        assert_eq!(
            plan.next_step(1_900),
            Some(TerminationStep::Kill),
            "a lease that comes back comes too late"
        );
    }

    #[test]
    fn lost_lease_leaves_the_grace_period_but_never_exceeds_the_deadline() {
        let mut plan = TerminationPlan::new(MARGINS, 10_000);
        assert_eq!(plan.terminate(1_000), Some(TerminationStep::Terminate));
        assert_eq!((plan.terminate(1_100), plan.wake_at()), (None, Some(1_250)), "once is enough");
        let mut plan = TerminationPlan::new(MARGINS, 10_000);
        plan.terminate(9_800);
        assert_eq!(plan.wake_at(), Some(9_900));
    }

    #[test]
    fn margins_are_derived_from_the_ttl() {
        let of = |milliseconds| TerminationMargins::for_lease(TickDuration::from_millis(milliseconds), None);
        assert_eq!(
            of(1_000),
            TerminationMargins {
                grace: TickDuration::from_millis(250),
                reserve: TickDuration::from_millis(100)
            }
        );
        assert_eq!(
            of(30_000),
            TerminationMargins { grace: TickDuration::from_secs(5), reserve: TickDuration::from_millis(500) }
        );
        let chosen =
            TerminationMargins::for_lease(TickDuration::from_secs(30), Some(TickDuration::from_secs(1)));
        assert_eq!(chosen.grace, TickDuration::from_secs(1));
    }
}
