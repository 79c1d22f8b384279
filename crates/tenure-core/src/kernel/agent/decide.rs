//! Decides the commands of agents.

use std::collections::{BTreeMap, BTreeSet};

use super::decision::{end_wait_entries_of, time_out_wait_entries};
use super::declare;
use super::wait_die::reevaluate;
use crate::kernel::agent::{
    AgentCommand, AgentEvent, AgentOutcome, AgentPhase, AgentRecord, AgentReport, AgentWaitEnd,
    HeartbeatOutcome,
};
use crate::kernel::api_decisions::check_may_hold;
use crate::kernel::event::{Event, RevocationCause};
use crate::kernel::lease::decision_builder::DecisionBuilder;
use crate::kernel::outcome::{CommandOutcome, LeaseEnd, Rejection};
use crate::lease::ReleaseReason;
use crate::rules::overlap::ResourcePattern;
use crate::rules::{InvalidInput, check_name, extends, is_expired};
use crate::value::{
    AGENT_MEMORY_VALIDITY, Fence, Holder, LeaseMode, MAX_OUTSIDE_TOUCH_BYTES, MAX_OUTSIDE_TOUCHES,
    MAX_TOUCHES_PER_COMMAND, Principal, RESTART_GRACE, Resource, Tick, TickDuration,
};

pub(in crate::kernel) fn decide(
    decision: &mut DecisionBuilder<'_>,
    command: &AgentCommand,
) -> Result<CommandOutcome, Rejection> {
    let answer = match command {
        AgentCommand::Declare(declare) => declare::declare(decision, declare),
        AgentCommand::Heartbeat { agent, principal, leases } => heartbeat(decision, agent, principal, leases),
        AgentCommand::Release { agent, principal, leases } => release(decision, agent, principal, leases),
        AgentCommand::Report(request) => report(decision, request),
        AgentCommand::Touch { agent, principal, touched } => touch(decision, agent, principal, touched),
    };
    answer.map(|answer| CommandOutcome::Agent(Box::new(answer)))
}

pub(super) fn check_agent_holder(
    decision: &DecisionBuilder<'_>,
    agent: &Holder,
    principal: &Principal,
) -> Result<(), Rejection> {
    if !decision.state.can_use_holder(agent, principal, decision.now) {
        return Err(Rejection::HolderTaken { holder: agent.clone() });
    }
    check_may_hold(decision, agent, principal)
}

/// What is over already counts as released, and appends nothing.
fn release(
    decision: &mut DecisionBuilder<'_>,
    agent: &Holder,
    principal: &Principal,
    leases: &[Fence],
) -> Result<AgentOutcome, Rejection> {
    check_agent_holder(decision, agent, principal)?;
    let state = decision.state;
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
        if let Some(lease) = state.find_lease(*fence).filter(|lease| decision.is_active(lease)) {
            decision.release(lease, ReleaseReason::Completed);
        }
    }
    Ok(AgentOutcome::Released(released))
}

