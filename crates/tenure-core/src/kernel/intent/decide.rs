//! Decides the commands of intent sessions.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::session::{active_count_and_size, end_session, ended_outcome, push_session_end};
use crate::kernel::command::{Acquire, ContentionPolicy};
use crate::kernel::event::{Event, RevocationCause};
use crate::kernel::intent::{
    AcceptIntent, IntentAcceptance, IntentCommand, IntentEvent, IntentOutcome, IntentSession,
    IntentSessionEnd, IntentSessionState, KeepAliveOutcome, LEADER_LOCK, ORCHESTRATOR_PRINCIPAL,
    TakeIntentSession, orchestrator_principal, tuner_resource, tuner_slot,
};
use crate::kernel::lease::decision_builder::{DecisionBuilder, Grant, QueuePosition};
use crate::kernel::lease::lease_request::{Alternatives, LeaseRequest};
use crate::kernel::lease::{acquire, check_detail};
use crate::kernel::outcome::{CommandOutcome, Rejection};
use crate::kernel::state::{KernelState, LeaseEntry};
use crate::rules::{InvalidInput, extends, stored_id};
use crate::value::{
    Fence, Holder, LeaseMode, MAX_INTENT_SESSIONS_PER_COMMAND, Nonce, Principal, Resource, Tick, TickDuration,
};

pub(in crate::kernel) fn decide(
    decision: &mut DecisionBuilder<'_>,
    command: &IntentCommand,
) -> Result<CommandOutcome, Rejection> {
    let answer = match command {
        IntentCommand::Accept(request) => accept(decision, request),
        IntentCommand::Stop { session, by } => stop(decision, session, by),
        IntentCommand::Take(request) => take(decision, request),
        IntentCommand::Run { session, leader: guard, process } => run(decision, session, *guard, process),
        IntentCommand::KeepAlive { guard, ttl, sessions } => keep_alive(decision, *guard, *ttl, sessions),
        IntentCommand::Finish { session, guard, end, detail } => {
            finish(decision, session, *guard, *end, detail)
        }
        IntentCommand::Wipe { guard, sessions } => wipe(decision, *guard, sessions),
    };
    answer.map(|answer| CommandOutcome::Intent(Box::new(answer)))
}

fn find_session<'a>(
    decision: &DecisionBuilder<'a>,
    session: &Holder,
) -> Result<&'a IntentSession, Rejection> {
    let state: &'a KernelState = decision.state;
    state.intent_session(session).ok_or(Rejection::NoSuchSession)
}

/// The guard, if it lives. Whoever asks under another one has been replaced, or was never the worker.
fn check_leader<'a>(decision: &DecisionBuilder<'a>, fence: Fence) -> Result<&'a LeaseEntry, Rejection> {
    let state: &'a KernelState = decision.state;
    let lease = state.find_lease(fence).filter(|lease| decision.is_active(lease));
    let is_guard = |lease: &&LeaseEntry| {
        // Several could hold it together in another mode, and anybody could hold it as a plain lease.
        state.resource_name(lease.resource).as_str() == LEADER_LOCK
            && lease.terms.mode == LeaseMode::Exclusive
            && state.principal_of(lease.holder).1.as_str() == ORCHESTRATOR_PRINCIPAL
    };
    lease.filter(is_guard).ok_or(Rejection::LeaderLost)
}

/// A session that a worker has, under the guard that it was taken with.
fn owned_session<'a>(
    decision: &DecisionBuilder<'a>,
    session: &Holder,
    guard: Fence,
) -> Result<&'a IntentSession, Rejection> {
    check_leader(decision, guard)?;
    let session = find_session(decision, session)?;
    let is_own = session.worker.as_ref().is_some_and(|(_, taken)| *taken == guard);
    if session.state.is_taken() && !is_own { Err(Rejection::LeaderLost) } else { Ok(session) }
}

