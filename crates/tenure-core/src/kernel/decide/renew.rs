//! Renew: more time for a lease that lives.

use crate::kernel::answer::{Answer, Refusal};
use crate::kernel::command::Claim;
use crate::kernel::draft::Draft;
use crate::kernel::event::Event;
use crate::kernel::value::{Fence, Span};
use crate::rules::time::extends;

/// A renewal that would not extend succeeds and changes nothing: it never shortens.
pub(super) fn renew(
    draft: &mut Draft<'_>,
    fence: Fence,
    claim: &Claim,
    ttl: Option<Span>,
) -> Result<Answer, Refusal> {
    let lease = super::living(draft, fence, Some(claim))?;
    draft.check_is_not_held_back()?;
    let ttl = ttl.unwrap_or(lease.ttl);
    super::acquire::check_ttl(draft, ttl)?;
    let expires_at = draft.now.checked_add(ttl).ok_or(Refusal::Exhausted)?;
    if !extends(lease.expires_at.0, expires_at.0) {
        return Ok(Answer::Renewed { lease: fence, expires_at: lease.expires_at });
    }
    draft.check_may_renew()?;
    if let Some(end) = draft.end_of_parent(lease)
        && expires_at > end
    {
        return Err(Refusal::OutlivesParent { remaining: end.since(draft.now) });
    }
    draft.push(Event::Renewed { lease: fence, at: draft.now, expires_at, ttl });
    Ok(Answer::Renewed { lease: fence, expires_at })
}
