//! Puts a lease or a wait wherever it is looked for. A lease that begins and one that is restored from a
//! checkpoint come in by the same door.

use super::entry::{LeaseEntry, Waiting};
use super::{Slot, State};
use crate::kernel::event::Queued;
use crate::kernel::mode::{Mode, Modes};

impl State {
    /// Enters a lease everywhere but among the ends: those are inserted one by one, or made from all at
    /// once. Its place among its holder's leases is decided here. Says to whom the holder belongs.
    pub(super) fn enter_lease(&mut self, mut lease: LeaseEntry) -> Slot {
        let place = self.holders.get(lease.holder).leases.len();
        lease.place = u32::try_from(place).expect("fewer than 2^32 leases fit into memory");
        let (fence, ttl) = (lease.fence, lease.terms.ttl);
        let (holder, resource) = (lease.holder, lease.resource);
        let slot = self.leases.insert(lease);
        let holder = self.holders.get_mut(holder);
        holder.leases.push(slot);
        let principal = holder.principal;
        self.principals.get_mut(principal).leases += 1;
        self.resources.get_mut(resource).leases.push(slot);
        self.by_fence.insert(fence, slot);
        self.lengths.add(ttl);
        principal
    }

    /// Enters a wait. `resources` stand where its wants name them: for each want each of its resources, with the
    /// mode in which it is wanted. Says to whom its holder belongs.
    pub(super) fn enter_wait(
        &mut self,
        queued: Queued,
        holder: Slot,
        resources: impl IntoIterator<Item = (Slot, Mode)>,
    ) -> Slot {
        let mut places: Vec<(Slot, Modes)> = Vec::with_capacity(queued.wants.len());
        for (slot, mode) in resources {
            if self.resources.get_mut(slot).queue.insert(queued.ticket) {
                places.push((slot, Modes::default().with(mode)));
            } else if let Some((_, modes)) = places.iter_mut().find(|(known, _)| *known == slot) {
                *modes = modes.with(mode);
            }
        }
        let entry = self.holders.get_mut(holder);
        entry.tickets.insert(queued.ticket);
        let principal = entry.principal;
        let counts = self.principals.get_mut(principal);
        counts.waits += 1;
        counts.wanted += queued.wants.len();
        self.deadlines.insert((queued.until, queued.ticket));
        self.waits.insert(queued.ticket, Waiting { queued, holder, places });
        principal
    }
}