/// So many sessions in one request are too many for one decision.
fn check_count(sessions: &[Holder]) -> Result<(), Rejection> {
    if sessions.len() > MAX_INTENT_SESSIONS_PER_COMMAND {
        let reason = format!(
            "has {} entries; at most {MAX_INTENT_SESSIONS_PER_COMMAND} are allowed; ask in parts",
            sessions.len()
        );
        return Err(InvalidInput::new("sessions", reason).into());
    }
    Ok(())
}

fn current_outcome(session: &IntentSession) -> IntentOutcome {
    IntentOutcome::Current { state: session.state, end: session.end }
}

fn outcome_in_state(state: IntentSessionState) -> IntentOutcome {
    IntentOutcome::Current { state, end: None }
}

/// No lease is asked for, unless the caller wants it so; then before everything else, so that of two equal requests one
/// is refused.
fn accept(decision: &mut DecisionBuilder<'_>, accept: &AcceptIntent) -> Result<IntentOutcome, Rejection> {
    accept.intent.check()?;
    let request = accept.lease.map(|(ttl, nonce)| target_request(accept, ttl, nonce));
    if let Some(request) = &request {
        acquire::check_ttl(decision, request.ttl)?;
        decision.check_not_in_restore_quarantine()?;
        check_is_free(decision, request)?;
    }
    if let Some(session) = existing_session(decision, accept) {
        return Ok(IntentOutcome::Accepted { session: session.id.clone(), is_new: false });
    }
    check_can_start_session(decision, accept)?;
    // Before the first event: a refusal leaves no lease behind that belongs to no session.
    let start_by =
        decision.now.checked_add(accept.wait_timeout.max(TickDuration(1))).ok_or(Rejection::Exhausted)?;
    if let Some(request) = &request {
        decision.check_may_grant()?;
        decision.issue_lease(Grant::new(&accept.session, &orchestrator_principal(), request))?;
    }
    decision.push(Event::Intent(Box::new(IntentEvent::Accepted(IntentAcceptance {
        session: accept.session.clone(),
        intent: accept.intent.clone(),
        key: accept.key,
        principal: accept.principal.clone(),
        at: decision.now,
        start_by,
    }))));
    Ok(IntentOutcome::Accepted { session: accept.session.clone(), is_new: true })
}

/// The session that the same request became, if that goes on. One that is over, announced or not, is none: what is
/// wanted begins anew.
fn existing_session<'a>(
    decision: &mut DecisionBuilder<'a>,
    accept: &AcceptIntent,
) -> Option<&'a IntentSession> {
    let state = decision.state;
    let keys = [Some(accept.key), accept.previous_key].into_iter().flatten();
    let kind = accept.intent.target.kind();
    let mut sessions = keys.filter_map(|key| state.intent_session_by_key(key, kind));
    sessions.find(|session| ended_outcome(decision, session).is_none())
}

fn check_can_start_session(decision: &DecisionBuilder<'_>, accept: &AcceptIntent) -> Result<(), Rejection> {
    decision.check_has_space()?;
    let limits = decision.state.limits();
    let (live, bytes) = active_count_and_size(decision);
    let own = IntentSession::byte_size_of(&accept.session, &accept.intent, &accept.principal);
    if live >= limits.max_intent_sessions || bytes + own > limits.max_intent_session_bytes {
        return Err(Rejection::TooManySessions { max: limits.max_intent_sessions });
    }
    // What it holds is found by its name, so that has to be nobody's.
    let (state, id) = (decision.state, &accept.session);
    let is_busy = state.find_holder(id).is_some_and(|holder| !state.is_holder_idle(holder));
    if state.intent_session(id).is_some()
        || state.file_session(id).is_some()
        || is_busy
        || !state.can_use_holder(id, &orchestrator_principal(), decision.now)
    {
        return Err(Rejection::HolderTaken { holder: id.clone() });
    }
    Ok(())
}

