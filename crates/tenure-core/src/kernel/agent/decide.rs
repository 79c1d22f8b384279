//! Decides the commands of agents.

use std::collections::{BTreeMap, BTreeSet};

use super::{declare, report};
use crate::kernel::agent::{AgentCommand, AgentEvent, AgentOutcome, HeartbeatOutcome};
use crate::kernel::decide::check_may_hold;
use crate::kernel::decision_builder::DecisionBuilder;
use crate::kernel::event::{Event, RevocationCause};
use crate::kernel::limits::{MAX_OUTSIDE_TOUCH_BYTES, MAX_OUTSIDE_TOUCHES, MAX_TOUCHES_PER_COMMAND};
use crate::kernel::mode::LeaseMode;
use crate::kernel::name::{Holder, Principal, Resource};
use crate::kernel::newtypes::{Fence, Tick, TickDuration};
use crate::kernel::outcome::{CommandOutcome, LeaseEnd, Rejection};
use crate::lease::ReleaseReason;
use crate::rules::names::InvalidInput;
use crate::rules::overlap::ResourcePattern;
use crate::rules::time::extends;

pub(in crate::kernel) fn decide(
    draft: &mut DecisionBuilder<'_>,
    command: &AgentCommand,
) -> Result<CommandOutcome, Rejection> {
    let answer = match command {
        AgentCommand::Declare(declare) => declare::declare(draft, declare),
        AgentCommand::Heartbeat { agent, principal, leases } => heartbeat(draft, agent, principal, leases),
        AgentCommand::Release { agent, principal, leases } => release(draft, agent, principal, leases),
        AgentCommand::Report(report) => report::report(draft, report),
        AgentCommand::Touch { agent, principal, touched } => touch(draft, agent, principal, touched),
    };
    answer.map(|answer| CommandOutcome::Agent(Box::new(answer)))
}

pub(super) fn check_agent_holder(
    draft: &DecisionBuilder<'_>,
    agent: &Holder,
    principal: &Principal,
) -> Result<(), Rejection> {
    if !draft.state.can_use_holder(agent, principal, draft.now) {
        return Err(Rejection::HolderTaken { holder: agent.clone() });
    }
    check_may_hold(draft, agent, principal)
}

/// What is over already counts as released, and appends nothing.
fn release(
    draft: &mut DecisionBuilder<'_>,
    agent: &Holder,
    principal: &Principal,
    leases: &[Fence],
) -> Result<AgentOutcome, Rejection> {
    check_agent_holder(draft, agent, principal)?;
    let state = draft.state;
    let (mut released, mut seen) = (Vec::with_capacity(leases.len()), BTreeSet::new());
    for fence in leases {
        let own = match state.find_lease(*fence) {
            Some(lease) => state.holder_name(lease.holder) == agent,
            None => state.ended_lease(*fence).is_some_and(|ended| ended.holder == *agent),
        };
        if !own || !seen.insert(*fence) {
            continue;
        }
        released.push(*fence);
        if let Some(lease) = state.find_lease(*fence).filter(|lease| draft.is_active(lease)) {
            draft.release(lease, ReleaseReason::Completed);
        }
    }
    Ok(AgentOutcome::Released(released))
}

/// Each lease by itself: one that is over takes nothing from the others. What would not extend succeeds all the same.
fn heartbeat(
    draft: &mut DecisionBuilder<'_>,
    agent: &Holder,
    principal: &Principal,
    leases: &[Fence],
) -> Result<AgentOutcome, Rejection> {
    check_agent_holder(draft, agent, principal)?;
    draft.check_may_renew()?;
    // First what is over: that may let in a wait of this very agent, and make one of its other leases a stronger one.
    expire_due_leases(draft, agent, leases);
    let settled = LeaseChanges::of(draft.events());
    // Twice in one request is once.
    let mut renewals = BTreeMap::new();
    let mut renew =
        |fence| *renewals.entry(fence).or_insert_with(|| renew_on_heartbeat(draft, agent, fence, &settled));
    Ok(AgentOutcome::Heartbeats(leases.iter().map(|fence| (*fence, renew(*fence))).collect()))
}

/// What became of leases in this decision, before any heartbeat. Nearly always nothing: but a thousand may be asked for, and
/// each would look through what the others led to.
struct LeaseChanges {
    renewed: BTreeMap<Fence, Tick>,
    revoked: BTreeMap<Fence, RevocationCause>,
}

