//! What the state knows of each lease, resource, holder, principal and waiter.

use std::collections::BTreeSet;

use super::KernelState;
use super::name_table::NamedEntry;
use super::slab::Slot;
use crate::kernel::event::{LeaseTerms, QueuedAcquire};
use crate::value::{Fence, Holder, IdempotencyKey, LeaseMode, ModeSet, Principal, Resource, Tick, Ticket};

/// A live lease. A million of these should fit into a small machine: no field without a need.
#[derive(Debug, Clone)]
pub(crate) struct LeaseEntry {
    pub(crate) fence: Fence,
    pub(crate) terms: LeaseTerms,
    pub(crate) key: Option<Box<IdempotencyKey>>,
    pub(crate) resource: Slot,
    pub(crate) holder: Slot,
    /// Where it stands among its holder's leases.
    pub(crate) holder_index: u32,
}

/// A resource that somebody holds or waits for.
#[derive(Debug, Clone)]
pub(crate) struct ResourceEntry {
    pub(crate) name: Resource,
    pub(crate) leases: SmallList,
    pub(crate) queue: TicketQueue,
}

/// Who waits for one resource: nearly always nobody.
#[derive(Debug, Clone, Default)]
pub(crate) struct TicketQueue(Option<Box<TicketSet>>);

#[derive(Debug, Clone, Default)]
struct TicketSet(BTreeSet<Ticket>);

impl TicketQueue {
    /// Oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Ticket> {
        self.0.iter().flat_map(|tickets| &tickets.0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |tickets| tickets.0.len())
    }

    pub(crate) fn contains(&self, ticket: Ticket) -> bool {
        self.0.as_ref().is_some_and(|tickets| tickets.0.contains(&ticket))
    }

    /// Says whether it was not there yet.
    pub(crate) fn insert(&mut self, ticket: Ticket) -> bool {
        self.0.get_or_insert_default().0.insert(ticket)
    }

    pub(crate) fn remove(&mut self, ticket: Ticket) {
        let Some(tickets) = &mut self.0 else { return };
        tickets.0.remove(&ticket);
        if tickets.0.is_empty() {
            self.0 = None;
        }
    }
}

/// Somebody who holds or waits, or did within the last day.
#[derive(Debug, Clone)]
pub(crate) struct KnownHolder {
    pub(crate) name: Holder,
    pub(crate) principal: Slot,
    pub(crate) leases: HolderLeases,
    pub(crate) tickets: BTreeSet<Ticket>,
    /// There while it holds and waits for nothing.
    pub(crate) idle: Option<HolderIdleSince>,
}

