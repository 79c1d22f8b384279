//! What an agent gets, and what it is told once everybody has got what is theirs.

use super::agent::{AgentAnswer, PendingEnd};
use super::draft::{Draft, Grant};
use super::event::{Cause, Event};
use super::name::{Holder, Principal};
use super::value::{Fence, Ticket};
use super::want::Want;
use crate::rules::time::extends;

impl Draft<'_> {
    /// Gives an agent all that it wants: what it has is renewed or made stronger, the rest is issued.
    pub(crate) fn give(
        &mut self,
        agent: &Holder,
        principal: &Principal,
        wants: &[Want],
        ticket: Option<Ticket>,
    ) -> Vec<Fence> {
        let before = self.granted().count();
        let leases = wants.iter().map(|want| self.give_one(agent, principal, want, ticket)).collect();
        if let Some(ticket) = ticket {
            // A wait ends with the first lease that is issued for it. Where none is, it has to be said.
            if self.granted().count() == before {
                self.push_left(ticket, PendingEnd::Served);
            }
            self.mark_served(ticket);
        }
        leases
    }

    fn give_one(
        &mut self,
        agent: &Holder,
        principal: &Principal,
        want: &Want,
        ticket: Option<Ticket>,
    ) -> Fence {
        let state = self.state;
        // Mostly one. There are several if others gave it some, or if it has plain ones too.
        let on = state.find_resource(&want.resource).into_iter().flat_map(|slot| state.leases_on(slot));
        let mut own: Vec<_> =
            on.filter(|lease| self.lives(lease) && state.holder_name(lease.holder) == agent).collect();
        // Where they lie in memory must not show in the ledger.
        own.sort_unstable_by_key(|lease| lease.fence);
        if let Some(lease) = own.iter().find(|lease| lease.terms.mode.covers(want.mode)) {
            let expires_at = self.now.saturating_add(want.ttl);
            // Another manifest of its own may have renewed it in this very decision.
            let until = self.held_until(lease.fence).map_or(lease.terms.expires_at, |(until, _)| until);
            if extends(until.0, expires_at.0) {
                self.push(Event::Renewed { lease: lease.fence, at: self.now, expires_at, ttl: want.ttl });
            }
            return lease.fence;
        }
        let mut continues = own.first().map(|lease| lease.fence);
        for lease in own {
            self.revoke(lease, Cause::Transferred, principal, "its agent wants it in a stronger way");
        }
        // It may have got it in this very decision, for another manifest of its own.
        let got = self.granted_on(&want.resource).filter(|issued| issued.holder == *agent).last();
        if let Some((fence, mode)) = got.map(|issued| (issued.fence, issued.mode)) {
            if mode.covers(want.mode) {
                return fence;
            }
            let (by, detail) = (principal.clone(), "its agent wants it in a stronger way".into());
            self.push(Event::Revoked { lease: fence, at: self.now, cause: Cause::Transferred, by, detail });
            continues = Some(fence);
        }
        let (holder, resource, key) = (agent, &want.resource, None);
        let grant = Grant { holder, principal, want, resource, key, ticket, continues, authority: None };
        self.issue(grant).expect("time and fences were looked at before")
    }

    /// Whether there are numbers and time for all of this.
    pub(crate) fn has_means_for(&self, wants: &[Want]) -> bool {
        let has_time = |want: &Want| self.now.checked_add(want.ttl).is_some();
        self.fences_left() >= wants.len() as u64 && wants.iter().all(has_time)
    }

    /// What an agent is told that was told to wait, once everything is settled.
    pub(crate) fn after_settling(&self, agent: &Holder, answer: AgentAnswer) -> AgentAnswer {
        let (ticket, blocked_by) = match &answer {
            AgentAnswer::Wait { ticket, blocked_by, .. } => (ticket, blocked_by),
            AgentAnswer::Granted { leases } => return self.granted_in_the_end(leases),
            _ => return answer,
        };
        if let Some((_, leases)) = self.served_agents.iter().find(|(served, _)| served == ticket) {
            return self.granted_in_the_end(leases);
        }
        match self.dead.get(agent) {
            Some((retry_at, ended)) if self.has_gone(*ticket) => {
                AgentAnswer::Die { retry_at: *retry_at, blocked_by: blocked_by.clone(), ended: ended.clone() }
            }
            _ => answer,
        }
    }

    /// Another wait of the same agent may have made a lease stronger since: that is another lease.
    fn granted_in_the_end(&self, leases: &[Fence]) -> AgentAnswer {
        let next = |fence: &Fence| {
            let successor = self.granted().find(|issued| issued.continues == Some(*fence));
            successor.map(|issued| issued.fence)
        };
        let last = |fence: &Fence| std::iter::successors(Some(*fence), next).last().unwrap_or(*fence);
        AgentAnswer::Granted { leases: leases.iter().map(last).collect() }
    }
}