impl LeaseChanges {
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

fn expire_due_leases(draft: &mut DecisionBuilder<'_>, agent: &Holder, leases: &[Fence]) {
    let state = draft.state;
    for lease in leases.iter().filter_map(|fence| state.find_lease(*fence)) {
        if state.holder_name(lease.holder) == agent && !draft.is_active(lease) {
            draft.expire_and_serve(state.resource_name(lease.resource));
        }
    }
}

fn renew_on_heartbeat(
    draft: &mut DecisionBuilder<'_>,
    agent: &Holder,
    fence: Fence,
    settled: &LeaseChanges,
) -> HeartbeatOutcome {
    let state = draft.state;
    let Some(lease) = state.find_lease(fence) else {
        let ended = state.ended_lease(fence).filter(|ended| ended.holder == *agent);
        return ended.map_or(HeartbeatOutcome::Unknown, |ended| HeartbeatOutcome::Ended(ended.end));
    };
    if state.holder_name(lease.holder) != agent {
        return HeartbeatOutcome::Unknown;
    }
    if !draft.is_active(lease) {
        return HeartbeatOutcome::Ended(
            settled.revoked.get(&fence).copied().map_or(LeaseEnd::Expired, LeaseEnd::Revoked),
        );
    }
    let expires_at = draft.now.saturating_add(lease.terms.ttl);
    let until = settled.renewed.get(&fence).copied().unwrap_or(lease.terms.expires_at);
    if !extends(until.0, expires_at.0) || !draft.can_last_until(lease, expires_at) {
        return HeartbeatOutcome::Active(until);
    }
    draft.push(Event::Renewed { lease: fence, at: draft.now, expires_at, ttl: lease.terms.ttl });
    HeartbeatOutcome::Active(expires_at)
}

/// What is within needs no record, unless it shows that a lease is used. What is beyond is told once in an attempt.
fn touch(
    draft: &mut DecisionBuilder<'_>,
    agent: &Holder,
    principal: &Principal,
    touched: &[(Resource, LeaseMode)],
) -> Result<AgentOutcome, Rejection> {
    if touched.is_empty() || touched.len() > MAX_TOUCHES_PER_COMMAND {
        let reason = format!("has to have from 1 to {MAX_TOUCHES_PER_COMMAND} entries");
        return Err(InvalidInput::new("resources", reason).into());
    }
    check_agent_holder(draft, agent, principal)?;
    if draft.state.agent(agent).is_none() {
        return Err(Rejection::NoSuchAgent);
    }
    draft.check_has_space()?;
    draft.expire_leases_of(agent);
    let living = draft.active_leases_of(agent);
    let (mut used, mut outside): (Vec<Fence>, Vec<(Resource, LeaseMode)>) = (Vec::new(), Vec::new());
    for (resource, mode) in touched {
        let reach = ResourcePattern::from_name(resource.as_str());
        let within = |name: &Resource| ResourcePattern::from_name(name.as_str()).covers(reach);
        let covering = living.iter().filter(|lease| {
            lease.terms.mode.covers(*mode) && within(draft.state.resource_name(lease.resource))
        });
        let before = used.len();
        used.extend(covering.map(|lease| lease.fence));
        if used.len() == before && !outside.iter().any(|(known, _)| known == resource) {
            outside.push((resource.clone(), *mode));
        }
    }
    record_touches(draft, agent, used);
    record_outside_touches(draft, agent, &outside);
    Ok(AgentOutcome::Touched { outside })
}

/// Not every touch is a record: an eighth of the time that a lease may lie idle is near enough.
fn record_touches(draft: &mut DecisionBuilder<'_>, agent: &Holder, mut used: Vec<Fence>) {
    let Some(idle) = draft.state.limits().max_agent_idle_time else { return };
    let near = TickDuration(idle.0 / 8);
    let now = draft.now;
    used.sort_unstable();
    used.dedup();
    used.retain(|fence| draft.state.touched_at(*fence).is_some_and(|at| now.since(at) >= near));
    if !used.is_empty() {
        let event = AgentEvent::Touched { agent: agent.clone(), at: now, leases: used };
        draft.push(Event::Agent(Box::new(event)));
    }
}

fn record_outside_touches(
    draft: &mut DecisionBuilder<'_>,
    agent: &Holder,
    outside: &[(Resource, LeaseMode)],
) {
    let known = draft.state.agent(agent).map(|agent| &agent.outside_resources[..]).unwrap_or_default();
    let remaining = MAX_OUTSIDE_TOUCHES.saturating_sub(known.len());
    let mut bytes: usize = known.iter().map(|resource| resource.as_str().len()).sum();
    let new = outside.iter().filter(|(resource, _)| !known.contains(resource)).take(remaining);
    let new = new.take_while(|(resource, _)| {
        bytes += resource.as_str().len();
        bytes <= MAX_OUTSIDE_TOUCH_BYTES
    });
    let new: Vec<_> = new.cloned().collect();
    if !new.is_empty() {
        let event = AgentEvent::Strayed { agent: agent.clone(), at: draft.now, outside: new };
        draft.push(Event::Agent(Box::new(event)));
    }
}
