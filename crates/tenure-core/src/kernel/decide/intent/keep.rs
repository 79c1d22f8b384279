//! Keep: the worker lives, and so do the leases of its sessions.

use crate::kernel::answer::Refusal;
use crate::kernel::draft::Draft;
use crate::kernel::event::Event;
use crate::kernel::intent::{IntentAnswer, Kept};
use crate::kernel::name::Holder;
use crate::kernel::state::LeaseEntry;
use crate::kernel::value::{Fence, Span, Tick};
use crate::rules::time::extends;

/// A lost lease is never made anew: its session is over, or ends with this very decision.
pub(super) fn keep(
    draft: &mut Draft<'_>,
    guard: Fence,
    ttl: Span,
    sessions: &[Holder],
) -> Result<IntentAnswer, Refusal> {
    let lease = super::guarded(draft, guard)?;
    super::super::acquire::check_ttl(draft, ttl)?;
    draft.check_may_renew()?;
    draft.now.checked_add(ttl).ok_or(Refusal::Exhausted)?;
    let until = renew(draft, lease, ttl);
    let kept = sessions.iter().map(|session| keep_one(draft, session, guard, ttl)).collect();
    Ok(IntentAnswer::Kept { until, sessions: kept })
}

fn keep_one(draft: &mut Draft<'_>, session: &Holder, guard: Fence, ttl: Span) -> Kept {
    let state = draft.state;
    let Ok(session) = super::own(draft, session, guard) else { return Kept::Lost };
    if !session.state.is_taken() || draft.end_if_bereft(session) {
        return Kept::Lost;
    }
    let Some(holder) = state.find_holder(&session.id) else { return Kept::Lost };
    let leases: Vec<_> = state.leases_of(holder).collect();
    let ends = leases.into_iter().rev().map(|lease| renew(draft, lease, ttl));
    // A session that is taken has at least one.
    Kept::Until { until: ends.min().unwrap_or_default(), state: session.state }
}

fn renew(draft: &mut Draft<'_>, lease: &LeaseEntry, ttl: Span) -> Tick {
    let expires_at = draft.now.saturating_add(ttl);
    if !extends(lease.expires_at.0, expires_at.0) {
        return lease.expires_at;
    }
    draft.push(Event::Renewed { lease: lease.fence, at: draft.now, expires_at, ttl });
    expires_at
}