/// Each lease by itself: one that is over takes nothing from the others. What would not extend succeeds all the same.
fn heartbeat(
    decision: &mut DecisionBuilder<'_>,
    agent: &Holder,
    principal: &Principal,
    leases: &[Fence],
) -> Result<AgentOutcome, Rejection> {
    check_agent_holder(decision, agent, principal)?;
    decision.check_may_renew()?;
    // First what is over: that may let in a wait of this very agent, and make one of its other leases a stronger one.
    expire_due_leases(decision, agent, leases);
    let settled = LeaseChanges::of(decision.events());
    // Twice in one request is once.
    let mut renewals = BTreeMap::new();
    let mut renew = |fence| {
        *renewals.entry(fence).or_insert_with(|| renew_on_heartbeat(decision, agent, fence, &settled))
    };
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

fn expire_due_leases(decision: &mut DecisionBuilder<'_>, agent: &Holder, leases: &[Fence]) {
    let state = decision.state;
    for lease in leases.iter().filter_map(|fence| state.find_lease(*fence)) {
        if state.holder_name(lease.holder) == agent && !decision.is_active(lease) {
            decision.expire_and_serve(state.resource_name(lease.resource));
        }
    }
}

fn renew_on_heartbeat(
    decision: &mut DecisionBuilder<'_>,
    agent: &Holder,
    fence: Fence,
    settled: &LeaseChanges,
) -> HeartbeatOutcome {
    let state = decision.state;
    let Some(lease) = state.find_lease(fence) else {
        let ended = state.ended_lease(fence).filter(|ended| ended.holder == *agent);
        return ended.map_or(HeartbeatOutcome::Unknown, |ended| HeartbeatOutcome::Ended(ended.end));
    };
    if state.holder_name(lease.holder) != agent {
        return HeartbeatOutcome::Unknown;
    }
    if !decision.is_active(lease) {
        return HeartbeatOutcome::Ended(
            settled.revoked.get(&fence).copied().map_or(LeaseEnd::Expired, LeaseEnd::Revoked),
        );
    }
    let expires_at = decision.now.saturating_add(lease.terms.ttl);
    let until = settled.renewed.get(&fence).copied().unwrap_or(lease.terms.expires_at);
    if !extends(until.0, expires_at.0) || !decision.can_last_until(lease, expires_at) {
        return HeartbeatOutcome::Active(until);
    }
    decision.push(Event::Renewed { lease: fence, at: decision.now, expires_at, ttl: lease.terms.ttl });
    HeartbeatOutcome::Active(expires_at)
}

/// What is within needs no record, unless it shows that a lease is used. What is beyond is told once in an attempt.
fn touch(
    decision: &mut DecisionBuilder<'_>,
    agent: &Holder,
    principal: &Principal,
    touched: &[(Resource, LeaseMode)],
) -> Result<AgentOutcome, Rejection> {
    if touched.is_empty() || touched.len() > MAX_TOUCHES_PER_COMMAND {
        let reason = format!("has to have from 1 to {MAX_TOUCHES_PER_COMMAND} entries");
        return Err(InvalidInput::new("resources", reason).into());
    }
    check_agent_holder(decision, agent, principal)?;
    if decision.state.agent(agent).is_none() {
        return Err(Rejection::NoSuchAgent);
    }
    decision.check_has_space()?;
    decision.expire_leases_of(agent);
    let living = decision.active_leases_of(agent);
    let (mut used, mut outside): (Vec<Fence>, Vec<(Resource, LeaseMode)>) = (Vec::new(), Vec::new());
    for (resource, mode) in touched {
        let reach = ResourcePattern::from_name(resource.as_str());
        let within = |name: &Resource| ResourcePattern::from_name(name.as_str()).covers(reach);
        let covering = living.iter().filter(|lease| {
            lease.terms.mode.covers(*mode) && within(decision.state.resource_name(lease.resource))
        });
        let before = used.len();
        used.extend(covering.map(|lease| lease.fence));
        if used.len() == before && !outside.iter().any(|(known, _)| known == resource) {
            outside.push((resource.clone(), *mode));
        }
    }
    record_touches(decision, agent, used);
    record_outside_touches(decision, agent, &outside);
    Ok(AgentOutcome::Touched { outside })
}

/// Not every touch is a record: an eighth of the time that a lease may lie idle is near enough.
fn record_touches(decision: &mut DecisionBuilder<'_>, agent: &Holder, mut used: Vec<Fence>) {
    let Some(idle) = decision.state.limits().max_agent_idle_time else { return };
    let near = TickDuration(idle.0 / 8);
    let now = decision.now;
    used.sort_unstable();
    used.dedup();
    used.retain(|fence| decision.state.touched_at(*fence).is_some_and(|at| now.since(at) >= near));
    if !used.is_empty() {
        let event = AgentEvent::Touched { agent: agent.clone(), at: now, leases: used };
        decision.push(Event::Agent(Box::new(event)));
    }
}

fn record_outside_touches(
    decision: &mut DecisionBuilder<'_>,
    agent: &Holder,
    outside: &[(Resource, LeaseMode)],
) {
    let known = decision.state.agent(agent).map(|agent| &agent.outside_resources[..]).unwrap_or_default();
    let remaining = MAX_OUTSIDE_TOUCHES.saturating_sub(known.len());
    let mut bytes: usize = known.iter().map(|resource| resource.as_str().len()).sum();
    let new = outside.iter().filter(|(resource, _)| !known.contains(resource)).take(remaining);
    let new = new.take_while(|(resource, _)| {
        bytes += resource.as_str().len();
        bytes <= MAX_OUTSIDE_TOUCH_BYTES
    });
    let new: Vec<_> = new.cloned().collect();
    if !new.is_empty() {
        let event = AgentEvent::Strayed { agent: agent.clone(), at: decision.now, outside: new };
        decision.push(Event::Agent(Box::new(event)));
    }
}

/// Who says in time that its process restarts has each of its leases a moment longer, once, whatever the longest lease is.
/// Who says that it is done, or gives up, waits for nothing and has nothing any more.
pub(super) fn report(
    decision: &mut DecisionBuilder<'_>,
    report: &AgentReport,
) -> Result<AgentOutcome, Rejection> {
    let AgentReport { agent, principal, session, phase, .. } = report;
    check_name("session_id", session)?;
    check_agent_holder(decision, agent, principal)?;
    let epoch = check_agent_memory(decision, report)?;
    // What is over and not announced counts: whoever says that it is done sees it announced.
    let is_active = decision.state.has_active_attempt(agent);
    if is_known(decision, report, epoch) && !(phase.is_terminal() && is_active) {
        return Ok(AgentOutcome::Acknowledged);
    }
    // Who lets go of something makes room.
    if !(phase.is_terminal() && is_active) {
        decision.check_has_space()?;
    }
    match phase {
        AgentPhase::DieRestart => extend_for_restart(decision, report)?,
        AgentPhase::Completed => release_everything(decision, report, ReleaseReason::Completed),
        AgentPhase::Aborted => release_everything(decision, report, ReleaseReason::Aborted),
        _ => {}
    }
    decision.push(Event::Agent(Box::new(AgentEvent::Reported {
        agent: agent.clone(),
        principal: principal.clone(),
        session: session.clone(),
        at: decision.now,
        phase: *phase,
        epoch,
    })));
    reevaluate(decision);
    Ok(AgentOutcome::Acknowledged)
}

/// Whether nothing is new about it. A caller that says the same again and again must not fill the disk.
fn is_known(decision: &DecisionBuilder<'_>, report: &AgentReport, epoch: u64) -> bool {
    decision.state.agent(&report.agent).is_some_and(|known| {
        let same = (known.phase, known.epoch) == (Some(report.phase), epoch);
        let says_more = report.phase == AgentPhase::DieRestart && is_new_restart(decision, report, known);
        same && known.session == report.session && known.principal == report.principal && !says_more
    })
}

/// Whether saying once more that it restarts gives a lease its moment, or counts as another restart.
fn is_new_restart(decision: &DecisionBuilder<'_>, report: &AgentReport, known: &AgentRecord) -> bool {
    let leases = decision.active_leases_of(&report.agent);
    let before = known.restarting_at.map(|at| at.saturating_add(RESTART_GRACE));
    leases.iter().any(|lease| !known.extended_leases.contains(&lease.fence))
        || before.is_none_or(|until| is_expired(decision.now.0, until.0))
}

/// What an agent remembers counts for a while after it said that it restarts, and only from its latest life. What it holds is
/// not what it remembers: it has to ask.
fn check_agent_memory(decision: &DecisionBuilder<'_>, report: &AgentReport) -> Result<u64, Rejection> {
    let known = decision.state.agent(&report.agent);
    let epoch = known.map_or(0, |known| known.epoch);
    let Some(remembered) = report.memory else { return Ok(epoch) };
    if remembered.epoch < epoch {
        return Err(Rejection::MemoryStale { epoch });
    }
    if let Some(known) = known {
        let since = known.restarting_at.map(|at| at.saturating_add(AGENT_MEMORY_VALIDITY));
        if since.is_some_and(|until| is_expired(decision.now.0, until.0)) {
            return Err(Rejection::MemoryStale { epoch });
        }
        if let Some(has) = known.priority.filter(|has| *has != remembered.priority) {
            return Err(Rejection::PriorityFixed { current: has });
        }
    }
    Ok(remembered.epoch)
}

fn extend_for_restart(decision: &mut DecisionBuilder<'_>, report: &AgentReport) -> Result<(), Rejection> {
    decision.check_may_renew()?;
    let graced =
        decision.state.agent(&report.agent).map(|agent| agent.extended_leases.clone()).unwrap_or_default();
    for lease in decision.active_leases_of(&report.agent) {
        if !graced.contains(&lease.fence) {
            let expires_at = lease.terms.expires_at.checked_add(RESTART_GRACE).ok_or(Rejection::Exhausted)?;
            if decision.can_last_until(lease, expires_at) {
                let (lease, ttl) = (lease.fence, lease.terms.ttl);
                decision.push(Event::Renewed { lease, at: decision.now, expires_at, ttl });
            }
        }
    }
    Ok(())
}

fn release_everything(decision: &mut DecisionBuilder<'_>, report: &AgentReport, reason: ReleaseReason) {
    time_out_wait_entries(decision, usize::MAX);
    end_wait_entries_of(decision, &report.agent, AgentWaitEnd::Withdrawn);
    decision.expire_leases_of(&report.agent);
    for lease in decision.active_leases_of(&report.agent) {
        decision.release(lease, reason);
    }
}
