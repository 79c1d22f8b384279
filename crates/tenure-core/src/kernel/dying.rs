//! Who among agents waits, who dies, and whose turn has come.

use std::collections::BTreeSet;

use super::agent::{AgentEvent, Pending, PendingEnd, Rank};
use super::draft::Draft;
use super::event::{Cause, Event};
use super::mode::Mode;
use super::name::{Holder, Resource};
use super::state::LeaseEntry;
use super::value::{Fence, Span, Tick, Ticket};
use super::want::{Want, widest};
use crate::rules::overlap::uncovered;

/// What is to become of somebody who wants something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    Free,
    /// Only younger ones are.
    Waits(Vec<Holder>),
    /// An older one is, or somebody without an age.
    Dies(Vec<Holder>),
}

impl Draft<'_> {
    /// What becomes of an agent that wants all of this.
    pub(crate) fn fate(&self, wants: &[Want], rank: &Rank) -> Fate {
        let mut ahead: Vec<(Holder, bool)> = Vec::new();
        for want in widest(wants) {
            let (resource, mode) = (&want.resource, want.mode);
            let holders = self.holders_apart(resource, mode).filter(|holder| *holder != rank.agent);
            ahead.extend(holders.map(|holder| {
                // Who stands in line may wait for this one, whatever its age.
                let is_younger =
                    self.age_of(&holder).is_some_and(|other| other > *rank) && !self.waits_in_line(&holder);
                (holder, is_younger)
            }));
            let around = self.pending_apart(resource, mode);
            let older = around.filter(|pending| pending.rank < *rank && pending.rank.agent != rank.agent);
            ahead.extend(older.map(|pending| (pending.rank.agent.clone(), false)));
        }
        ahead.extend(self.ahead_in_line(&rank.agent, wants).into_iter().map(|holder| (holder, false)));
        let dies = ahead.iter().any(|(_, is_younger)| !is_younger);
        let mut names: Vec<Holder> = ahead.into_iter().map(|(holder, _)| holder).collect();
        names.sort_unstable();
        names.dedup();
        match (names.is_empty(), dies) {
            (true, _) => Fate::Free,
            (false, false) => Fate::Waits(names),
            (false, true) => Fate::Dies(names),
        }
    }

    /// Lets in whose turn has come: agents first, who have an age, then everybody else.
    pub(crate) fn serve_agents_and_waiters(&mut self) {
        self.settle_agents();
        self.serve_waiters();
    }

    /// Whoever of those who wait would wait for an older one dies, and whoever has everything free gets it, the oldest first,
    /// until neither is left. Only those are looked at around whom something changed.
    pub(crate) fn settle_agents(&mut self) {
        while !self.stirred.is_empty() {
            let stirred = std::mem::take(&mut self.stirred);
            let stirred: Vec<Resource> = stirred.into_iter().collect();
            let widest = uncovered(stirred.iter().map(|resource| (resource.as_str(), 0)));
            let around = widest.into_iter().flat_map(|place| self.pending_around(&stirred[place]));
            let waiting: BTreeSet<(Rank, Ticket)> =
                around.map(|pending| (pending.rank.clone(), pending.ticket)).collect();
            waiting.into_iter().for_each(|(_, ticket)| self.settle_one(ticket));
        }
    }

    /// The same, whatever changed.
    pub(crate) fn settle_all_agents(&mut self) {
        let tickets: Vec<Ticket> = self.state.pending().map(|pending| pending.ticket).collect();
        tickets.into_iter().for_each(|ticket| self.settle_one(ticket));
        self.settle_agents();
    }

    fn settle_one(&mut self, ticket: Ticket) {
        let new = self.new_pending.as_ref().filter(|pending| pending.ticket == ticket);
        let pending = self.state.pending_under(ticket).or(new).filter(|pending| self.pends(pending));
        let Some(Pending { rank, wants, .. }) = pending.cloned() else { return };
        match self.fate(&wants, &rank) {
            Fate::Waits(_) => {}
            Fate::Dies(_) => {
                self.push_left(ticket, PendingEnd::Died);
                self.die(&rank);
            }
            Fate::Free if self.is_full() => self.has_unserved = true,
            Fate::Free => {
                let known = self.state.agent(&rank.agent).map(|agent| agent.principal.clone());
                let principal = known.or_else(|| self.declaring.clone());
                let may = self.check_may_grant().is_ok() && self.has_means_for(&wants);
                if let Some(principal) = principal.filter(|_| may) {
                    let leases = self.give(&rank.agent, &principal, &wants, Some(ticket));
                    self.served_agents.push((ticket, leases));
                }
            }
        }
    }

    /// Announces that waits of agents are over, at most so many. Says whether there are more.
    pub(crate) fn time_out_agents(&mut self, most: usize) -> bool {
        let state = self.state;
        let mut overdue = state.overdue_pending(self.now);
        for pending in overdue.by_ref().take(most) {
            if !self.has_gone(pending.ticket) {
                self.push_left(pending.ticket, PendingEnd::TimedOut);
            }
        }
        overdue.next().is_some()
    }

    /// Lets an agent die: it may come back later, and what an older one waits for is over.
    pub(crate) fn die(&mut self, rank: &Rank) -> (Tick, Vec<Fence>) {
        let retry_at = self.now.saturating_add(self.backoff_of(&rank.agent));
        let before = self.dead.remove(&rank.agent);
        if before.is_none() {
            let (agent, at) = (rank.agent.clone(), self.now);
            self.push(Event::Agent(Box::new(AgentEvent::Died { agent, at, retry_at })));
        }
        let mut ended = before.map(|(_, ended)| ended).unwrap_or_default();
        for lease in self.living_leases_of(&rank.agent) {
            if self.an_older_one_waits_for(lease, rank) {
                let by = self.state.principal_of(lease.holder).1.clone();
                self.revoke(lease, Cause::Died, &by, "an older agent waits for it");
                ended.push(lease.fence);
            }
        }
        self.dead.insert(rank.agent.clone(), (retry_at, ended.clone()));
        (retry_at, ended)
    }

    /// Whether there is anything to be ended if this one dies.
    pub(crate) fn holds_what_an_older_one_waits_for(&self, rank: &Rank) -> bool {
        let leases = self.living_leases_of(&rank.agent);
        leases.into_iter().any(|lease| self.an_older_one_waits_for(lease, rank))
    }

    fn an_older_one_waits_for(&self, lease: &LeaseEntry, rank: &Rank) -> bool {
        let resource = self.state.resource_name(lease.resource);
        self.pending_apart(resource, lease.terms.mode).any(|pending| pending.rank < *rank)
    }

    /// The age of an agent, as this decision leaves it.
    pub(crate) fn age_of(&self, agent: &Holder) -> Option<Rank> {
        let begun = self.begun.iter().find(|rank| rank.agent == *agent).cloned();
        begun.or_else(|| self.state.rank_of(agent))
    }

    fn holders_apart(&self, resource: &Resource, mode: Mode) -> impl Iterator<Item = Holder> {
        let leases = self.state.leases_around(resource);
        let leases = leases.filter(|lease| !lease.terms.mode.goes_with(mode) && self.lives(lease));
        let leases = leases.map(|lease| self.state.holder_name(lease.holder).clone());
        let granted = self.granted_around(resource).filter(|issued| !issued.mode.goes_with(mode));
        let held: Vec<Holder> = leases.chain(granted.map(|issued| issued.holder.clone())).collect();
        held.into_iter()
    }

    pub(super) fn push_left(&mut self, ticket: Ticket, end: PendingEnd) {
        self.push(Event::Agent(Box::new(AgentEvent::Left { ticket, at: self.now, end })));
        self.mark_served(ticket);
    }

    /// Twice as long with every death, up to a bound, and a little longer by chance: by a chance that a replay finds again.
    fn backoff_of(&self, agent: &Holder) -> Span {
        let (base, most) = self.state.limits().backoff;
        let deaths = self.state.agent(agent).map_or(0, |agent| agent.deaths);
        let delay = base.0.saturating_mul(1 << deaths.min(32)).min(most.0);
        let mut hasher = blake3::Hasher::new();
        hasher
            .update(agent.as_str().as_bytes())
            .update(&deaths.to_be_bytes())
            .update(&self.now.0.to_be_bytes());
        let [a, b, c, d, ..] = *hasher.finalize().as_bytes();
        Span(delay + u64::from(u32::from_be_bytes([a, b, c, d])) % (delay / 4 + 1))
    }
}
