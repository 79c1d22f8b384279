//! Report: what an agent is doing.

use std::sync::Arc;

use crate::kernel::agent::{AgentAnswer, AgentEvent, Phase};
use crate::kernel::answer::Refusal;
use crate::kernel::draft::Draft;
use crate::kernel::event::Event;
use crate::kernel::limits::RESTART_GRACE;
use crate::kernel::name::{Holder, Principal};
use crate::rules::names::check_name;

/// Who says in time that its process restarts has each of its leases a moment longer, once, whatever the longest lease is.
pub(super) fn report(
    draft: &mut Draft<'_>,
    agent: &Holder,
    principal: &Principal,
    session: &Arc<str>,
    phase: Phase,
) -> Result<AgentAnswer, Refusal> {
    check_name("session_id", session)?;
    super::check_own(draft, agent, principal)?;
    draft.check_has_room()?;
    if phase == Phase::DieRestart {
        draft.check_may_renew()?;
        let graced = draft.state.agent(agent).map(|agent| agent.graced.clone()).unwrap_or_default();
        for lease in draft.living_leases_of(agent) {
            if !graced.contains(&lease.fence) {
                let expires_at = lease.expires_at.checked_add(RESTART_GRACE).ok_or(Refusal::Exhausted)?;
                if draft.may_last_until(lease, expires_at) {
                    let (lease, ttl) = (lease.fence, lease.ttl);
                    draft.push(Event::Renewed { lease, at: draft.now, expires_at, ttl });
                }
            }
        }
    }
    draft.push(Event::Agent(Box::new(AgentEvent::Reported {
        agent: agent.clone(),
        principal: principal.clone(),
        session: session.clone(),
        at: draft.now,
        phase,
    })));
    Ok(AgentAnswer::Noted)
}