fn target_request(accept: &AcceptIntent, ttl: TickDuration, nonce: Nonce) -> LeaseRequest {
    LeaseRequest::new(accept.intent.target.resource(), LeaseMode::Exclusive, ttl, nonce)
}

fn check_is_free(decision: &mut DecisionBuilder<'_>, request: &LeaseRequest) -> Result<(), Rejection> {
    decision.expire_and_serve(&request.resource);
    let waiting = decision.waiter_count(&request.resource);
    let Some(blocker) = decision.blockers(&request.resource, request.mode, QueuePosition::default()).next()
    else {
        return Ok(());
    };
    let (resource, holder) = (request.resource.clone(), blocker.holder.clone());
    Err(Rejection::Held { resource, holder, until: blocker.until, waiting })
}

/// First the target, then the first tuner that is free. What the session has already is refreshed: a take may be
/// repeated.
fn take(decision: &mut DecisionBuilder<'_>, take: &TakeIntentSession) -> Result<IntentOutcome, Rejection> {
    let session = owned_session(decision, &take.session, take.leader)?;
    if let Some(outcome) = ended_outcome(decision, session) {
        return Ok(outcome);
    }
    match session.state {
        // Nothing is wrong with the session: it waits until something can be granted again.
        IntentSessionState::New => decision.check_may_grant()?,
        IntentSessionState::Starting => {}
        _ => return Ok(current_outcome(session)),
    }
    check(decision, take)?;
    let resource = session.intent.target.resource();
    if let Some(holder) = blocking_holder(decision, session, &resource) {
        let detail = format!("{} is held by {holder}", stored_id(resource.as_str()));
        return Ok(end_session(decision, session, IntentSessionEnd::Busy, &detail));
    }
    let Some(requests) = session_requests(take, session, resource) else {
        return Ok(end_session(decision, session, IntentSessionEnd::NoTuner, "there is no tuner"));
    };
    let acquire = Acquire {
        principal: orchestrator_principal(),
        holder: session.id.clone(),
        requests,
        contention_policy: ContentionPolicy::RefreshOwn,
        key: None,
    };
    match acquire::acquire(decision, &acquire, None) {
        Ok(CommandOutcome::Granted { leases }) => Ok(start(decision, take, session, leases)),
        // The target is free or the session's own, so it is the tuners that are not.
        Err(Rejection::Held { holder, .. }) => {
            let detail = format!("every tuner is in use, one of them by {}", holder.to_stored_id());
            Ok(end_session(decision, session, IntentSessionEnd::NoTuner, &detail))
        }
        Err(rejection) => Err(rejection),
        Ok(_) => Err(Rejection::Exhausted),
    }
}

/// What is wrong with the request is no reason to end the session.
fn check(decision: &DecisionBuilder<'_>, take: &TakeIntentSession) -> Result<(), Rejection> {
    let max = decision.state.limits().max_alternatives;
    if usize::try_from(take.slots).is_ok_and(|slots| slots <= max) {
        return acquire::check_ttl(decision, take.ttl);
    }
    Err(InvalidInput::new("tuners", format!("is over {max}, which is as many as there may be")).into())
}

/// Who has the target or waits for it; nobody, if the session has it already. Names are cut to what fits into a text for
/// people.
fn blocking_holder(
    decision: &mut DecisionBuilder<'_>,
    session: &IntentSession,
    resource: &Resource,
) -> Option<Holder> {
    let slot = decision.state.find_resource(resource)?;
    decision.expire_and_serve(resource);
    if decision.active_leases_of(&session.id).iter().any(|lease| lease.resource == slot) {
        return None;
    }
    let mut blockers = decision.blockers(resource, LeaseMode::Exclusive, QueuePosition::default());
    blockers.next().map(|blocker| blocker.holder.to_stored_id())
}

