//! The waits of agents, found by their age, their end and what they are for.

use std::collections::{BTreeMap, BTreeSet};

use crate::kernel::agent::{AgentRank, AgentWait};
use crate::kernel::lease::lease_request::LeaseRequest;
use crate::kernel::state::overlap_index::OverlapIndex;
use crate::rules::is_expired;
use crate::value::{LeaseMode, Resource, Tick, Ticket};

#[derive(Debug, Clone, Default)]
pub(in crate::kernel) struct AgentWaitIndex {
    /// The oldest first.
    by_age: BTreeMap<(AgentRank, Ticket), AgentWait>,
    by_ticket: BTreeMap<Ticket, AgentRank>,
    by_end: BTreeSet<(Tick, Ticket)>,
    /// By how it is wanted first: whoever looks for those in the way need not look at a thousand readers.
    by_resource: BTreeMap<Resource, BTreeSet<(LeaseMode, Ticket)>>,
    overlaps: OverlapIndex<()>,
    /// What all of them wait for together.
    requested_leases: usize,
}

impl AgentWaitIndex {
    pub(in crate::kernel) fn is_empty(&self) -> bool {
        self.by_age.is_empty()
    }

    /// How many waits there are, and for how much.
    pub(in crate::kernel) fn counts(&self) -> (usize, usize) {
        (self.by_age.len(), self.requested_leases)
    }

    /// Every wait, that of the oldest first.
    pub(in crate::kernel) fn iter(&self) -> impl Iterator<Item = &AgentWait> {
        self.by_age.values()
    }

    pub(in crate::kernel) fn get(&self, ticket: Ticket) -> Option<&AgentWait> {
        let rank = self.by_ticket.get(&ticket)?;
        self.by_age.get(&(rank.clone(), ticket))
    }

    /// The waits of one agent of this age, the first first.
    pub(in crate::kernel) fn of_rank(&self, rank: &AgentRank) -> impl Iterator<Item = &AgentWait> {
        let (first, last) = ((rank.clone(), Ticket(0)), (rank.clone(), Ticket(u64::MAX)));
        self.by_age.range(first..=last).map(|(_, pending)| pending)
    }

    /// The waits for something that has something in common with `resource`, each at least once.
    pub(in crate::kernel) fn overlapping<'a>(
        &'a self,
        resource: &'a Resource,
    ) -> impl Iterator<Item = &'a AgentWait> {
        self.entries_overlapping(resource).flatten().filter_map(|(_, ticket)| self.get(*ticket))
    }

    /// Those of them that want it in a way that does not go with `mode`.
    pub(in crate::kernel) fn conflicting<'a>(
        &'a self,
        resource: &'a Resource,
        mode: LeaseMode,
    ) -> impl Iterator<Item = &'a AgentWait> {
        let modes = LeaseMode::ALL.into_iter().filter(move |other| !other.is_compatible(mode));
        let tickets = self.entries_overlapping(resource).flat_map(move |places| {
            modes.clone().flat_map(|mode| places.range((mode, Ticket(0))..=(mode, Ticket(u64::MAX))))
        });
        tickets.filter_map(|(_, ticket)| self.get(*ticket))
    }

    fn entries_overlapping<'a>(
        &'a self,
        resource: &'a Resource,
    ) -> impl Iterator<Item = &'a BTreeSet<(LeaseMode, Ticket)>> {
        let names =
            std::iter::once(resource).chain(self.overlaps.overlapping(resource).map(|(name, ())| name));
        names.filter_map(|name| self.by_resource.get(name))
    }

    /// The waits that are over at `now`, oldest end first.
    pub(in crate::kernel) fn timed_out(&self, now: Tick) -> impl Iterator<Item = &AgentWait> {
        let due = self.by_end.iter().take_while(move |(at, _)| is_expired(now.0, at.0));
        due.filter_map(|(_, ticket)| self.get(*ticket))
    }

    pub(in crate::kernel) fn next_timeout(&self) -> Option<Tick> {
        self.by_end.first().map(|(at, _)| *at)
    }

    pub(in crate::kernel) fn insert(&mut self, pending: AgentWait) {
        self.requested_leases += pending.requests.len();
        for request in &pending.requests {
            self.overlaps.insert(&request.resource, ());
            let places = self.by_resource.entry(request.resource.clone()).or_default();
            places.insert((request.mode, pending.ticket));
        }
        self.by_ticket.insert(pending.ticket, pending.rank.clone());
        self.by_end.insert((pending.until, pending.ticket));
        self.by_age.insert((pending.rank.clone(), pending.ticket), pending);
    }

    pub(in crate::kernel) fn remove(&mut self, ticket: Ticket) -> Option<AgentWait> {
        let rank = self.by_ticket.remove(&ticket)?;
        let pending = self.by_age.remove(&(rank, ticket))?;
        self.by_end.remove(&(pending.until, ticket));
        self.requested_leases -= pending.requests.len();
        for request in &pending.requests {
            let Some(places) = self.by_resource.get_mut(&request.resource) else { continue };
            places.remove(&(request.mode, ticket));
            if places.is_empty() {
                self.by_resource.remove(&request.resource);
                self.overlaps.remove(&request.resource);
            }
        }
        Some(pending)
    }

    /// Whether every wait is found in every way, and nothing else is.
    pub(in crate::kernel) fn is_consistent(&self) -> bool {
        let requested = self.iter().map(|pending| pending.requests.len()).sum();
        let count = self.by_age.len();
        let places: usize = self.by_resource.values().map(BTreeSet::len).sum();
        let found = |pending: &AgentWait| {
            let on = |request: &LeaseRequest| {
                let places = self.by_resource.get(&request.resource);
                places.is_some_and(|places| places.contains(&(request.mode, pending.ticket)))
            };
            self.by_end.contains(&(pending.until, pending.ticket))
                && self.by_ticket.get(&pending.ticket) == Some(&pending.rank)
                && pending.requests.iter().all(on)
        };
        (count, count, requested, requested, self.by_resource.len())
            == (self.by_ticket.len(), self.by_end.len(), self.requested_leases, places, self.overlaps.len())
            && self.iter().all(found)
    }
}
