//! Admission: what may be granted to any caller while the disk is full, or after a restore.

use super::api_decisions;
use super::lease::decision_builder::DecisionBuilder;
use super::outcome::Rejection;
use super::state::Slot;
use crate::value::{Principal, Tick};

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

    /// Whether a principal has or waits for more than `max_leases` leases, or has more than `max_waiters` waiters.
    ///
    /// What is over does not count, announced or not. It is looked for only where that decides.
    pub(crate) fn exceeds_usage(&self, principal: &Principal, max_leases: usize, max_waiters: usize) -> bool {
        let requested =
            if max_leases < usize::MAX { api_decisions::requested_lease_count(self, principal) } else { 0 };
        let Some(slot) = self.state.find_principal(principal) else { return requested > max_leases };
        let is_own = |holder: Slot| self.state.principal_of(holder).0 == slot;
        let (mut leases, mut waiters) = self.state.usage_of(slot);
        leases += requested + self.issued_leases().filter(|issued| issued.principal == *principal).count();
        let ended = self.ended_leases.iter().filter_map(|fence| self.state.find_lease(*fence));
        leases -= ended.filter(|lease| is_own(lease.holder)).count();
        for waiting in self.ended_waiters.iter().filter_map(|ticket| self.state.queue_entry(*ticket)) {
            if is_own(waiting.holder) {
                waiters -= 1;
                leases -= waiting.queued.requests.len();
            }
        }
        if leases <= max_leases && waiters <= max_waiters {
            return false;
        }
        let expired = self.state.expired_leases(self.now).filter(|lease| is_own(lease.holder));
        leases -= expired.filter(|lease| !self.ended_leases.contains(&lease.fence)).count();
        for waiting in self.state.timed_out_queue_entries(self.now).filter(|waiting| is_own(waiting.holder)) {
            if !self.ended_waiters.contains(&waiting.queued.ticket) {
                waiters -= 1;
                leases -= waiting.queued.requests.len();
            }
        }
        leases > max_leases || waiters > max_waiters
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
