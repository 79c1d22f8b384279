//! What the state knows of each lease, resource, holder, principal and waiter.

use std::collections::BTreeSet;

use super::holder_leases::HolderLeases;
use super::name_table::NamedEntry;
use super::slab::Slot;
use crate::kernel::event::{LeaseTerms, QueuedAcquire};
use crate::kernel::mode::ModeSet;
use crate::kernel::name::{Holder, Principal, Resource};
use crate::kernel::newtypes::{Fence, IdempotencyKey, Tick, Ticket};

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

#[cfg(test)]
mod tests {
    use super::*;

    /// With the name, the indexes and what the allocator adds, a lease has to stay within 400 bytes: see
    /// docs/benchmarks.md for what it really takes.
    #[test]
    fn entry_sizes_do_not_grow() {
        assert_eq!(size_of::<LeaseEntry>(), 96);
        assert_eq!(size_of::<ResourceEntry>(), 48);
        assert_eq!(size_of::<KnownHolder>(), 120);
    }
}
