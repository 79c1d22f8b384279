//! Accept: an intent becomes a session, or is the session that it became before.

use crate::kernel::answer::Refusal;
use crate::kernel::draft::{Draft, Grant, Place};
use crate::kernel::event::Event;
use crate::kernel::intent::{Accept, Accepted, IntentAnswer, IntentEvent, Session, orchestrator};
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
        draft.check_is_not_held_back()?;
        check_is_free(draft, want)?;
    }
    if let Some(session) = before(draft, accept) {
        return Ok(IntentAnswer::Accepted { session: session.id.clone(), is_new: false });
    }
    check_may_begin(draft, accept)?;
    // Before the first event: a refusal leaves no lease behind that belongs to no session.
    let start_by = draft.now.checked_add(accept.patience.max(Span(1))).ok_or(Refusal::Exhausted)?;
    if let Some(want) = &want {
        draft.check_may_grant()?;
        let (holder, principal, resource) = (&accept.session, &orchestrator(), &want.resource);
        let (key, ticket, continues, authority) = (None, None, None, None);
        draft.issue(Grant { holder, principal, want, resource, key, ticket, continues, authority })?;
    }
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

/// The session that the same request became, if that goes on. One that is over, announced or not, is none: what is
/// wanted begins anew.
fn before<'a>(draft: &mut Draft<'a>, accept: &Accept) -> Option<&'a Session> {
    let state = draft.state;
    let keys = [Some(accept.key), accept.previous_key].into_iter().flatten();
    let kind = accept.intent.target.kind();
    let mut sessions = keys.filter_map(|key| state.session_under(key, kind));
    sessions.find(|session| draft.over(session).is_none())
}

fn check_may_begin(draft: &Draft<'_>, accept: &Accept) -> Result<(), Refusal> {
    draft.check_has_room()?;
    let limits = draft.state.limits();
    let (live, bytes) = draft.live_sessions();
    let own = Session::bytes_of(&accept.session, &accept.intent, &accept.principal);
    if live >= limits.sessions || bytes + own > limits.session_bytes {
        return Err(Refusal::TooManySessions { most: limits.sessions });
    }
    // What it holds is found by its name, so that has to be nobody's.
    let (state, id) = (draft.state, &accept.session);
    let is_busy = state.find_holder(id).is_some_and(|holder| !state.rests(holder));
    if state.session(id).is_some()
        || state.file_session(id).is_some()
        || is_busy
        || !state.may_be(id, &orchestrator(), draft.now)
    {
        return Err(Refusal::HolderTaken { holder: id.clone() });
    }
    Ok(())
}

fn target_of(accept: &Accept, ttl: Span, nonce: Nonce) -> Want {
    Want::new(accept.intent.target.resource(), Mode::Exclusive, ttl, nonce)
}

fn check_is_free(draft: &mut Draft<'_>, want: &Want) -> Result<(), Refusal> {
    draft.settle(&want.resource);
    let waiting = draft.waiting_on(&want.resource);
    let Some(blocker) = draft.blockers(&want.resource, want.mode, Place::default()).next() else {
        return Ok(());
    };
    let (resource, holder) = (want.resource.clone(), blocker.holder.clone());
    Err(Refusal::Held { resource, holder, until: blocker.until, waiting })
}
