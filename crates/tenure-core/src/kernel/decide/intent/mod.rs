//! Decides the commands of playback sessions.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::check_detail;
use crate::kernel::answer::{Answer, Refusal};
use crate::kernel::command::{Acquire, Contention};
use crate::kernel::draft::{Draft, Grant, Place};
use crate::kernel::event::{Cause, Event};
use crate::kernel::intent::{
    Accept, Accepted, GUARD, IntentAnswer, IntentCommand, IntentEvent, Kept, ORCHESTRATOR, Session,
    SessionEnd, SessionState, Take, orchestrator, slot_of, tuner,
};
use crate::kernel::limits::SESSIONS_AT_ONCE;
use crate::kernel::mode::Mode;
use crate::kernel::name::{Holder, Principal, Resource};
use crate::kernel::state::{LeaseEntry, State};
use crate::kernel::value::{Fence, Nonce, Span, Tick};
use crate::kernel::want::{Others, Want};
use crate::rules::names::{InvalidInput, stored_id};
use crate::rules::time::extends;

pub(super) fn decide(draft: &mut Draft<'_>, command: &IntentCommand) -> Result<Answer, Refusal> {
    let answer = match command {
        IntentCommand::Accept(request) => accept(draft, request),
        IntentCommand::Stop { session, by } => stop(draft, session, by),
        IntentCommand::Take(request) => take(draft, request),
        IntentCommand::Run { session, guard, process } => run(draft, session, *guard, process),
        IntentCommand::Keep { guard, ttl, sessions } => keep(draft, *guard, *ttl, sessions),
        IntentCommand::Finish { session, guard, end, detail } => finish(draft, session, *guard, *end, detail),
        IntentCommand::Wipe { guard, sessions } => wipe(draft, *guard, sessions),
    };
    answer.map(|answer| Answer::Intent(Box::new(answer)))
}

fn known<'a>(draft: &Draft<'a>, session: &Holder) -> Result<&'a Session, Refusal> {
    let state: &'a State = draft.state;
    state.session(session).ok_or(Refusal::NoSuchSession)
}

/// The guard, if it lives. Whoever asks under another one has been replaced, or was never the worker.
fn guarded<'a>(draft: &Draft<'a>, fence: Fence) -> Result<&'a LeaseEntry, Refusal> {
    let state: &'a State = draft.state;
    let lease = state.find_lease(fence).filter(|lease| draft.lives(lease));
    let is_guard = |lease: &&LeaseEntry| {
        // Several could hold it together in another mode, and anybody could hold it as a plain lease.
        state.resource_name(lease.resource).as_str() == GUARD
            && lease.terms.mode == Mode::Exclusive
            && state.principal_of(lease.holder).1.as_str() == ORCHESTRATOR
    };
    lease.filter(is_guard).ok_or(Refusal::GuardLost)
}

/// A session that a worker has, under the guard that it was taken with.
fn own<'a>(draft: &Draft<'a>, session: &Holder, guard: Fence) -> Result<&'a Session, Refusal> {
    guarded(draft, guard)?;
    let session = known(draft, session)?;
    let is_own = session.worker.as_ref().is_some_and(|(_, taken)| *taken == guard);
    if session.state.is_taken() && !is_own { Err(Refusal::GuardLost) } else { Ok(session) }
}

/// So many sessions in one request are too many for one decision.
fn check_count(sessions: &[Holder]) -> Result<(), Refusal> {
    if sessions.len() > SESSIONS_AT_ONCE {
        let reason =
            format!("has {} entries; at most {SESSIONS_AT_ONCE} are allowed; ask in parts", sessions.len());
        return Err(InvalidInput::new("sessions", reason).into());
    }
    Ok(())
}

fn now_at(session: &Session) -> IntentAnswer {
    IntentAnswer::Now { state: session.state, end: session.end }
}

fn now_in(state: SessionState) -> IntentAnswer {
    IntentAnswer::Now { state, end: None }
}

