//! What may be given at all, whoever asks: less than everything when the disk is full, or after a restore.

use super::decision_builder::DecisionBuilder;
use super::newtypes::Tick;
use super::outcome::Rejection;

/// What there is room for. Said by the shell, not by the ledger: a replay never asks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum AdmissionLevel {
    /// Leases end, nothing else.
    Nothing,
    /// Leases that live may be renewed.
    Renewals,
    #[default]
    Everything,
}

impl DecisionBuilder<'_> {
    /// Whether a lease may begin, or somebody may wait for one.
    pub(crate) fn check_may_grant(&self) -> Result<(), Rejection> {
        self.check_admission(AdmissionLevel::Everything)
    }

    /// Whether something new may be written that is no lease.
    pub(crate) fn check_has_space(&self) -> Result<(), Rejection> {
        if self.state.admission_level() == AdmissionLevel::Everything {
            Ok(())
        } else {
            Err(Rejection::NoSpace)
        }
    }

    pub(crate) fn check_may_renew(&self) -> Result<(), Rejection> {
        self.check_admission(AdmissionLevel::Renewals)
    }

    /// Whether anything may be said to be held. After a restore somebody may hold what the copy knows nothing of: then
    /// more time is a grant too, and so is the word that a lease of the copy still lives.
    pub(crate) fn check_not_in_restore_quarantine(&self) -> Result<(), Rejection> {
        match self.state.restore_quarantine_until(self.now) {
            Some(until) => Err(Rejection::RestoreHold { until, remaining: until.since(self.now) }),
            None => Ok(()),
        }
    }

    fn check_admission(&self, needed: AdmissionLevel) -> Result<(), Rejection> {
        self.check_not_in_restore_quarantine()?;
        if self.state.admission_level() >= needed { Ok(()) } else { Err(Rejection::NoSpace) }
    }
}

/// Until when nothing may be granted, if that is still to come at `now`.
pub(crate) fn active_restore_quarantine(hold: Option<Tick>, now: Tick) -> Option<Tick> {
    hold.filter(|until| now < *until)
}
