//! What the world may see of the state.

use super::KernelState;
use super::entry::{LeaseEntry, QueueEntry};
use crate::kernel::event::LeaseTerms;
use crate::kernel::lease::lease_request::LeaseRequest;
use crate::kernel::work::WorkLease;
use crate::value::{Fence, Holder, LeaseMode, Principal, Resource, Tick, Ticket};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseView<'a> {
    pub fence: Fence,
    pub resource: &'a Resource,
    pub holder: &'a Holder,
    pub principal: &'a Principal,
    pub terms: &'a LeaseTerms,
    /// Whether it was asked for under a key, so that the same request finds it again.
    pub has_key: bool,
    /// What became of its authority, if it has any.
    pub work: Option<&'a WorkLease>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueTicketView<'a> {
    pub ticket: Ticket,
    pub holder: &'a Holder,
    pub principal: &'a Principal,
    pub requests: &'a [LeaseRequest],
    pub since: Tick,
    pub until: Tick,
    /// Whether it waits under a key, so that the same request finds its place again.
    pub has_key: bool,
}

impl QueueTicketView<'_> {
    /// Whether it waits for `resource`, alone or as one of several, in a way that does not go with `mode`: a lease
    /// like that keeps it out there.
    pub fn conflicts_with(&self, resource: &Resource, mode: LeaseMode) -> bool {
        let mut conflicting = self.requests.iter().filter(|request| !request.mode.is_compatible(mode));
        conflicting.any(|request| request.resources().any(|other| other == resource))
    }
}

impl KernelState {
    /// The lease with this number, which may be over but not announced.
    pub fn lease(&self, fence: Fence) -> Option<LeaseView<'_>> {
        self.find_lease(fence).map(|entry| self.lease_view(entry))
    }

    /// Every lease from `first` on, in the order of their numbers: a page can go on where the last one ended.
    pub fn leases_from(&self, first: Fence) -> impl Iterator<Item = LeaseView<'_>> {
        self.by_fence.iter_from(first).map(|slot| self.lease_view(self.leases.get(slot)))
    }

    /// The leases on a resource, in no order that means anything.
    pub fn leases_on_resource(&self, resource: &Resource) -> impl Iterator<Item = LeaseView<'_>> {
        let slot = self.find_resource(resource);
        slot.into_iter().flat_map(|slot| self.leases_on(slot)).map(|entry| self.lease_view(entry))
    }

    /// The leases on a resource and on what has something in common with it, its own first.
    pub fn leases_overlapping_resource<'a>(
        &'a self,
        resource: &'a Resource,
    ) -> impl Iterator<Item = LeaseView<'a>> {
        self.leases_overlapping(resource).map(|entry| self.lease_view(entry))
    }

    /// The leases of a holder, newest first.
    pub fn leases_of_holder(&self, holder: &Holder) -> impl Iterator<Item = LeaseView<'_>> {
        let slot = self.find_holder(holder);
        slot.into_iter().flat_map(|slot| self.leases_of(slot)).map(|entry| self.lease_view(entry))
    }

    /// Who waits for a resource, alone or as one of several, oldest first.
    pub fn queue_of(&self, resource: &Resource) -> impl Iterator<Item = QueueTicketView<'_>> {
        let slot = self.find_resource(resource);
        slot.into_iter().flat_map(|slot| self.queue_on(slot)).map(queue_ticket_view)
    }

    /// How many wait for a resource, those whose time is over among them.
    pub fn queue_length(&self, resource: &Resource) -> usize {
        self.find_resource(resource).map_or(0, |slot| self.resources.get(slot).queue.len())
    }

    pub fn waiter_count(&self) -> usize {
        self.queue_entries.len()
    }

    /// Everybody who waits, oldest first.
    pub fn queue_tickets(&self) -> impl Iterator<Item = QueueTicketView<'_>> {
        self.queue_entries().map(queue_ticket_view)
    }

    pub fn queue_ticket(&self, ticket: Ticket) -> Option<QueueTicketView<'_>> {
        self.queue_entry(ticket).map(queue_ticket_view)
    }

    fn lease_view<'a>(&'a self, entry: &'a LeaseEntry) -> LeaseView<'a> {
        LeaseView {
            fence: entry.fence,
            resource: self.resource_name(entry.resource),
            holder: self.holder_name(entry.holder),
            principal: self.principal_of(entry.holder).1,
            terms: &entry.terms,
            has_key: entry.key.is_some(),
            work: self.work_lease(entry.fence),
        }
    }
}

fn queue_ticket_view(waiting: &QueueEntry) -> QueueTicketView<'_> {
    let queued = &waiting.queued;
    QueueTicketView {
        ticket: queued.ticket,
        holder: &queued.holder,
        principal: &queued.principal,
        requests: &queued.requests,
        since: queued.at,
        until: queued.until,
        has_key: queued.key.is_some(),
    }
}
