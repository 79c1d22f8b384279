//! Take: the worker gets a session with its leases, or the session is over because they are not to be had.

use crate::kernel::answer::{Answer, Refusal};
use crate::kernel::command::{Acquire, Contention};
use crate::kernel::draft::{Draft, Place};
use crate::kernel::event::Event;
use crate::kernel::intent::{
    IntentAnswer, IntentEvent, Session, SessionEnd, SessionState, Take, orchestrator, slot_of, tuner,
};
use crate::kernel::mode::Mode;
use crate::kernel::name::{Holder, Resource};
use crate::kernel::value::{Fence, Nonce, Tick};
use crate::kernel::want::{Others, Want};
use crate::rules::names::{InvalidInput, stored_id};

/// First the target, then the first tuner that is free. What the session has already is refreshed: a take may be
/// repeated.
pub(super) fn take(draft: &mut Draft<'_>, take: &Take) -> Result<IntentAnswer, Refusal> {
    let session = super::own(draft, &take.session, take.guard)?;
    if let Some(over) = draft.over(session) {
        return Ok(over);
    }
    match session.state {
        // Nothing is wrong with the session: it waits until something can be granted again.
        SessionState::New => draft.check_may_grant()?,
        SessionState::Starting => {}
        _ => return Ok(super::now_at(session)),
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
    match super::super::acquire::acquire(draft, &acquire, None) {
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
        return super::super::acquire::check_ttl(draft, take.ttl);
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
