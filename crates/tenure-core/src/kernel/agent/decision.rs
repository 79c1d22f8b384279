//! Queue tickets of plain requests, and waits of agents, within one decision.

use crate::kernel::agent::AgentWait;
use crate::kernel::decision_builder::{DecisionBuilder, QueuePosition};
use crate::kernel::lease_request::LeaseRequest;
use crate::kernel::mode::LeaseMode;
use crate::kernel::name::{Holder, Principal, Resource};
use crate::kernel::state::conflicts_with;
use crate::rules::overlap::{is_hierarchical, overlaps};
use crate::rules::time::is_expired;

impl DecisionBuilder<'_> {
    /// Whether somebody must not stand in line, because it waits as an agent, or an agent waits for what it has.
    pub(crate) fn is_barred_from_queue(&self, holder: &Holder) -> bool {
        let state = self.state;
        if !state.has_waiting_agents() {
            return false;
        }
        self.wait_entries_of(holder).next().is_some()
            || self.active_leases_of(holder).into_iter().any(|lease| {
                let mut waiting =
                    self.waiting_agents_conflicting(state.resource_name(lease.resource), lease.terms.mode);
                waiting.any(|pending| pending.rank.agent != *holder)
            })
    }

    pub(crate) fn is_queued(&self, holder: &Holder) -> bool {
        let slot = self.state.find_holder(holder);
        slot.into_iter()
            .flat_map(|slot| self.state.queue_entries_of(slot))
            .any(|waiting| self.is_waiting(waiting))
    }

    /// Who is in the way of an agent that stands in line itself: everybody, also those who stand there. It may wait for one of
    /// them, so it must not come in front of them by asking as an agent.
    pub(crate) fn queue_blockers_of(&self, agent: &Holder, requests: &[LeaseRequest]) -> Vec<Holder> {
        if !self.is_queued(agent) {
            return Vec::new();
        }
        let ahead = requests
            .iter()
            .flat_map(|request| self.blockers(&request.resource, request.mode, QueuePosition::default()));
        ahead.map(|blocker| blocker.holder.clone()).filter(|holder| holder != agent).collect()
    }
}

impl DecisionBuilder<'_> {
    /// Agents that wait for something that has something in common with `resource`, the oldest first.
    pub(crate) fn waiting_agents_overlapping<'b>(
        &'b self,
        resource: &'b Resource,
    ) -> impl Iterator<Item = &'b AgentWait> {
        let of_state =
            self.may_have_waiting_agents(resource).then(|| self.state.waiting_agents_overlapping(resource));
        let new = self.new_agent_wait.iter().filter(|pending| {
            pending.requests.iter().any(|request| overlaps(request.resource.as_str(), resource.as_str()))
        });
        of_state.into_iter().flatten().chain(new).filter(|pending| self.is_agent_waiting(pending))
    }

    /// Those of them that want it in a way that does not go with `mode`.
    pub(crate) fn waiting_agents_conflicting<'b>(
        &'b self,
        resource: &'b Resource,
        mode: LeaseMode,
    ) -> impl Iterator<Item = &'b AgentWait> {
        let of_state = self
            .may_have_waiting_agents(resource)
            .then(|| self.state.waiting_agents_conflicting(resource, mode));
        let new = self
            .new_agent_wait
            .iter()
            .filter(move |pending| conflicts_with(&pending.requests, resource, mode));
        of_state.into_iter().flatten().chain(new).filter(|pending| self.is_agent_waiting(pending))
    }

    fn may_have_waiting_agents(&self, resource: &Resource) -> bool {
        self.state.has_waiting_agents() && is_hierarchical(resource.as_str())
    }

    /// The waits of an agent, here and now.
    pub(crate) fn wait_entries_of<'b>(&'b self, agent: &'b Holder) -> impl Iterator<Item = &'b AgentWait> {
        let new = self.new_agent_wait.iter().filter(|pending| pending.rank.agent == *agent);
        self.state.wait_entries_of(agent).chain(new).filter(|pending| self.is_agent_waiting(pending))
    }

    /// Whether an agent's attempt goes on, as this decision leaves it.
    pub(crate) fn has_active_attempt(&self, agent: &Holder) -> bool {
        let is_waiting = || self.wait_entries_of(agent).next().is_some();
        let died_before = || self.state.agent(agent).is_some_and(|agent| agent.retry_at.is_some());
        let died = || self.aborted_agents.contains_key(agent) || died_before();
        let gets = || self.grants().any(|issued| issued.holder == *agent);
        !self.active_leases_of(agent).is_empty() || gets() || is_waiting() || died()
    }

    /// For how much the agents of a principal wait.
    pub(in crate::kernel) fn agent_requested_lease_count(&self, principal: &Principal) -> usize {
        let is_own =
            |agent: &Holder| self.state.agent(agent).is_some_and(|agent| agent.principal == *principal);
        let own = self
            .state
            .waiting_agents()
            .filter(|pending| self.is_agent_waiting(pending) && is_own(&pending.rank.agent));
        own.map(|pending| pending.requests.len()).sum()
    }

    pub(in crate::kernel) fn is_agent_waiting(&self, pending: &AgentWait) -> bool {
        !is_expired(self.now.0, pending.until.0) && !self.has_wait_ended(pending.ticket)
    }
}