/// No lease is asked for, unless the caller wants it so; then before everything else, so that of two equal requests one
/// is refused.
fn accept(draft: &mut Draft<'_>, accept: &Accept) -> Result<IntentAnswer, Refusal> {
    accept.intent.check()?;
    let want = accept.lease.map(|(ttl, nonce)| target_of(accept, ttl, nonce));
    if let Some(want) = &want {
        super::acquire::check_ttl(draft, want.ttl)?;
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

/// First the target, then the first tuner that is free. What the session has already is refreshed: a take may be
/// repeated.
fn take(draft: &mut Draft<'_>, take: &Take) -> Result<IntentAnswer, Refusal> {
    let session = own(draft, &take.session, take.guard)?;
    if let Some(over) = draft.over(session) {
        return Ok(over);
    }
    match session.state {
        // Nothing is wrong with the session: it waits until something can be granted again.
        SessionState::New => draft.check_may_grant()?,
        SessionState::Starting => {}
        _ => return Ok(now_at(session)),
    }
    check(draft, take)?;
    let resource = session.intent.target.resource();
    if let Some(holder) = in_the_way(draft, session, &resource) {
        let detail = format!("{} is held by {holder}", stored_id(resource.as_str()));
        return Ok(draft.end_session(session, SessionEnd::Busy, &detail));
    }
    let Some(wants) = wants(take, session, resource) else {
        return Ok(draft.end_session(session, SessionEnd::NoTuner, "there is no tuner"));
    };
    let acquire = Acquire {
        principal: orchestrator(),
        holder: session.id.clone(),
        wants,
        contention: Contention::RefreshOwn,
        key: None,
    };
    match super::acquire::acquire(draft, &acquire, None) {
        Ok(Answer::Granted { leases }) => Ok(start(draft, take, session, leases)),
        // The target is free or the session's own, so it is the tuners that are not.
        Err(Refusal::Held { holder, .. }) => {
            let detail = format!("every tuner is in use, one of them by {}", holder.stored());
            Ok(draft.end_session(session, SessionEnd::NoTuner, &detail))
        }
        Err(refusal) => Err(refusal),
        Ok(_) => Err(Refusal::Exhausted),
    }
}

/// What is wrong with the request is no reason to end the session.
fn check(draft: &Draft<'_>, take: &Take) -> Result<(), Refusal> {
    let most = draft.state.limits().alternatives;
    if usize::try_from(take.slots).is_ok_and(|slots| slots <= most) {
        return super::acquire::check_ttl(draft, take.ttl);
    }
    Err(InvalidInput::new("tuners", format!("is over {most}, which is as many as there may be")).into())
}

/// Who has the target or waits for it; nobody, if the session has it already. Names are cut to what fits into a text for
/// people.
fn in_the_way(draft: &mut Draft<'_>, session: &Session, resource: &Resource) -> Option<Holder> {
    let slot = draft.state.find_resource(resource)?;
    draft.settle(resource);
    if draft.living_leases_of(&session.id).iter().any(|lease| lease.resource == slot) {
        return None;
    }
    let mut blockers = draft.blockers(resource, Mode::Exclusive, Place::default());
    blockers.next().map(|blocker| blocker.holder.stored())
}

/// What the session needs; nothing, if there are no tuners and it needs one.
fn wants(take: &Take, session: &Session, resource: Resource) -> Option<Vec<Want>> {
    let want = |resource: Resource, others: Others, nonce: Nonce| Want {
        resource,
        others,
        mode: Mode::Exclusive,
        ttl: take.ttl,
        nonce,
        labels: Default::default(),
    };
    let [of_target, of_tuner] = take.nonces;
    let mut wants = vec![want(resource, Others::default(), of_target)];
    if session.intent.target.needs_tuner() {
        // The one that it has already, if this is a repetition.
        let first = session.slot.or((take.slots > 0).then_some(0))?;
        let others = if session.slot.is_some() { 0..0 } else { 1..take.slots };
        wants.push(want(tuner(first), Others::new(others.map(tuner)), of_tuner));
    }
    Some(wants)
}

fn start(draft: &mut Draft<'_>, take: &Take, session: &Session, leases: Vec<Fence>) -> IntentAnswer {
    let (until, slot) = held(draft, &leases, session.slot);
    if session.state == SessionState::New {
        let guard = draft.state.find_lease(take.guard).expect("the guard lives");
        let worker = draft.state.holder_name(guard.holder).clone();
        let starting = IntentEvent::Starting {
            session: session.id.clone(),
            at: draft.now,
            worker,
            guard: take.guard,
            slot,
        };
        draft.push(Event::Intent(Box::new(starting)));
    }
    IntentAnswer::Taken { leases, slot, until }
}

/// When the first of these leases is over, and which of them is a tuner.
fn held(draft: &Draft<'_>, leases: &[Fence], slot: Option<u32>) -> (Tick, Option<u32>) {
    let (mut until, mut slot) = (Tick(u64::MAX), slot);
    for fence in leases {
        let (end, resource) = draft.held_until(*fence).expect("it was just granted or renewed");
        until = until.min(end);
        slot = slot.or_else(|| slot_of(resource));
    }
    (until, slot)
}

/// Somebody may have asked for its end meanwhile, or it may have lost a lease: then it does not run, and the answer says
/// where it is.
fn run(
    draft: &mut Draft<'_>,
    session: &Holder,
    guard: Fence,
    process: &Arc<str>,
) -> Result<IntentAnswer, Refusal> {
    check_detail(process)?;
    let session = own(draft, session, guard)?;
    if let Some(over) = draft.over(session) {
        return Ok(over);
    }
    draft.check_is_not_held_back()?;
    if session.state != SessionState::Starting {
        return Ok(now_at(session));
    }
    draft.push(Event::Intent(Box::new(IntentEvent::Running {
        session: session.id.clone(),
        at: draft.now,
        process: process.clone(),
    })));
    Ok(now_in(SessionState::Running))
}

/// A lost lease is never made anew: its session is over, or ends with this very decision. One that is named twice is
/// kept once.
fn keep(
    draft: &mut Draft<'_>,
    guard: Fence,
    ttl: Span,
    sessions: &[Holder],
) -> Result<IntentAnswer, Refusal> {
    let lease = guarded(draft, guard)?;
    check_count(sessions)?;
    super::acquire::check_ttl(draft, ttl)?;
    draft.check_may_renew()?;
    draft.now.checked_add(ttl).ok_or(Refusal::Exhausted)?;
    let until = renew(draft, lease, ttl);
    let mut kept = BTreeMap::new();
    let mut keep = |session| *kept.entry(session).or_insert_with(|| keep_one(draft, session, guard, ttl));
    Ok(IntentAnswer::Kept { until, sessions: sessions.iter().map(&mut keep).collect() })
}

fn keep_one(draft: &mut Draft<'_>, session: &Holder, guard: Fence, ttl: Span) -> Kept {
    let Ok(session) = own(draft, session, guard) else { return Kept::Lost };
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
    if !extends(lease.terms.expires_at.0, expires_at.0) {
        return lease.terms.expires_at;
    }
    draft.push(Event::Renewed { lease: lease.fence, at: draft.now, expires_at, ttl });
    expires_at
}

/// What the session holds is given back in the same decision. One that is over stays as it is, and so does one that
/// was over before anybody said so.
fn finish(
    draft: &mut Draft<'_>,
    session: &Holder,
    guard: Fence,
    end: SessionEnd,
    detail: &str,
) -> Result<IntentAnswer, Refusal> {
    check_detail(detail)?;
    let session = own(draft, session, guard)?;
    if let Some(over) = draft.over(session) {
        return Ok(over);
    }
    // One that was never taken cannot have been carried out: whoever says so knows another ledger.
    if session.state == SessionState::New {
        return Err(Refusal::GuardLost);
    }
    Ok(draft.end_session(session, end, detail))
}

/// One that no worker has is over at once; else its worker hears of it. Stopping what stops or is over changes nothing.
fn stop(draft: &mut Draft<'_>, session: &Holder, by: &Principal) -> Result<IntentAnswer, Refusal> {
    let session = known(draft, session)?;
    if let Some(over) = draft.over(session) {
        return Ok(over);
    }
    match session.state {
        SessionState::New => Ok(draft.end_session(session, SessionEnd::Stopped, "before a worker took it")),
        SessionState::Starting | SessionState::Running => {
            draft.push(Event::Intent(Box::new(IntentEvent::Stopping {
                session: session.id.clone(),
                at: draft.now,
                by: by.clone(),
            })));
            Ok(now_in(SessionState::Stopping))
        }
        SessionState::Stopping | SessionState::Ended => Ok(now_at(session)),
    }
}

/// Sessions of another guard only, and only those that are named: their processes were seen gone. What no worker has
/// taken stays, and so does what belongs to nobody's session.
fn wipe(draft: &mut Draft<'_>, guard: Fence, sessions: &[Holder]) -> Result<IntentAnswer, Refusal> {
    guarded(draft, guard)?;
    check_count(sessions)?;
    let (mut wiped, state) = (0, draft.state);
    for id in sessions {
        let Some(session) = state.session(id) else { continue };
        let is_foreign = session.worker.as_ref().is_some_and(|(_, taken)| *taken != guard);
        if !session.state.is_taken() || !is_foreign || draft.over(session).is_some() {
            continue;
        }
        draft.announce_end(session, SessionEnd::WorkerRestarted, "its worker was gone");
        for lease in draft.living_leases_of(&session.id) {
            draft.revoke(lease, Cause::Wiped, &orchestrator(), "its worker was gone");
        }
        wiped += 1;
    }
    Ok(IntentAnswer::Wiped { sessions: wiped })
}
