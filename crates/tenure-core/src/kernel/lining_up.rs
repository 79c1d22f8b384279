//! Queue tickets of plain requests, and waits of agents, within one decision.

use super::agent::Pending;
use super::draft::{Draft, Place};
use super::mode::Mode;
use super::name::{Holder, Principal, Resource};
use super::state::wants_apart;
use super::want::Want;
use crate::rules::overlap::{has_parts, overlap};
use crate::rules::time::is_over;

impl Draft<'_> {
    /// Whether somebody must not stand in line, because it waits as an agent, or an agent waits for what it has.
    pub(crate) fn must_not_line_up(&self, holder: &Holder) -> bool {
        let state = self.state;
        if !state.has_pending() {
            return false;
        }
        self.pending_of(holder).next().is_some()
            || self.living_leases_of(holder).into_iter().any(|lease| {
                let mut waiting = self.pending_apart(state.resource_name(lease.resource), lease.terms.mode);
                waiting.any(|pending| pending.rank.agent != *holder)
            })
    }

    pub(crate) fn waits_in_line(&self, holder: &Holder) -> bool {
        let slot = self.state.find_holder(holder);
        slot.into_iter().flat_map(|slot| self.state.waits_of(slot)).any(|waiting| self.waits(waiting))
    }

    /// Who is in the way of an agent that stands in line itself: everybody, also those who stand there. It may wait for one of
    /// them, so it must not come in front of them by asking as an agent.
    pub(crate) fn ahead_in_line(&self, agent: &Holder, wants: &[Want]) -> Vec<Holder> {
        if !self.waits_in_line(agent) {
            return Vec::new();
        }
        let ahead = wants.iter().flat_map(|want| self.blockers(&want.resource, want.mode, Place::default()));
        ahead.map(|blocker| blocker.holder.clone()).filter(|holder| holder != agent).collect()
    }
}

impl Draft<'_> {
    /// Agents that wait for something that has something in common with `resource`, the oldest first.
    pub(crate) fn pending_around<'b>(&'b self, resource: &'b Resource) -> impl Iterator<Item = &'b Pending> {
        let of_state = self.someone_waits_for_such(resource).then(|| self.state.pending_around(resource));
        let new = self.new_pending.iter().filter(|pending| {
            pending.wants.iter().any(|want| overlap(want.resource.as_str(), resource.as_str()))
        });
        of_state.into_iter().flatten().chain(new).filter(|pending| self.pends(pending))
    }

    /// Those of them that want it in a way that does not go with `mode`.
    pub(crate) fn pending_apart<'b>(
        &'b self,
        resource: &'b Resource,
        mode: Mode,
    ) -> impl Iterator<Item = &'b Pending> {
        let of_state =
            self.someone_waits_for_such(resource).then(|| self.state.pending_apart(resource, mode));
        let new = self.new_pending.iter().filter(move |pending| wants_apart(&pending.wants, resource, mode));
        of_state.into_iter().flatten().chain(new).filter(|pending| self.pends(pending))
    }

    fn someone_waits_for_such(&self, resource: &Resource) -> bool {
        self.state.has_pending() && has_parts(resource.as_str())
    }

    /// The waits of an agent, here and now.
    pub(crate) fn pending_of<'b>(&'b self, agent: &'b Holder) -> impl Iterator<Item = &'b Pending> {
        let new = self.new_pending.iter().filter(|pending| pending.rank.agent == *agent);
        self.state.pending_of(agent).chain(new).filter(|pending| self.pends(pending))
    }

    /// Whether an agent's attempt goes on, as this decision leaves it.
    pub(crate) fn is_engaged(&self, agent: &Holder) -> bool {
        let waits = || self.pending_of(agent).next().is_some();
        let died_before = || self.state.agent(agent).is_some_and(|agent| agent.retry_at.is_some());
        let died = || self.dead.contains_key(agent) || died_before();
        let gets = || self.granted().any(|issued| issued.holder == *agent);
        !self.living_leases_of(agent).is_empty() || gets() || waits() || died()
    }

    /// For how much the agents of a principal wait.
    pub(super) fn wanted_by_agents_of(&self, principal: &Principal) -> usize {
        let is_own =
            |agent: &Holder| self.state.agent(agent).is_some_and(|agent| agent.principal == *principal);
        let own = self.state.pending().filter(|pending| self.pends(pending) && is_own(&pending.rank.agent));
        own.map(|pending| pending.wants.len()).sum()
    }

    pub(super) fn pends(&self, pending: &Pending) -> bool {
        !is_over(self.now.0, pending.until.0) && !self.has_gone(pending.ticket)
    }
}
