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
    #[default]
    Everything,
}

impl Draft<'_> {
    /// Whether a lease may begin, or somebody may wait for one.
    pub(crate) fn check_may_grant(&self) -> Result<(), Refusal> {
        self.check(Granting::Everything)
    }

    /// Whether something new may be written that is no lease.
    pub(crate) fn check_has_room(&self) -> Result<(), Refusal> {
        if self.state.granting() == Granting::Everything { Ok(()) } else { Err(Refusal::NoSpace) }
    }

    pub(crate) fn check_may_renew(&self) -> Result<(), Refusal> {
        self.check(Granting::Renewals)
    }

    /// Whether anything may be said to be held. After a restore somebody may hold what the copy knows nothing of: then
    /// more time is a grant too, and so is the word that a lease of the copy still lives.
    pub(crate) fn check_is_not_held_back(&self) -> Result<(), Refusal> {
        match self.state.held_back_until(self.now) {
            Some(until) => Err(Refusal::HeldBack { until, remaining: until.since(self.now) }),
            None => Ok(()),
        }
    }

    fn check(&self, needed: Granting) -> Result<(), Refusal> {
        self.check_is_not_held_back()?;
        if self.state.granting() >= needed { Ok(()) } else { Err(Refusal::NoSpace) }
    }
}

/// Until when nothing may be granted, if that is still to come at `now`.
pub(crate) fn still_held_back(hold: Option<Tick>, now: Tick) -> Option<Tick> {
    hold.filter(|until| now < *until)
}
