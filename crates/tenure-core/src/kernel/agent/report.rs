//! Report: what an agent is doing.

use super::decide::check_agent_holder;
use super::decision::{end_wait_entries_of, time_out_wait_entries};
use super::wait_die::reevaluate;
use crate::kernel::agent::{AgentEvent, AgentOutcome, AgentPhase, AgentReport, AgentWaitEnd};
use crate::kernel::decision_builder::DecisionBuilder;
use crate::kernel::event::Event;
use crate::kernel::limits::{AGENT_MEMORY_VALIDITY, RESTART_GRACE};
use crate::kernel::outcome::Rejection;
use crate::kernel::state::AgentRecord;
use crate::lease::ReleaseReason;
use crate::rules::names::check_name;
use crate::rules::time::is_expired;

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