/// What the session needs; nothing, if there are no tuners and it needs one.
fn session_requests(
    take: &TakeIntentSession,
    session: &IntentSession,
    resource: Resource,
) -> Option<Vec<LeaseRequest>> {
    let request = |resource: Resource, alternatives: Alternatives, nonce: Nonce| LeaseRequest {
        resource,
        alternatives,
        mode: LeaseMode::Exclusive,
        ttl: take.ttl,
        nonce,
        labels: Default::default(),
    };
    let [of_target, of_tuner] = take.nonces;
    let mut requests = vec![request(resource, Alternatives::default(), of_target)];
    if session.intent.target.requires_tuner() {
        // The one that it has already, if this is a repetition.
        let first = session.slot.or((take.slots > 0).then_some(0))?;
        let slots = if session.slot.is_some() { 0..0 } else { 1..take.slots };
        requests.push(request(tuner_resource(first), Alternatives::new(slots.map(tuner_resource)), of_tuner));
    }
    Some(requests)
}

fn start(
    decision: &mut DecisionBuilder<'_>,
    take: &TakeIntentSession,
    session: &IntentSession,
    leases: Vec<Fence>,
) -> IntentOutcome {
    let (until, slot) = earliest_expiry_and_slot(decision, &leases, session.slot);
    if session.state == IntentSessionState::New {
        let guard = decision.state.find_lease(take.leader).expect("the guard lives");
        let worker = decision.state.holder_name(guard.holder).clone();
        let starting = IntentEvent::Starting {
            session: session.id.clone(),
            at: decision.now,
            worker,
            leader: take.leader,
            slot,
        };
        decision.push(Event::Intent(Box::new(starting)));
    }
    IntentOutcome::Taken { leases, slot, until }
}

/// When the first of these leases is over, and which of them is a tuner.
fn earliest_expiry_and_slot(
    decision: &DecisionBuilder<'_>,
    leases: &[Fence],
    slot: Option<u32>,
) -> (Tick, Option<u32>) {
    let (mut until, mut slot) = (Tick(u64::MAX), slot);
    for fence in leases {
        let (end, resource) =
            decision.expiry_and_resource_of(*fence).expect("it was just granted or renewed");
        until = until.min(end);
        slot = slot.or_else(|| tuner_slot(resource));
    }
    (until, slot)
}

/// Somebody may have asked for its end meanwhile, or it may have lost a lease: then it does not run, and the answer says
/// where it is.
fn run(
    decision: &mut DecisionBuilder<'_>,
    session: &Holder,
    guard: Fence,
    process: &Arc<str>,
) -> Result<IntentOutcome, Rejection> {
    check_detail(process)?;
    let session = owned_session(decision, session, guard)?;
    if let Some(outcome) = ended_outcome(decision, session) {
        return Ok(outcome);
    }
    decision.check_not_in_restore_quarantine()?;
    if session.state != IntentSessionState::Starting {
        return Ok(current_outcome(session));
    }
    decision.push(Event::Intent(Box::new(IntentEvent::Running {
        session: session.id.clone(),
        at: decision.now,
        process: process.clone(),
    })));
    Ok(outcome_in_state(IntentSessionState::Running))
}

/// A lost lease is never made anew: its session is over, or ends with this very decision. One that is named twice is
/// kept once.
fn keep_alive(
    decision: &mut DecisionBuilder<'_>,
    guard: Fence,
    ttl: TickDuration,
    sessions: &[Holder],
) -> Result<IntentOutcome, Rejection> {
    let lease = check_leader(decision, guard)?;
    check_count(sessions)?;
    acquire::check_ttl(decision, ttl)?;
    decision.check_may_renew()?;
    decision.now.checked_add(ttl).ok_or(Rejection::Exhausted)?;
    let until = renew(decision, lease, ttl);
    let mut kept = BTreeMap::new();
    let mut keep =
        |session| *kept.entry(session).or_insert_with(|| keep_alive_one(decision, session, guard, ttl));
    Ok(IntentOutcome::KeptAlive { until, sessions: sessions.iter().map(&mut keep).collect() })
}