/// A time without leases and waits. The number tells two rests within one tick apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HolderIdleSince {
    pub(crate) since: Tick,
    pub(crate) number: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct PrincipalEntry {
    pub(crate) name: Principal,
    pub(crate) leases: usize,
    /// How many leases its holders wait for.
    pub(crate) requested_leases: usize,
    /// How many waits that is.
    pub(crate) queue_entry_count: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct QueueEntry {
    pub(crate) queued: QueuedAcquire,
    pub(crate) holder: Slot,
    /// Where the resources stand that it waits for, each once, and how it would have each.
    pub(crate) resource_modes: Vec<(Slot, ModeSet)>,
}

/// The leases on one resource: nearly always one.
#[derive(Debug, Clone)]
pub(crate) enum SmallList {
    None,
    One(Slot),
    Many(Vec<Slot>),
}

impl SmallList {
    pub(crate) fn as_slice(&self) -> &[Slot] {
        match self {
            SmallList::None => &[],
            SmallList::One(slot) => std::slice::from_ref(slot),
            SmallList::Many(slots) => slots,
        }
    }

    pub(crate) fn push(&mut self, slot: Slot) {
        *self = match std::mem::replace(self, SmallList::None) {
            SmallList::None => SmallList::One(slot),
            SmallList::One(first) => SmallList::Many(vec![first, slot]),
            SmallList::Many(mut slots) => {
                slots.push(slot);
                SmallList::Many(slots)
            }
        };
    }

    pub(crate) fn remove(&mut self, slot: Slot) {
        match self {
            SmallList::Many(slots) => {
                slots.retain(|other| *other != slot);
                if let [only] = slots[..] {
                    *self = SmallList::One(only);
                }
            }
            _ => *self = SmallList::None,
        }
    }
}

impl QueueEntry {
    /// Where the resources stand in whose queues it is, each once.
    pub(crate) fn resources(&self) -> impl Iterator<Item = Slot> {
        self.resource_modes.iter().map(|(slot, _)| *slot)
    }

    /// How it would have the resource at `slot`: in one mode, or in one of several where two of its requests name it.
    pub(crate) fn modes_on(&self, slot: Slot) -> ModeSet {
        let found = self.resource_modes.iter().find(|(resource, _)| *resource == slot);
        found.map_or(ModeSet::default(), |(_, modes)| *modes)
    }
}

impl NamedEntry for ResourceEntry {
    fn name(&self) -> &str {
        self.name.as_str()
    }
}

impl NamedEntry for KnownHolder {
    fn name(&self) -> &str {
        self.name.as_str()
    }
}

impl NamedEntry for PrincipalEntry {
    fn name(&self) -> &str {
        self.name.as_str()
    }
}

/// Slots in no order that means anything.
///
/// The newest stand in the holder's entry itself, which a grant has at hand anyway. A list through the
/// leases, or the end of a vector, is a trip to memory for each grant once there are many leases.
#[derive(Debug, Clone, Default)]
pub(crate) struct HolderLeases {
    newest: [Option<Slot>; INLINE_SLOTS],
    overflow: Vec<Slot>,
}

const INLINE_SLOTS: usize = 6;

impl HolderLeases {
    pub(crate) fn len(&self) -> usize {
        self.overflow.len() + self.newest.iter().flatten().count()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.overflow.is_empty() && self.newest[0].is_none()
    }

    pub(crate) fn get(&self, place: usize) -> Option<Slot> {
        let behind = place.checked_sub(self.overflow.len());
        behind.map_or_else(|| self.overflow.get(place).copied(), |place| *self.newest.get(place)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Slot> {
        self.overflow.iter().copied().chain(self.newest.iter().flatten().copied())
    }

    pub(crate) fn push(&mut self, slot: Slot) {
        if self.newest[INLINE_SLOTS - 1].is_some() {
            self.overflow.extend(self.newest.iter_mut().filter_map(Option::take));
        }
        let free = self.newest.iter_mut().find(|place| place.is_none());
        *free.expect("room was made") = Some(slot);
    }

    /// Takes out what stands at `place`. The last one takes that place, if it is another, and is returned.
    pub(crate) fn swap_remove(&mut self, place: usize) -> Option<Slot> {
        let newest = self.newest.iter_mut().rev().find_map(Option::take);
        let last = newest.or_else(|| self.overflow.pop())?;
        match place.checked_sub(self.overflow.len()) {
            None => self.overflow[place] = last,
            // It was the last itself: nothing is left to move.
            Some(behind) if self.newest.get(behind).is_none_or(Option::is_none) => return None,
            Some(behind) => self.newest[behind] = Some(last),
        }
        Some(last)
    }
}

impl KernelState {
    /// Enters a lease everywhere but among the ends: those are inserted one by one, or made from all at
    /// once. Its place among its holder's leases is decided here. Says to whom the holder belongs.
    pub(super) fn insert_lease(&mut self, mut lease: LeaseEntry) -> Slot {
        let place = self.holders.get(lease.holder).leases.len();
        lease.holder_index = u32::try_from(place).expect("fewer than 2^32 leases fit into memory");
        let (fence, ttl) = (lease.fence, lease.terms.ttl);
        let (holder, resource) = (lease.holder, lease.resource);
        let slot = self.leases.insert(lease);
        let holder = self.holders.get_mut(holder);
        holder.leases.push(slot);
        let principal = holder.principal;
        self.principals.get_mut(principal).leases += 1;
        self.resources.get_mut(resource).leases.push(slot);
        self.by_fence.insert(fence, slot);
        self.ttl_histogram.add(ttl);
        principal
    }

    /// Inserts a queue entry. `resources` are in the order of its requests: for each request all of its resources, with
    /// the requested mode. Returns the principal of its holder.
    pub(super) fn insert_queue_entry(
        &mut self,
        queued: QueuedAcquire,
        holder: Slot,
        resources: impl IntoIterator<Item = (Slot, LeaseMode)>,
    ) -> Slot {
        let mut places: Vec<(Slot, ModeSet)> = Vec::with_capacity(queued.requests.len());
        for (slot, mode) in resources {
            if self.resources.get_mut(slot).queue.insert(queued.ticket) {
                places.push((slot, ModeSet::default().with(mode)));
            } else if let Some((_, modes)) = places.iter_mut().find(|(known, _)| *known == slot) {
                *modes = modes.with(mode);
            }
        }
        let entry = self.holders.get_mut(holder);
        entry.tickets.insert(queued.ticket);
        let principal = entry.principal;
        let counts = self.principals.get_mut(principal);
        counts.queue_entry_count += 1;
        counts.requested_leases += queued.requests.len();
        self.queue_deadlines.insert((queued.until, queued.ticket));
        self.queue_entries.insert(queued.ticket, QueueEntry { queued, holder, resource_modes: places });
        principal
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::state::slab::Slab;

    /// With the name, the indexes and what the allocator adds, a lease has to stay within 400 bytes: see
    /// docs/benchmarks.md for what it really takes.
    #[test]
    fn entry_sizes_do_not_grow() {
        assert_eq!(size_of::<LeaseEntry>(), 96);
        assert_eq!(size_of::<ResourceEntry>(), 48);
        assert_eq!(size_of::<KnownHolder>(), 120);
    }

    #[test]
    fn holder_leases_match_a_vector() {
        let (mut slab, mut own, mut vector) = (Slab::default(), HolderLeases::default(), Vec::new());
        for step in 0..5_000_usize {
            // More come than go, then more go than come.
            let grows = (step / 50) % 2 == 0;
            if vector.is_empty() || (step * 7) % 10 < if grows { 8 } else { 2 } {
                let slot = slab.insert(step);
                own.push(slot);
                vector.push(slot);
            } else {
                let place = step * 31 % vector.len();
                vector.swap_remove(place);
                assert_eq!(own.swap_remove(place), vector.get(place).copied());
            }
            assert_eq!(own.iter().collect::<Vec<_>>(), vector);
            assert_eq!((own.len(), own.is_empty()), (vector.len(), vector.is_empty()));
            assert!((0..=vector.len() + 9).all(|place| own.get(place) == vector.get(place).copied()));
        }
    }
}
