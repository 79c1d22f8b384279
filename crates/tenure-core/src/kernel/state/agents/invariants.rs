//! What must hold of agents after every event.

use super::conflicts_with;
use crate::kernel::agent::AgentWait;
use crate::kernel::state::{KernelState, ensure};
use crate::rules::time::is_expired;

impl KernelState {
    /// Whoever waits is older than everybody that it waits for, and so nobody waits in a circle.
    pub(in crate::kernel::state) fn invariant_agents_wait_only_for_younger(&self) -> Result<(), String> {
        // What is over is in nobody's way, announced or not.
        let is_waiting = |pending: &&AgentWait| !is_expired(self.now.0, pending.until.0);
        let pending: Vec<&AgentWait> = self.agents.wait_index.iter().filter(is_waiting).collect();
        for (index, waiting) in pending.iter().enumerate() {
            let rank = &waiting.rank;
            let known = self.agents.get(&rank.agent).and_then(|agent| agent.priority) == Some(rank.priority);
            ensure(known, || format!("{} waits with another age than it has", rank.agent))?;
            for request in &waiting.requests {
                for lease in self.leases_overlapping(&request.resource) {
                    let holder = self.holder_name(lease.holder);
                    let is_past = is_expired(self.now.0, lease.terms.expires_at.0);
                    if is_past || lease.terms.mode.is_compatible(request.mode) || *holder == rank.agent {
                        continue;
                    }
                    let is_younger = self.rank_of(holder).is_some_and(|other| other > *rank);
                    ensure(is_younger, || format!("{} waits for the older {holder}", rank.agent))?;
                }
                for older in pending[..index].iter().filter(|older| older.rank.agent != rank.agent) {
                    let conflicts = conflicts_with(&older.requests, &request.resource, request.mode);
                    ensure(!conflicts, || format!("{} waits behind {}", rank.agent, older.rank.agent))?;
                }
            }
        }
        ensure(self.agents.wait_index.is_consistent(), || "waits of agents are miscounted".into())
    }

    /// Whoever is known to hold something does, and what agents change is noted as long as they have it, and no longer.
    pub(in crate::kernel::state) fn invariant_agent_holdings_are_indexed(&self) -> Result<(), String> {
        for (id, agent) in self.agents() {
            let holds = self.find_holder(id).is_some_and(|slot| self.leases_of(slot).next().is_some());
            ensure(holds == agent.holding_since.is_some(), || format!("{id} is miscounted as a holder"))?;
        }
        let clocks = self.agents().filter(|(_, agent)| agent.holding_since.is_some()).count();
        ensure(self.agents.by_hold_start.len() == clocks, || "clocks of agents are miscounted".into())?;
        for (fence, _) in self.touches() {
            let lease = self.find_lease(fence).ok_or_else(|| format!("{fence:?} is over, and noted"))?;
            ensure(lease.terms.mode.is_mutating(), || format!("{fence:?} changes nothing, and is noted"))?;
        }
        let both = self.agents.touched.len() == self.agents.by_touch.len();
        ensure(both, || "touches of agents are miscounted".into())
    }
}
