//! The waits of agents, found by their age, their end and what they are for.

use std::collections::{BTreeMap, BTreeSet};

use crate::kernel::agent::{Pending, Rank};
use crate::kernel::mode::Mode;
use crate::kernel::name::Resource;
use crate::kernel::state::reaches::Reaches;
use crate::kernel::value::{Tick, Ticket};
use crate::kernel::want::Want;
use crate::rules::time::is_over;

#[derive(Debug, Clone, Default)]
pub(crate) struct Waits {
    /// The oldest first.
    by_age: BTreeMap<(Rank, Ticket), Pending>,
    by_ticket: BTreeMap<Ticket, Rank>,
    by_end: BTreeSet<(Tick, Ticket)>,
    /// By how it is wanted first: whoever looks for those in the way need not look at a thousand readers.
    by_resource: BTreeMap<Resource, BTreeSet<(Mode, Ticket)>>,
    reaches: Reaches<()>,
    /// What all of them wait for together.
    wanted: usize,
}

impl Waits {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_age.is_empty()
    }

    /// How many waits there are, and for how much.
    pub(crate) fn load(&self) -> (usize, usize) {
        (self.by_age.len(), self.wanted)
    }

    /// Every wait, that of the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Pending> {
        self.by_age.values()
    }

    pub(crate) fn get(&self, ticket: Ticket) -> Option<&Pending> {
        let rank = self.by_ticket.get(&ticket)?;
        self.by_age.get(&(rank.clone(), ticket))
    }

    /// The waits of one agent of this age, the first first.
    pub(crate) fn of(&self, rank: &Rank) -> impl Iterator<Item = &Pending> {
        let (first, last) = ((rank.clone(), Ticket(0)), (rank.clone(), Ticket(u64::MAX)));
        self.by_age.range(first..=last).map(|(_, pending)| pending)
    }

    /// The waits for something that has something in common with `resource`, each at least once.
    pub(crate) fn around<'a>(&'a self, resource: &'a Resource) -> impl Iterator<Item = &'a Pending> {
        self.places_around(resource).flatten().filter_map(|(_, ticket)| self.get(*ticket))
    }

    /// Those of them that want it in a way that does not go with `mode`.
    pub(crate) fn apart<'a>(
        &'a self,
        resource: &'a Resource,
        mode: Mode,
    ) -> impl Iterator<Item = &'a Pending> {
        let modes = Mode::ALL.into_iter().filter(move |other| !other.goes_with(mode));
        let tickets = self.places_around(resource).flat_map(move |places| {
            modes.clone().flat_map(|mode| places.range((mode, Ticket(0))..=(mode, Ticket(u64::MAX))))
        });
        tickets.filter_map(|(_, ticket)| self.get(*ticket))
    }

    fn places_around<'a>(
        &'a self,
        resource: &'a Resource,
    ) -> impl Iterator<Item = &'a BTreeSet<(Mode, Ticket)>> {
        let names = std::iter::once(resource).chain(self.reaches.around(resource).map(|(name, ())| name));
        names.filter_map(|name| self.by_resource.get(name))
    }

    /// The waits that are over at `now`, oldest end first.
    pub(crate) fn over(&self, now: Tick) -> impl Iterator<Item = &Pending> {
        let over = self.by_end.iter().take_while(move |(at, _)| is_over(now.0, at.0));
        over.filter_map(|(_, ticket)| self.get(*ticket))
    }

    pub(crate) fn first_end(&self) -> Option<Tick> {
        self.by_end.first().map(|(at, _)| *at)
    }

    pub(crate) fn insert(&mut self, pending: Pending) {
        self.wanted += pending.wants.len();
        for want in &pending.wants {
            self.reaches.insert(&want.resource, ());
            let places = self.by_resource.entry(want.resource.clone()).or_default();
            places.insert((want.mode, pending.ticket));
        }
        self.by_ticket.insert(pending.ticket, pending.rank.clone());
        self.by_end.insert((pending.until, pending.ticket));
        self.by_age.insert((pending.rank.clone(), pending.ticket), pending);
    }

    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<Pending> {
        let rank = self.by_ticket.remove(&ticket)?;
        let pending = self.by_age.remove(&(rank, ticket))?;
        self.by_end.remove(&(pending.until, ticket));
        self.wanted -= pending.wants.len();
        for want in &pending.wants {
            let Some(places) = self.by_resource.get_mut(&want.resource) else { continue };
            places.remove(&(want.mode, ticket));
            if places.is_empty() {
                self.by_resource.remove(&want.resource);
                self.reaches.remove(&want.resource);
            }
        }
        Some(pending)
    }

    /// Whether every wait is found in every way, and nothing else is.
    pub(crate) fn adds_up(&self) -> bool {
        let wanted = self.iter().map(|pending| pending.wants.len()).sum();
        let count = self.by_age.len();
        let places: usize = self.by_resource.values().map(BTreeSet::len).sum();
        let found = |pending: &Pending| {
            let on = |want: &Want| {
                let places = self.by_resource.get(&want.resource);
                places.is_some_and(|places| places.contains(&(want.mode, pending.ticket)))
            };
            self.by_end.contains(&(pending.until, pending.ticket))
                && self.by_ticket.get(&pending.ticket) == Some(&pending.rank)
                && pending.wants.iter().all(on)
        };
        (count, count, wanted, wanted, self.by_resource.len())
            == (self.by_ticket.len(), self.by_end.len(), self.wanted, places, self.reaches.len())
            && self.iter().all(found)
    }
}
