//! Heartbeat: more time for leases that live, and the truth about the others.

use std::collections::BTreeMap;

use crate::kernel::agent::{AgentAnswer, Pulse};
use crate::kernel::answer::{End, Refusal};
use crate::kernel::draft::Draft;
use crate::kernel::event::{Cause, Event};
use crate::kernel::name::{Holder, Principal};
use crate::kernel::value::{Fence, Tick};
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
    let expires_at = draft.now.saturating_add(lease.ttl);
    let until = settled.renewed.get(&fence).copied().unwrap_or(lease.expires_at);
    if !extends(until.0, expires_at.0) || !draft.may_last_until(lease, expires_at) {
        return Pulse::Until(until);
    }
    draft.push(Event::Renewed { lease: fence, at: draft.now, expires_at, ttl: lease.ttl });
    Pulse::Until(expires_at)
}
