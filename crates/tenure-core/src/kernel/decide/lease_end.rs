//! Releases, revokes and reclaims leases, and withdraws waiters.

use crate::kernel::command::LeaseCredential;
use crate::kernel::decision_builder::DecisionBuilder;
use crate::kernel::event::{RevocationCause, WaitEnd};
use crate::kernel::name::{Holder, Principal};
use crate::kernel::newtypes::{Fence, Ticket};
use crate::kernel::outcome::{CommandOutcome, Rejection};
use crate::lease::ReleaseReason;
use crate::rules::names::InvalidInput;

/// Releasing what is over succeeds and appends nothing: the caller has what it wants.
pub(super) fn release(
    decision: &mut DecisionBuilder<'_>,
    fence: Fence,
    claim: &LeaseCredential,
    reason: ReleaseReason,
) -> Result<CommandOutcome, Rejection> {
    let lease = match super::active_lease(decision, fence, Some(claim)) {
        Ok(lease) => lease,
        Err(Rejection::Ended { .. }) => return Ok(CommandOutcome::Released { lease: fence }),
        Err(rejection) => return Err(rejection),
    };
    decision.release(lease, reason);
    Ok(CommandOutcome::Released { lease: fence })
}

pub(super) fn revoke(
    decision: &mut DecisionBuilder<'_>,
    fence: Fence,
    cause: RevocationCause,
    by: &Principal,
    detail: &str,
) -> Result<CommandOutcome, Rejection> {
    super::check_detail(detail)?;
    if cause == RevocationCause::Transferred {
        let reason = "is for leases that go on under another number; use transfer, upgrade or downgrade";
        return Err(InvalidInput::new("cause", reason).into());
    }
    let lease = super::active_lease(decision, fence, None)?;
    decision.revoke(lease, cause, by, detail);
    Ok(CommandOutcome::Ended { leases: vec![fence] })
}

/// Only for a holder that is proven dead: a live one is never displaced. The proof is the caller's duty.
pub(super) fn reclaim(
    decision: &mut DecisionBuilder<'_>,
    holder: &Holder,
    by: &Principal,
    detail: &str,
) -> Result<CommandOutcome, Rejection> {
    super::check_detail(detail)?;
    let state = decision.state;
    let Some(slot) = state.find_holder(holder) else {
        return Ok(CommandOutcome::Ended { leases: Vec::new() });
    };
    // The dead wait for nothing: they leave first, so that none of them is let in on the way.
    for waiting in state.queue_entries_of(slot) {
        if decision.is_waiting(waiting) {
            decision.end_wait(waiting, WaitEnd::Gone);
        }
    }
    // In the order of their numbers: how they lie in memory must not show in the ledger.
    let mut leases: Vec<_> = state.leases_of(slot).filter(|lease| decision.is_active(lease)).collect();
    leases.sort_unstable_by_key(|lease| lease.fence);
    for lease in &leases {
        decision.revoke(lease, RevocationCause::Reclaimed, by, detail);
    }
    Ok(CommandOutcome::Ended { leases: leases.into_iter().map(|lease| lease.fence).collect() })
}

/// A ticket that was served, timed out or withdrawn before is no mistake of the caller's.
pub(super) fn withdraw(
    decision: &mut DecisionBuilder<'_>,
    ticket: Ticket,
    principal: &Principal,
    end: WaitEnd,
) -> Result<CommandOutcome, Rejection> {
    let state = decision.state;
    if ticket > state.last_ticket() {
        return Err(Rejection::NoSuchTicket);
    }
    let Some(waiting) = state.queue_entry(ticket) else {
        return Ok(CommandOutcome::Withdrawn { waited: false });
    };
    if waiting.queued.principal != *principal {
        return Err(Rejection::NoSuchTicket);
    }
    let waited = decision.is_waiting(waiting);
    decision.end_wait(waiting, if waited { end } else { WaitEnd::TimedOut });
    Ok(CommandOutcome::Withdrawn { waited })
}
