//! Releases, revokes and reclaims leases, and withdraws waiters.

use crate::kernel::answer::{Answer, Refusal};
use crate::kernel::command::Claim;
use crate::kernel::draft::Draft;
use crate::kernel::event::{Cause, WaitEnd};
use crate::kernel::name::{Holder, Principal};
use crate::kernel::value::{Fence, Ticket};
use crate::lease::ReleaseReason;
use crate::rules::names::InvalidInput;

/// Releasing what is over succeeds and appends nothing: the caller has what it wants.
pub(super) fn release(
    draft: &mut Draft<'_>,
    fence: Fence,
    claim: &Claim,
    reason: ReleaseReason,
) -> Result<Answer, Refusal> {
    let lease = match super::living(draft, fence, Some(claim)) {
        Ok(lease) => lease,
        Err(Refusal::Over { .. }) => return Ok(Answer::Released { lease: fence }),
        Err(refusal) => return Err(refusal),
    };
    draft.release(lease, reason);
    Ok(Answer::Released { lease: fence })
}

pub(super) fn revoke(
    draft: &mut Draft<'_>,
    fence: Fence,
    cause: Cause,
    by: &Principal,
    detail: &str,
) -> Result<Answer, Refusal> {
    super::check_detail(detail)?;
    if cause == Cause::Transferred {
        let reason = "is for leases that go on under another number; use transfer, upgrade or downgrade";
        return Err(InvalidInput::new("cause", reason).into());
    }
    let lease = super::living(draft, fence, None)?;
    draft.revoke(lease, cause, by, detail);
    Ok(Answer::Ended { leases: vec![fence] })
}

/// Only for a holder that is proven dead: a live one is never displaced. The proof is the caller's duty.
pub(super) fn reclaim(
    draft: &mut Draft<'_>,
    holder: &Holder,
    by: &Principal,
    detail: &str,
) -> Result<Answer, Refusal> {
    super::check_detail(detail)?;
    let state = draft.state;
    let Some(slot) = state.find_holder(holder) else { return Ok(Answer::Ended { leases: Vec::new() }) };
    // The dead wait for nothing: they leave first, so that none of them is let in on the way.
    for waiting in state.waits_of(slot) {
        if draft.waits(waiting) {
            draft.leave(waiting, WaitEnd::Gone);
        }
    }
    // In the order of their numbers: how they lie in memory must not show in the ledger.
    let mut leases: Vec<_> = state.leases_of(slot).filter(|lease| draft.lives(lease)).collect();
    leases.sort_unstable_by_key(|lease| lease.fence);
    for lease in &leases {
        draft.revoke(lease, Cause::Reclaimed, by, detail);
    }
    Ok(Answer::Ended { leases: leases.into_iter().map(|lease| lease.fence).collect() })
}

/// A ticket that was served, timed out or withdrawn before is no mistake of the caller's.
pub(super) fn withdraw(
    draft: &mut Draft<'_>,
    ticket: Ticket,
    principal: &Principal,
    end: WaitEnd,
) -> Result<Answer, Refusal> {
    let state = draft.state;
    if ticket > state.last_ticket() {
        return Err(Refusal::NoSuchTicket);
    }
    let Some(waiting) = state.waiting(ticket) else { return Ok(Answer::Withdrawn { waited: false }) };
    if waiting.queued.principal != *principal {
        return Err(Refusal::NoSuchTicket);
    }
    let waited = draft.waits(waiting);
    draft.leave(waiting, if waited { end } else { WaitEnd::TimedOut });
    Ok(Answer::Withdrawn { waited })
}
