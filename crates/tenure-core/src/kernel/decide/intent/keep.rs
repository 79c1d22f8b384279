//! Keep: the worker lives, and so do the leases of its sessions.

use std::collections::BTreeMap;

use crate::kernel::answer::Refusal;
use crate::kernel::draft::Draft;
use crate::kernel::event::Event;
use crate::kernel::intent::{IntentAnswer, Kept};
use crate::kernel::name::Holder;
use crate::kernel::state::LeaseEntry;
use crate::kernel::value::{Fence, Span, Tick};
use crate::rules::time::extends;

/// A lost lease is never made anew: its session is over, or ends with this very decision. One that is named twice is
/// kept once.
pub(super) fn keep(
    draft: &mut Draft<'_>,
    guard: Fence,
    ttl: Span,
    sessions: &[Holder],
) -> Result<IntentAnswer, Refusal> {
    let lease = super::guarded(draft, guard)?;
    super::check_count(sessions)?;
    super::super::acquire::check_ttl(draft, ttl)?;
    draft.check_may_renew()?;
    draft.now.checked_add(ttl).ok_or(Refusal::Exhausted)?;
    let until = renew(draft, lease, ttl);
    let mut kept = BTreeMap::new();
    let mut keep = |session| *kept.entry(session).or_insert_with(|| keep_one(draft, session, guard, ttl));
    Ok(IntentAnswer::Kept { until, sessions: sessions.iter().map(&mut keep).collect() })
}

fn keep_one(draft: &mut Draft<'_>, session: &Holder, guard: Fence, ttl: Span) -> Kept {
    let Ok(session) = super::own(draft, session, guard) else { return Kept::Lost };
    if draft.over(session).is_some() || !session.state.is_taken() {
        return Kept::Lost;
    }
    let leases = draft.living_leases_of(&session.id);
    let ends = leases.into_iter().map(|lease| renew(draft, lease, ttl));
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
