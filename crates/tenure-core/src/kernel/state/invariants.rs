//! What must hold after every event, whatever happened. Tests and the simulator ask after each step.

use std::collections::{BTreeMap, BTreeSet};

use super::State;
use super::memory::KeyOutcome;
use crate::kernel::mode::Modes;
use crate::kernel::name::Resource;
use crate::kernel::value::Fence;
use crate::rules::time::lasts;

impl State {
    /// Checks everything, in time proportional to all there is. The error says what is wrong, for people.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.invariant_every_pair_on_a_resource_goes_together()?;
        self.invariant_what_overlaps_goes_together()?;
        self.invariant_every_lease_is_found_by_number_resource_holder_and_end()?;
        self.invariant_every_wait_is_found_by_resource_holder_and_end()?;
        self.invariant_principals_count_what_their_holders_have()?;
        self.invariant_only_holders_without_leases_and_waits_rest()?;
        self.invariant_keys_lead_to_leases_and_waits()?;
        self.invariant_sessions_hold_what_they_are_said_to()?;
        self.invariant_every_child_is_a_part_of_its_parent()?;
        self.invariant_waits_lead_from_old_to_young()?;
        self.invariant_agents_hold_what_is_noted()?;
        self.invariant_files_are_held_by_sessions_that_live()
    }

    fn invariant_every_pair_on_a_resource_goes_together(&self) -> Result<(), String> {
        for (slot, resource) in self.resources.iter() {
            let leases: Vec<_> = self.leases_on(slot).collect();
            for (index, one) in leases.iter().enumerate() {
                for other in &leases[index + 1..] {
                    let both = || format!("{:?} and {:?} on {}", one.fence, other.fence, resource.name);
                    ensure(one.terms.mode.goes_with(other.terms.mode), both)?;
                }
            }
            let unused = leases.is_empty() && resource.queue.is_empty();
            ensure(!unused, || format!("{} is kept for nobody", resource.name))?;
        }
        Ok(())
    }

    fn invariant_every_lease_is_found_by_number_resource_holder_and_end(&self) -> Result<(), String> {
        let count = self.leases.len();
        ensure(self.by_fence.len() == count, || "leases and their numbers differ in count".into())?;
        ensure(self.lengths.len() == count, || "leases and their lengths differ in count".into())?;
        ensure(self.expiries.len() == count, || "leases and their ends differ in count".into())?;
        let of_holders: usize = self.holders.iter().map(|(_, holder)| holder.leases.len()).sum();
        ensure(of_holders == count, || "leases and those of all holders differ in count".into())?;
        for (slot, lease) in self.leases.iter() {
            let fence = lease.fence;
            let on_resource = self.resources.get(lease.resource).leases.as_slice();
            ensure(self.by_fence.get(fence) == Some(slot), || format!("{fence:?} not by number"))?;
            ensure(self.expiries.contains((lease.terms.expires_at, fence)), || {
                format!("{fence:?} not by end")
            })?;
            ensure(on_resource.contains(&slot), || format!("{fence:?} not on its resource"))?;
            ensure(fence <= self.last_fence, || format!("{fence:?} was never given out"))?;
            ensure(self.ended.get(fence).is_none(), || format!("{fence:?} lives and is over"))?;
            ensure(lasts(lease.terms.issued_at.0, lease.terms.expires_at.0), || {
                format!("{fence:?} has no time")
            })?;
            let of_holder = &self.holders.get(lease.holder).leases;
            let found = of_holder.get(lease.place as usize) == Some(slot);
            ensure(found, || format!("{fence:?} not with its holder"))?;
        }
        Ok(())
    }

    fn invariant_every_wait_is_found_by_resource_holder_and_end(&self) -> Result<(), String> {
        ensure(self.deadlines.len() == self.waits.len(), || "waits and their ends differ in count".into())?;
        let queued: usize = self.resources.iter().map(|(_, resource)| resource.queue.len()).sum();
        let wanted: usize = self.waits.values().map(|waiting| waiting.places.len()).sum();
        ensure(queued == wanted, || "waits and queues differ in count".into())?;
        for (ticket, waiting) in &self.waits {
            let end = (waiting.queued.until, *ticket);
            ensure(self.deadlines.contains(&end), || format!("{ticket:?} not by end"))?;
            let holder = self.holders.get(waiting.holder);
            ensure(holder.tickets.contains(ticket), || format!("{ticket:?} not with its holder"))?;
            let mut wanted: BTreeMap<&Resource, Modes> = BTreeMap::new();
            for (want, resource) in waiting
                .queued
                .wants
                .iter()
                .flat_map(|want| want.resources().map(move |resource| (want, resource)))
            {
                let modes = wanted.entry(resource).or_default();
                *modes = modes.with(want.mode);
            }
            let places = waiting.places.iter().map(|(slot, modes)| (self.resource_name(*slot), *modes));
            let places: BTreeMap<&Resource, Modes> = places.collect();
            ensure(places == wanted, || format!("{ticket:?} does not wait for what it wants"))?;
            for resource in waiting.resources() {
                let queue = &self.resources.get(resource).queue;
                ensure(queue.contains(*ticket), || format!("{ticket:?} not in its queue"))?;
            }
        }
        Ok(())
    }

    fn invariant_principals_count_what_their_holders_have(&self) -> Result<(), String> {
        for (slot, principal) in self.principals.iter() {
            let own = || self.holders.iter().filter(|(_, holder)| holder.principal == slot);
            let leases: usize = own().map(|(_, holder)| holder.leases.len()).sum();
            let waits: usize = own().map(|(_, holder)| holder.tickets.len()).sum();
            let wants = own().flat_map(|(holder, _)| self.waits_of(holder));
            let wanted: usize = wants.map(|waiting| waiting.queued.wants.len()).sum();
            let counted = (principal.leases, principal.waits, principal.wanted);
            let wrong = || format!("{}: counted {counted:?}, has {leases} {waits} {wanted}", principal.name);
            ensure(counted == (leases, waits, wanted), wrong)?;
        }
        Ok(())
    }

    fn invariant_only_holders_without_leases_and_waits_rest(&self) -> Result<(), String> {
        for (_, holder) in self.holders.iter() {
            let idle = holder.leases.is_empty() && holder.tickets.is_empty();
            ensure(idle == holder.rest.is_some(), || format!("{} rests: {idle}", holder.name))?;
        }
        let resting = self.holders.iter().filter_map(|(slot, holder)| Some((holder.rest?.number, slot)));
        let resting: BTreeMap<_, _> = resting.collect();
        ensure(resting == self.idle_holders, || "those who rest and their list differ".into())?;
        Ok(())
    }

    fn invariant_keys_lead_to_leases_and_waits(&self) -> Result<(), String> {
        let keyed = self.leases.iter().filter(|(_, lease)| lease.key.is_some());
        let keyed: BTreeSet<Fence> = keyed.map(|(_, lease)| lease.fence).collect();
        let mut live = 0;
        for ((_, digest), entry) in self.keys.iter() {
            live += entry.live;
            match &entry.outcome {
                KeyOutcome::Waiting(ticket) => {
                    ensure(self.waits.contains_key(ticket), || format!("{digest:?} waits for nothing"))?;
                }
                KeyOutcome::Spent(_) => {
                    ensure(entry.forget_at.is_some(), || format!("{digest:?} is kept for ever"))?;
                }
                KeyOutcome::Leases(leases) => {
                    let counted = leases.iter().filter(|fence| keyed.contains(fence)).count();
                    ensure(counted == entry.live, || format!("{digest:?} counts its leases wrongly"))?;
                    ensure((counted == 0) == entry.forget_at.is_some(), || {
                        format!("{digest:?} is kept for ever or too short")
                    })?;
                }
            }
        }
        ensure(live == keyed.len(), || "keys and leases with a key differ in count".into())?;
        ensure(self.keys.is_in_order(), || "keys are not queued to be forgotten as they say".into())
    }
}

/// States what must hold, and what to say if it does not.
pub(crate) fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}
