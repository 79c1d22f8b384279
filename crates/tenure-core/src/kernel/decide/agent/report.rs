//! Report: what an agent is doing.

use crate::kernel::agent::{AgentAnswer, AgentEvent, Phase, Report};
use crate::kernel::answer::Refusal;
use crate::kernel::draft::Draft;
use crate::kernel::event::Event;
use crate::kernel::limits::{MEMORY_KEPT, RESTART_GRACE};
use crate::kernel::state::Agent;
use crate::lease::ReleaseReason;
use crate::rules::names::check_name;
use crate::rules::time::is_over;

/// Who says in time that its process restarts has each of its leases a moment longer, once, whatever the longest lease is.
/// Who says that it is done, or gives up, waits for nothing and has nothing any more.
pub(super) fn report(draft: &mut Draft<'_>, report: &Report) -> Result<AgentAnswer, Refusal> {
    let Report { agent, principal, session, phase, .. } = report;
    check_name("session_id", session)?;
    super::check_own(draft, agent, principal)?;
    let epoch = check_memory(draft, report)?;
    // What is over and not announced counts: whoever says that it is done sees it announced.
    let goes_on = draft.state.is_engaged(agent);
    if is_known(draft, report, epoch) && !(phase.is_last() && goes_on) {
        return Ok(AgentAnswer::Noted);
    }
    // Who lets go of something makes room.
    if !(phase.is_last() && goes_on) {
        draft.check_has_room()?;
    }
    match phase {
        Phase::DieRestart => grace(draft, report)?,
        Phase::Completed => let_go(draft, report, ReleaseReason::Completed),
        Phase::Aborted => let_go(draft, report, ReleaseReason::Aborted),
        _ => {}
    }
    draft.push(Event::Agent(Box::new(AgentEvent::Reported {
        agent: agent.clone(),
        principal: principal.clone(),
        session: session.clone(),
        at: draft.now,
        phase: *phase,
        epoch,
    })));
    draft.settle_agents();
    Ok(AgentAnswer::Noted)
}

/// Whether nothing is new about it. A caller that says the same again and again must not fill the disk.
fn is_known(draft: &Draft<'_>, report: &Report, epoch: u64) -> bool {
    draft.state.agent(&report.agent).is_some_and(|known| {
        let same = (known.phase, known.epoch) == (Some(report.phase), epoch);
        let says_more = report.phase == Phase::DieRestart && restarts_anew(draft, report, known);
        same && known.session == report.session && known.principal == report.principal && !says_more
    })
}

/// Whether saying once more that it restarts gives a lease its moment, or counts as another restart.
fn restarts_anew(draft: &Draft<'_>, report: &Report, known: &Agent) -> bool {
    let leases = draft.living_leases_of(&report.agent);
    let before = known.restarting_at.map(|at| at.saturating_add(RESTART_GRACE));
    leases.iter().any(|lease| !known.graced.contains(&lease.fence))
        || before.is_none_or(|until| is_over(draft.now.0, until.0))
}

/// What an agent remembers counts for a while after it said that it restarts, and only from its latest life. What it holds is
/// not what it remembers: it has to ask.
fn check_memory(draft: &Draft<'_>, report: &Report) -> Result<u64, Refusal> {
    let known = draft.state.agent(&report.agent);
    let epoch = known.map_or(0, |known| known.epoch);
    let Some(remembered) = report.remembers else { return Ok(epoch) };
    if remembered.epoch < epoch {
        return Err(Refusal::MemoryStale { epoch });
    }
    if let Some(known) = known {
        let since = known.restarting_at.map(|at| at.saturating_add(MEMORY_KEPT));
        if since.is_some_and(|until| is_over(draft.now.0, until.0)) {
            return Err(Refusal::MemoryStale { epoch });
        }
        if let Some(has) = known.priority.filter(|has| *has != remembered.priority) {
            return Err(Refusal::PriorityFixed { has });
        }
    }
    Ok(remembered.epoch)
}

fn grace(draft: &mut Draft<'_>, report: &Report) -> Result<(), Refusal> {
    draft.check_may_renew()?;
    let graced = draft.state.agent(&report.agent).map(|agent| agent.graced.clone()).unwrap_or_default();
    for lease in draft.living_leases_of(&report.agent) {
        if !graced.contains(&lease.fence) {
            let expires_at = lease.terms.expires_at.checked_add(RESTART_GRACE).ok_or(Refusal::Exhausted)?;
            if draft.may_last_until(lease, expires_at) {
                let (lease, ttl) = (lease.fence, lease.terms.ttl);
                draft.push(Event::Renewed { lease, at: draft.now, expires_at, ttl });
            }
        }
    }
    Ok(())
}

fn let_go(draft: &mut Draft<'_>, report: &Report, reason: ReleaseReason) {
    draft.time_out_agents(usize::MAX);
    draft.withdraw_all_of(&report.agent);
    draft.expire_all_of(&report.agent);
    for lease in draft.living_leases_of(&report.agent) {
        draft.release(lease, reason);
    }
}