fn keep_alive_one(
    decision: &mut DecisionBuilder<'_>,
    session: &Holder,
    guard: Fence,
    ttl: TickDuration,
) -> KeepAliveOutcome {
    let Ok(session) = owned_session(decision, session, guard) else { return KeepAliveOutcome::Lost };
    if ended_outcome(decision, session).is_some() || !session.state.is_taken() {
        return KeepAliveOutcome::Lost;
    }
    let leases = decision.active_leases_of(&session.id);
    let ends = leases.into_iter().map(|lease| renew(decision, lease, ttl));
    // A session that is taken has at least one.
    KeepAliveOutcome::Active { until: ends.min().unwrap_or_default(), state: session.state }
}

fn renew(decision: &mut DecisionBuilder<'_>, lease: &LeaseEntry, ttl: TickDuration) -> Tick {
    let expires_at = decision.now.saturating_add(ttl);
    if !extends(lease.terms.expires_at.0, expires_at.0) {
        return lease.terms.expires_at;
    }
    decision.push(Event::Renewed { lease: lease.fence, at: decision.now, expires_at, ttl });
    expires_at
}

/// What the session holds is given back in the same decision. One that is over stays as it is, and so does one that
/// was over before anybody said so.
fn finish(
    decision: &mut DecisionBuilder<'_>,
    session: &Holder,
    guard: Fence,
    end: IntentSessionEnd,
    detail: &str,
) -> Result<IntentOutcome, Rejection> {
    check_detail(detail)?;
    let session = owned_session(decision, session, guard)?;
    if let Some(outcome) = ended_outcome(decision, session) {
        return Ok(outcome);
    }
    // One that was never taken cannot have been carried out: whoever says so knows another ledger.
    if session.state == IntentSessionState::New {
        return Err(Rejection::LeaderLost);
    }
    Ok(end_session(decision, session, end, detail))
}

/// One that no worker has is over at once; else its worker hears of it. Stopping what stops or is over changes nothing.
fn stop(
    decision: &mut DecisionBuilder<'_>,
    session: &Holder,
    by: &Principal,
) -> Result<IntentOutcome, Rejection> {
    let session = find_session(decision, session)?;
    if let Some(outcome) = ended_outcome(decision, session) {
        return Ok(outcome);
    }
    match session.state {
        IntentSessionState::New => {
            Ok(end_session(decision, session, IntentSessionEnd::Stopped, "before a worker took it"))
        }
        IntentSessionState::Starting | IntentSessionState::Running => {
            decision.push(Event::Intent(Box::new(IntentEvent::Stopping {
                session: session.id.clone(),
                at: decision.now,
                by: by.clone(),
            })));
            Ok(outcome_in_state(IntentSessionState::Stopping))
        }
        IntentSessionState::Stopping | IntentSessionState::Ended => Ok(current_outcome(session)),
    }
}

/// Sessions of another guard only, and only those that are named: their processes were seen gone. What no worker has
/// taken stays, and so does what belongs to nobody's session.
fn wipe(
    decision: &mut DecisionBuilder<'_>,
    guard: Fence,
    sessions: &[Holder],
) -> Result<IntentOutcome, Rejection> {
    check_leader(decision, guard)?;
    check_count(sessions)?;
    let (mut wiped, state) = (0, decision.state);
    for id in sessions {
        let Some(session) = state.intent_session(id) else { continue };
        let is_foreign = session.worker.as_ref().is_some_and(|(_, taken)| *taken != guard);
        if !session.state.is_taken() || !is_foreign || ended_outcome(decision, session).is_some() {
            continue;
        }
        push_session_end(decision, session, IntentSessionEnd::WorkerRestarted, "its worker was gone");
        for lease in decision.active_leases_of(&session.id) {
            decision.revoke(lease, RevocationCause::Wiped, &orchestrator_principal(), "its worker was gone");
        }
        wiped += 1;
    }
    Ok(IntentOutcome::Wiped { sessions: wiped })
}
