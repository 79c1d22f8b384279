//! Puts a lease or a wait wherever it is looked for. A lease that begins and one that is restored from a
//! checkpoint come in by the same door.

use super::entry::{LeaseEntry, QueueEntry};
use super::{KernelState, Slot};
use crate::kernel::event::QueuedAcquire;
use crate::kernel::mode::{LeaseMode, ModeSet};

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
