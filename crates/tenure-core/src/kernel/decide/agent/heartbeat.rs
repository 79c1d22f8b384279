//! Heartbeat: more time for leases that live, and the truth about the others.

use crate::kernel::agent::{AgentAnswer, Pulse};
use crate::kernel::answer::{End, Refusal};
use crate::kernel::draft::Draft;
use crate::kernel::event::Event;
use crate::kernel::name::{Holder, Principal};
use crate::kernel::value::Fence;
use crate::rules::time::extends;

/// Each lease by itself: one that is over takes nothing from the others. What would not extend succeeds all the same.
pub(super) fn heartbeat(
    draft: &mut Draft<'_>,
    agent: &Holder,
    principal: &Principal,
    leases: &[Fence],
) -> Result<AgentAnswer, Refusal> {
    super::check_own(draft, agent, principal)?;
    draft.check_may_renew()?;
    // First what is over: that may let in a wait of this very agent, and make one of its other leases a stronger one.
    announce_ends(draft, agent, leases);
    let mut beaten = Vec::with_capacity(leases.len());
    for fence in leases {
        // Twice in one request is once.
        let before = beaten.iter().find(|(known, _)| known == fence).map(|(_, pulse)| *pulse);
        let pulse = before.unwrap_or_else(|| beat(draft, agent, *fence));
        beaten.push((*fence, pulse));
    }
    Ok(AgentAnswer::Beaten(beaten))
}

fn announce_ends(draft: &mut Draft<'_>, agent: &Holder, leases: &[Fence]) {
    let state = draft.state;
    for lease in leases.iter().filter_map(|fence| state.find_lease(*fence)) {
        if state.holder_name(lease.holder) == agent && !draft.lives(lease) {
            draft.settle(state.resource_name(lease.resource));
        }
    }
}

fn beat(draft: &mut Draft<'_>, agent: &Holder, fence: Fence) -> Pulse {
    let state = draft.state;
    let Some(lease) = state.find_lease(fence) else {
        let ended = state.ended(fence).filter(|ended| ended.holder == *agent);
        return ended.map_or(Pulse::Unknown, |ended| Pulse::Over(ended.end));
    };
    if state.holder_name(lease.holder) != agent {
        return Pulse::Unknown;
    }
    if !draft.lives(lease) {
        let cause = draft.events().iter().find_map(|event| match event {
            Event::Revoked { lease, cause, .. } if *lease == fence => Some(*cause),
            _ => None,
        });
        return Pulse::Over(cause.map_or(End::Expired, End::Revoked));
    }
    let expires_at = draft.now.saturating_add(lease.ttl);
    let until = draft.held_until(fence).map_or(lease.expires_at, |(until, _)| until);
    if !extends(until.0, expires_at.0) || !draft.may_last_until(lease, expires_at) {
        return Pulse::Until(until);
    }
    draft.push(Event::Renewed { lease: fence, at: draft.now, expires_at, ttl: lease.ttl });
    Pulse::Until(expires_at)
}
