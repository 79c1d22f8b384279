//! Who among agents waits, who dies, and whose turn has come.

use std::collections::BTreeSet;

use crate::kernel::agent::{AgentEvent, AgentRank, AgentWait, AgentWaitEnd};
use crate::kernel::decision_builder::DecisionBuilder;
use crate::kernel::event::{Event, RevocationCause};
use crate::kernel::lease_request::{LeaseRequest, drop_covered_requests};
use crate::kernel::mode::LeaseMode;
use crate::kernel::name::{Holder, Resource};
use crate::kernel::newtypes::{Fence, Tick, TickDuration, Ticket};
use crate::kernel::state::LeaseEntry;
use crate::rules::overlap::uncovered_indices;

/// What is to become of somebody who wants something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WaitDieVerdict {
    Grant,
    /// Only younger ones are.
    Wait(Vec<Holder>),
    /// An older one is, or somebody without an age.
    Die(Vec<Holder>),
}

impl DecisionBuilder<'_> {
    /// What becomes of an agent that wants all of this.
    pub(crate) fn judge(&self, requests: &[LeaseRequest], rank: &AgentRank) -> WaitDieVerdict {
        let mut ahead: Vec<(Holder, bool)> = Vec::new();
        for request in drop_covered_requests(requests) {
            let (resource, mode) = (&request.resource, request.mode);
            let holders = self.conflicting_holders(resource, mode).filter(|holder| *holder != rank.agent);
            ahead.extend(holders.map(|holder| {
                // Who stands in line may wait for this one, whatever its age.
                let is_younger =
                    self.rank_of(&holder).is_some_and(|other| other > *rank) && !self.is_queued(&holder);
                (holder, is_younger)
            }));
            let around = self.waiting_agents_conflicting(resource, mode);
            let older = around.filter(|pending| pending.rank < *rank && pending.rank.agent != rank.agent);
            ahead.extend(older.map(|pending| (pending.rank.agent.clone(), false)));
        }
        ahead.extend(self.queue_blockers_of(&rank.agent, requests).into_iter().map(|holder| (holder, false)));
        let dies = ahead.iter().any(|(_, is_younger)| !is_younger);
        let mut names: Vec<Holder> = ahead.into_iter().map(|(holder, _)| holder).collect();
        names.sort_unstable();
        names.dedup();
        match (names.is_empty(), dies) {
            (true, _) => WaitDieVerdict::Grant,
            (false, false) => WaitDieVerdict::Wait(names),
            (false, true) => WaitDieVerdict::Die(names),
        }
    }

    /// Lets in whose turn has come: agents first, who have an age, then everybody else.
    pub(crate) fn serve_agents_and_waiters(&mut self) {
        self.reevaluate_agents();
        self.serve_waiters();
    }

    /// Whoever of those who wait would wait for an older one dies, and whoever has everything free gets it, the oldest first,
    /// until neither is left. Only those are looked at around whom something changed.
    pub(crate) fn reevaluate_agents(&mut self) {
        while !self.affected_for_agents.is_empty() {
            let affected = std::mem::take(&mut self.affected_for_agents);
            let affected: Vec<Resource> = affected.into_iter().collect();
            let widest = uncovered_indices(affected.iter().map(|resource| (resource.as_str(), 0)));
            let around =
                widest.into_iter().flat_map(|place| self.waiting_agents_overlapping(&affected[place]));
            let waiting: BTreeSet<(AgentRank, Ticket)> =
                around.map(|pending| (pending.rank.clone(), pending.ticket)).collect();
            waiting.into_iter().for_each(|(_, ticket)| self.reevaluate_one(ticket));
        }
    }

    /// The same, whatever changed.
    pub(crate) fn reevaluate_all_agents(&mut self) {
        let tickets: Vec<Ticket> = self.state.waiting_agents().map(|pending| pending.ticket).collect();
        tickets.into_iter().for_each(|ticket| self.reevaluate_one(ticket));
        self.reevaluate_agents();
    }

    fn reevaluate_one(&mut self, ticket: Ticket) {
        let new = self.new_agent_wait.as_ref().filter(|pending| pending.ticket == ticket);
        let pending = self.state.agent_wait(ticket).or(new).filter(|pending| self.is_agent_waiting(pending));
        let Some(AgentWait { rank, requests, .. }) = pending.cloned() else { return };
        match self.judge(&requests, &rank) {
            WaitDieVerdict::Wait(_) => {}
            WaitDieVerdict::Die(_) => {
                self.end_agent_wait(ticket, AgentWaitEnd::Died);
                self.abort_agent(&rank);
            }
            WaitDieVerdict::Grant if self.is_full() => self.has_more_waiters = true,
            WaitDieVerdict::Grant => {
                let known = self.state.agent(&rank.agent).map(|agent| agent.principal.clone());
                let principal = known.or_else(|| self.declaring_principal.clone());
                let may = self.check_may_grant().is_ok() && self.has_fences_and_time_for(&requests);
                if let Some(principal) = principal.filter(|_| may) {
                    let leases = self.grant_to_agent(&rank.agent, &principal, &requests, Some(ticket));
                    self.served_agent_tickets.push((ticket, leases));
                }
            }
        }
    }

    /// Announces that waits of agents are over, at most so many. Says whether there are more.
    pub(crate) fn time_out_waiting_agents(&mut self, max: usize) -> bool {
        let state = self.state;
        let mut overdue = state.overdue_waiting_agents(self.now);
        for pending in overdue.by_ref().take(max) {
            if !self.has_wait_ended(pending.ticket) {
                self.end_agent_wait(pending.ticket, AgentWaitEnd::TimedOut);
            }
        }
        overdue.next().is_some()
    }

    /// Lets an agent die: it may come back later, and what an older one waits for is over.
    pub(crate) fn abort_agent(&mut self, rank: &AgentRank) -> (Tick, Vec<Fence>) {
        let retry_at = self.now.saturating_add(self.backoff_for(&rank.agent));
        let before = self.aborted_agents.remove(&rank.agent);
        if before.is_none() {
            let (agent, at) = (rank.agent.clone(), self.now);
            self.push(Event::Agent(Box::new(AgentEvent::Died { agent, at, retry_at })));
        }
        let mut ended = before.map(|(_, ended)| ended).unwrap_or_default();
        for lease in self.active_leases_of(&rank.agent) {
            if self.blocks_older_wait(lease, rank) {
                let by = self.state.principal_of(lease.holder).1.clone();
                self.revoke(lease, RevocationCause::Died, &by, "an older agent waits for it");
                ended.push(lease.fence);
            }
        }
        self.aborted_agents.insert(rank.agent.clone(), (retry_at, ended.clone()));
        (retry_at, ended)
    }

    /// Whether there is anything to be ended if this one dies.
    pub(crate) fn blocks_older_agent(&self, rank: &AgentRank) -> bool {
        let leases = self.active_leases_of(&rank.agent);
        leases.into_iter().any(|lease| self.blocks_older_wait(lease, rank))
    }

    fn blocks_older_wait(&self, lease: &LeaseEntry, rank: &AgentRank) -> bool {
        let resource = self.state.resource_name(lease.resource);
        self.waiting_agents_conflicting(resource, lease.terms.mode).any(|pending| pending.rank < *rank)
    }

    /// The age of an agent, as this decision leaves it.
    pub(crate) fn rank_of(&self, agent: &Holder) -> Option<AgentRank> {
        let started = self.new_attempt.iter().find(|rank| rank.agent == *agent).cloned();
        started.or_else(|| self.state.rank_of(agent))
    }

    fn conflicting_holders(&self, resource: &Resource, mode: LeaseMode) -> impl Iterator<Item = Holder> {
        let leases = self.state.leases_overlapping(resource);
        let leases = leases.filter(|lease| !lease.terms.mode.is_compatible(mode) && self.is_active(lease));
        let leases = leases.map(|lease| self.state.holder_name(lease.holder).clone());
        let granted = self.grants_overlapping(resource).filter(|issued| !issued.mode.is_compatible(mode));
        let held: Vec<Holder> = leases.chain(granted.map(|issued| issued.holder.clone())).collect();
        held.into_iter()
    }

    pub(in crate::kernel) fn end_agent_wait(&mut self, ticket: Ticket, end: AgentWaitEnd) {
        self.push(Event::Agent(Box::new(AgentEvent::Left { ticket, at: self.now, end })));
        self.mark_agent_wait_ended(ticket);
    }

    /// Twice as long with every death, up to a bound, and a little longer by chance: by a chance that a replay finds again.
    fn backoff_for(&self, agent: &Holder) -> TickDuration {
        let (base, max) = self.state.limits().backoff;
        let aborts = self.state.agent(agent).map_or(0, |agent| agent.abort_count);
        let delay = base.0.saturating_mul(1 << aborts.min(32)).min(max.0);
        let mut hasher = blake3::Hasher::new();
        hasher
            .update(agent.as_str().as_bytes())
            .update(&aborts.to_be_bytes())
            .update(&self.now.0.to_be_bytes());
        let [a, b, c, d, ..] = *hasher.finalize().as_bytes();
        TickDuration(delay + u64::from(u32::from_be_bytes([a, b, c, d])) % (delay / 4 + 1))
    }
}
