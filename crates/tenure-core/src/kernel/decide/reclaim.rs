//! Reclaim: a holder is dead, and keeps nobody waiting.

use crate::kernel::answer::{Answer, Refusal};
use crate::kernel::draft::Draft;
use crate::kernel::event::{Cause, WaitEnd};
use crate::kernel::name::{Holder, Principal};

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
