//! Decides the commands of agents.

mod declare;
mod report;

use std::collections::{BTreeMap, BTreeSet};

use super::check_may_hold;
use crate::kernel::agent::{AgentAnswer, AgentCommand, AgentEvent, Pulse};
use crate::kernel::answer::{Answer, End, Refusal};
use crate::kernel::draft::Draft;
use crate::kernel::event::{Cause, Event};
use crate::kernel::limits::{STRAY_BYTES_KEPT, STRAYS_KEPT, TOUCHES_AT_ONCE};
use crate::kernel::mode::Mode;
use crate::kernel::name::{Holder, Principal, Resource};
use crate::kernel::value::{Fence, Span, Tick};
use crate::lease::ReleaseReason;
use crate::rules::names::InvalidInput;
use crate::rules::overlap::Reach;
use crate::rules::time::extends;

pub(super) fn decide(draft: &mut Draft<'_>, command: &AgentCommand) -> Result<Answer, Refusal> {
    let answer = match command {
        AgentCommand::Declare(declare) => declare::declare(draft, declare),
        AgentCommand::Heartbeat { agent, principal, leases } => heartbeat(draft, agent, principal, leases),
        AgentCommand::Release { agent, principal, leases } => release(draft, agent, principal, leases),
        AgentCommand::Report(report) => report::report(draft, report),
        AgentCommand::Touch { agent, principal, touched } => touch(draft, agent, principal, touched),
    };
    answer.map(|answer| Answer::Agent(Box::new(answer)))
}

fn check_own(draft: &Draft<'_>, agent: &Holder, principal: &Principal) -> Result<(), Refusal> {
    if !draft.state.may_be(agent, principal, draft.now) {
        return Err(Refusal::HolderTaken { holder: agent.clone() });
    }
    check_may_hold(draft, agent, principal)
}

/// What is over already counts as released, and appends nothing.
fn release(
    draft: &mut Draft<'_>,
    agent: &Holder,
    principal: &Principal,
    leases: &[Fence],
) -> Result<AgentAnswer, Refusal> {
    check_own(draft, agent, principal)?;
    let state = draft.state;
    let (mut released, mut seen) = (Vec::with_capacity(leases.len()), BTreeSet::new());
    for fence in leases {
        let own = match state.find_lease(*fence) {
            Some(lease) => state.holder_name(lease.holder) == agent,
            None => state.ended(*fence).is_some_and(|ended| ended.holder == *agent),
        };
        if !own || !seen.insert(*fence) {
            continue;
        }
        released.push(*fence);
        if let Some(lease) = state.find_lease(*fence).filter(|lease| draft.lives(lease)) {
            draft.release(lease, ReleaseReason::Completed);
        }
    }
    Ok(AgentAnswer::Released(released))
}

/// Each lease by itself: one that is over takes nothing from the others. What would not extend succeeds all the same.
fn heartbeat(
    draft: &mut Draft<'_>,
    agent: &Holder,
    principal: &Principal,
    leases: &[Fence],
) -> Result<AgentAnswer, Refusal> {
    check_own(draft, agent, principal)?;
    draft.check_may_renew()?;
    // First what is over: that may let in a wait of this very agent, and make one of its other leases a stronger one.
    announce_ends(draft, agent, leases);
    let settled = Settled::of(draft.events());
    // Twice in one request is once.
    let mut pulses = BTreeMap::new();
    let mut pulse = |fence| *pulses.entry(fence).or_insert_with(|| beat(draft, agent, fence, &settled));
    Ok(AgentAnswer::Beaten(leases.iter().map(|fence| (*fence, pulse(*fence))).collect()))
}

/// What became of leases in this decision, before any heartbeat. Nearly always nothing: but a thousand may be asked for, and
/// each would look through what the others led to.
struct Settled {
    renewed: BTreeMap<Fence, Tick>,
    revoked: BTreeMap<Fence, Cause>,
}

impl Settled {
    fn of(events: &[Event]) -> Self {
        let (mut renewed, mut revoked) = (BTreeMap::new(), BTreeMap::new());
        for event in events {
            match event {
                Event::Renewed { lease, expires_at, .. } => _ = renewed.insert(*lease, *expires_at),
                Event::Revoked { lease, cause, .. } => _ = revoked.insert(*lease, *cause),
                _ => {}
            }
        }
        Self { renewed, revoked }
    }
}

