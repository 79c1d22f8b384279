//! Accept: an intent becomes a session, or is the session that it became before.

use crate::kernel::answer::Refusal;
use crate::kernel::draft::{Draft, Grant, Place};
use crate::kernel::event::Event;
use crate::kernel::intent::{Accept, Accepted, IntentAnswer, IntentEvent, orchestrator};
use crate::kernel::mode::Mode;
use crate::kernel::value::{Nonce, Span};
use crate::kernel::want::Want;

/// No lease is asked for, unless the caller wants it so; then before everything else, so that of two equal requests one
/// is refused.
pub(super) fn accept(draft: &mut Draft<'_>, accept: &Accept) -> Result<IntentAnswer, Refusal> {
    accept.intent.check()?;
    let want = accept.lease.map(|(ttl, nonce)| target_of(accept, ttl, nonce));
    if let Some(want) = &want {
        super::super::acquire::check_ttl(draft, want.ttl)?;
        check_is_free(draft, want)?;
    }
    let state = draft.state;
    let before = state.session_under(accept.key);
    let before = before.or_else(|| accept.previous_key.and_then(|key| state.session_under(key)));
    if let Some(session) = before {
        return Ok(IntentAnswer::Accepted { session: session.id.clone(), is_new: false });
    }
    draft.check_has_room()?;
    let limits = draft.state.limits();
    let (live, bytes) = draft.state.live_sessions();
    if live >= limits.sessions || bytes + accept.intent.bytes() > limits.session_bytes {
        return Err(Refusal::TooManySessions { most: limits.sessions });
    }
    if draft.state.session(&accept.session).is_some() {
        return Err(Refusal::HolderTaken { holder: accept.session.clone() });
    }
    if let Some(want) = &want {
        draft.check_may_grant()?;
        let (holder, principal, resource) = (&accept.session, &orchestrator(), &want.resource);
        let (key, ticket, continues) = (None, None, None);
        draft.issue(Grant { holder, principal, want, resource, key, ticket, continues })?;
    }
    let patience = accept.patience.max(Span(1));
    let start_by = draft.now.checked_add(patience).ok_or(Refusal::Exhausted)?;
    draft.push(Event::Intent(Box::new(IntentEvent::Accepted(Accepted {
        session: accept.session.clone(),
        intent: accept.intent.clone(),
        key: accept.key,
        principal: accept.principal.clone(),
        at: draft.now,
        start_by,
    }))));
    Ok(IntentAnswer::Accepted { session: accept.session.clone(), is_new: true })
}

fn target_of(accept: &Accept, ttl: Span, nonce: Nonce) -> Want {
    Want {
        resource: accept.intent.target.resource(),
        others: Default::default(),
        mode: Mode::Exclusive,
        ttl,
        nonce,
        labels: Default::default(),
    }
}

fn check_is_free(draft: &mut Draft<'_>, want: &Want) -> Result<(), Refusal> {
    if let Some(slot) = draft.state.find_resource(&want.resource) {
        draft.settle(slot);
    }
    let waiting = draft.waiting_on(&want.resource);
    let Some(blocker) = draft.blockers(&want.resource, want.mode, Place::default()).next() else {
        return Ok(());
    };
    let (resource, holder) = (want.resource.clone(), blocker.holder.clone());
    Err(Refusal::Held { resource, holder, until: blocker.until, waiting })
}
