//! What may be given at all, whoever asks: less than everything when the disk is full, or after a restore.

use super::answer::Refusal;
use super::draft::Draft;
use super::value::Tick;

/// What there is room for. Said by the shell, not by the ledger: a replay never asks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Granting {
    /// Leases end, nothing else.
    Nothing,
    /// Leases that live may be renewed.
    Renewals,
    /// Whatever is asked for.
    #[default]
    Everything,
}

impl Draft<'_> {
    /// Whether a lease may begin, or somebody may wait for one.
    pub(crate) fn check_may_grant(&self) -> Result<(), Refusal> {
        self.check(Granting::Everything)
    }

    /// Whether a lease may get more time.
    pub(crate) fn check_may_renew(&self) -> Result<(), Refusal> {
        self.check(Granting::Renewals)
    }

    fn check(&self, needed: Granting) -> Result<(), Refusal> {
        // After a restore somebody may hold what the copy knows nothing of: also more time is a grant then.
        if let Some(until) = self.state.held_back_until(self.now) {
            return Err(Refusal::HeldBack { until, remaining: until.since(self.now) });
        }
        if self.state.granting() >= needed { Ok(()) } else { Err(Refusal::NoSpace) }
    }
}

/// Until when nothing may be granted, if that is still to come at `now`.
pub(crate) fn still_held_back(hold: Option<Tick>, now: Tick) -> Option<Tick> {
    hold.filter(|until| now < *until)
}