fn announce_ends(draft: &mut Draft<'_>, agent: &Holder, leases: &[Fence]) {
    let state = draft.state;
    for lease in leases.iter().filter_map(|fence| state.find_lease(*fence)) {
        if state.holder_name(lease.holder) == agent && !draft.lives(lease) {
            draft.settle(state.resource_name(lease.resource));
        }
    }
}

fn beat(draft: &mut Draft<'_>, agent: &Holder, fence: Fence, settled: &Settled) -> Pulse {
    let state = draft.state;
    let Some(lease) = state.find_lease(fence) else {
        let ended = state.ended(fence).filter(|ended| ended.holder == *agent);
        return ended.map_or(Pulse::Unknown, |ended| Pulse::Over(ended.end));
    };
    if state.holder_name(lease.holder) != agent {
        return Pulse::Unknown;
    }
    if !draft.lives(lease) {
        return Pulse::Over(settled.revoked.get(&fence).copied().map_or(End::Expired, End::Revoked));
    }
    let expires_at = draft.now.saturating_add(lease.terms.ttl);
    let until = settled.renewed.get(&fence).copied().unwrap_or(lease.terms.expires_at);
    if !extends(until.0, expires_at.0) || !draft.may_last_until(lease, expires_at) {
        return Pulse::Until(until);
    }
    draft.push(Event::Renewed { lease: fence, at: draft.now, expires_at, ttl: lease.terms.ttl });
    Pulse::Until(expires_at)
}

/// What is within needs no record, unless it shows that a lease is used. What is beyond is told once in an attempt.
fn touch(
    draft: &mut Draft<'_>,
    agent: &Holder,
    principal: &Principal,
    touched: &[(Resource, Mode)],
) -> Result<AgentAnswer, Refusal> {
    if touched.is_empty() || touched.len() > TOUCHES_AT_ONCE {
        let reason = format!("has to have from 1 to {TOUCHES_AT_ONCE} entries");
        return Err(InvalidInput::new("resources", reason).into());
    }
    check_own(draft, agent, principal)?;
    if draft.state.agent(agent).is_none() {
        return Err(Refusal::NoSuchAgent);
    }
    draft.check_has_room()?;
    draft.expire_all_of(agent);
    let living = draft.living_leases_of(agent);
    let (mut used, mut outside): (Vec<Fence>, Vec<(Resource, Mode)>) = (Vec::new(), Vec::new());
    for (resource, mode) in touched {
        let reach = Reach::of(resource.as_str());
        let within = |name: &Resource| Reach::of(name.as_str()).covers(reach);
        let covering = living.iter().filter(|lease| {
            lease.terms.mode.covers(*mode) && within(draft.state.resource_name(lease.resource))
        });
        let before = used.len();
        used.extend(covering.map(|lease| lease.fence));
        if used.len() == before && !outside.iter().any(|(known, _)| known == resource) {
            outside.push((resource.clone(), *mode));
        }
    }
    note_use(draft, agent, used);
    note_strays(draft, agent, &outside);
    Ok(AgentAnswer::Touched { outside })
}

/// Not every touch is a record: an eighth of the time that a lease may lie idle is near enough.
fn note_use(draft: &mut Draft<'_>, agent: &Holder, mut used: Vec<Fence>) {
    let Some(idle) = draft.state.limits().idle else { return };
    let near = Span(idle.0 / 8);
    let now = draft.now;
    used.sort_unstable();
    used.dedup();
    used.retain(|fence| draft.state.touched_at(*fence).is_some_and(|at| now.since(at) >= near));
    if !used.is_empty() {
        let event = AgentEvent::Touched { agent: agent.clone(), at: now, leases: used };
        draft.push(Event::Agent(Box::new(event)));
    }
}

fn note_strays(draft: &mut Draft<'_>, agent: &Holder, outside: &[(Resource, Mode)]) {
    let known = draft.state.agent(agent).map(|agent| &agent.strayed[..]).unwrap_or_default();
    let room = STRAYS_KEPT.saturating_sub(known.len());
    let mut bytes: usize = known.iter().map(|resource| resource.as_str().len()).sum();
    let new = outside.iter().filter(|(resource, _)| !known.contains(resource)).take(room);
    let new = new.take_while(|(resource, _)| {
        bytes += resource.as_str().len();
        bytes <= STRAY_BYTES_KEPT
    });
    let new: Vec<_> = new.cloned().collect();
    if !new.is_empty() {
        let event = AgentEvent::Strayed { agent: agent.clone(), at: draft.now, outside: new };
        draft.push(Event::Agent(Box::new(event)));
    }
}
