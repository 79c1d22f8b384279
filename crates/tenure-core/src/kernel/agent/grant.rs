//! What an agent gets, and what it is told once everybody has got what is theirs.

use crate::kernel::agent::{AgentOutcome, AgentWaitEnd};
use crate::kernel::decision_builder::{DecisionBuilder, Grant};
use crate::kernel::event::{Event, RevocationCause};
use crate::kernel::lease_request::LeaseRequest;
use crate::kernel::name::{Holder, Principal};
use crate::kernel::newtypes::{Fence, Ticket};
use crate::rules::time::extends;

impl DecisionBuilder<'_> {
    /// Gives an agent all that it wants: what it has is renewed or made stronger, the rest is issued.
    pub(crate) fn grant_to_agent(
        &mut self,
        agent: &Holder,
        principal: &Principal,
        requests: &[LeaseRequest],
        ticket: Option<Ticket>,
    ) -> Vec<Fence> {
        let before = self.grants().count();
        let leases = requests
            .iter()
            .map(|request| self.grant_one_to_agent(agent, principal, request, ticket))
            .collect();
        if let Some(ticket) = ticket {
            // A wait ends with the first lease that is issued for it. Where none is, it has to be said.
            if self.grants().count() == before {
                self.end_agent_wait(ticket, AgentWaitEnd::Served);
            }
            self.mark_agent_wait_ended(ticket);
        }
        leases
    }

    fn grant_one_to_agent(
        &mut self,
        agent: &Holder,
        principal: &Principal,
        request: &LeaseRequest,
        ticket: Option<Ticket>,
    ) -> Fence {
        let state = self.state;
        // Mostly one. There are several if others gave it some, or if it has plain ones too.
        let on = state.find_resource(&request.resource).into_iter().flat_map(|slot| state.leases_on(slot));
        let mut own: Vec<_> =
            on.filter(|lease| self.is_active(lease) && state.holder_name(lease.holder) == agent).collect();
        // Where they lie in memory must not show in the ledger.
        own.sort_unstable_by_key(|lease| lease.fence);
        if let Some(lease) = own.iter().find(|lease| lease.terms.mode.covers(request.mode)) {
            let expires_at = self.now.saturating_add(request.ttl);
            // Another manifest of its own may have renewed it in this very decision.
            let until =
                self.expiry_and_resource_of(lease.fence).map_or(lease.terms.expires_at, |(until, _)| until);
            if extends(until.0, expires_at.0) {
                self.push(Event::Renewed { lease: lease.fence, at: self.now, expires_at, ttl: request.ttl });
            }
            return lease.fence;
        }
        let mut continues = own.first().map(|lease| lease.fence);
        for lease in own {
            self.revoke(
                lease,
                RevocationCause::Transferred,
                principal,
                "its agent wants it in a stronger way",
            );
        }
        // It may have got it in this very decision, for another manifest of its own.
        let got = self.grants_on(&request.resource).filter(|issued| issued.holder == *agent).last();
        if let Some((fence, mode)) = got.map(|issued| (issued.fence, issued.mode)) {
            if mode.covers(request.mode) {
                return fence;
            }
            let (by, detail) = (principal.clone(), "its agent wants it in a stronger way".into());
            self.push(Event::Revoked {
                lease: fence,
                at: self.now,
                cause: RevocationCause::Transferred,
                by,
                detail,
            });
            continues = Some(fence);
        }
        let (holder, resource, key) = (agent, &request.resource, None);
        let grant = Grant { holder, principal, request, resource, key, ticket, continues, authority: None };
        self.issue_lease(grant).expect("time and fences were looked at before")
    }

    /// Whether there are numbers and time for all of this.
    pub(crate) fn has_fences_and_time_for(&self, requests: &[LeaseRequest]) -> bool {
        let has_time = |request: &LeaseRequest| self.now.checked_add(request.ttl).is_some();
        self.remaining_fences() >= requests.len() as u64 && requests.iter().all(has_time)
    }

    /// What an agent is told that was told to wait, once everything is settled.
    pub(crate) fn final_agent_outcome(&self, agent: &Holder, answer: AgentOutcome) -> AgentOutcome {
        let (ticket, blocked_by) = match &answer {
            AgentOutcome::Wait { ticket, blocked_by, .. } => (ticket, blocked_by),
            AgentOutcome::Granted { leases } => return self.final_grant(leases),
            _ => return answer,
        };
        if let Some((_, leases)) = self.served_agent_tickets.iter().find(|(served, _)| served == ticket) {
            return self.final_grant(leases);
        }
        match self.aborted_agents.get(agent) {
            Some((retry_at, ended)) if self.has_wait_ended(*ticket) => AgentOutcome::Die {
                retry_at: *retry_at,
                blocked_by: blocked_by.clone(),
                ended: ended.clone(),
            },
            _ => answer,
        }
    }

    /// Another wait of the same agent may have made a lease stronger since: that is another lease.
    fn final_grant(&self, leases: &[Fence]) -> AgentOutcome {
        let next = |fence: &Fence| {
            let successor = self.grants().find(|issued| issued.continues == Some(*fence));
            successor.map(|issued| issued.fence)
        };
        let last = |fence: &Fence| std::iter::successors(Some(*fence), next).last().unwrap_or(*fence);
        AgentOutcome::Granted { leases: leases.iter().map(last).collect() }
    }
}
