//! Records what happened. The one place where the state changes.

use thiserror::Error;

use super::entry::{
    HolderIdleSince, HolderLeases, KnownHolder, LeaseEntry, PrincipalEntry, QueueEntry, ResourceEntry,
    SmallList,
};
use super::name_table::NameLookup;
use super::retention::EndedLease;
use super::{ClockAnchor, ClockState, KernelState, Slot};
use crate::kernel::agent::AgentWait;
use crate::kernel::event::{ClockReading, Event, IssuedLease, QueuedAcquire};
use crate::kernel::file::{FILES_PRINCIPAL, FileSession, RetryTicket};
use crate::kernel::lease::lease_request::{LeaseRequest, can_be_assigned};
use crate::kernel::outcome::LeaseEnd;
use crate::kernel::work::WorkLease;
use crate::rules::{extends, has_duration, is_expired, is_stored_as};
use crate::value::{
    Fence, HOLDER_RETENTION, Holder, MAX_IDLE_HOLDERS, Principal, Resource, Tick, TickDuration, Ticket,
};

/// An event that cannot follow those before it. The ledger was not written by this kernel, or is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the event does not follow from those before it: {0}")]
pub struct ApplyError(pub &'static str);

/// What an event removed from the state. Observers run after an event is applied, and need it to show the event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removed {
    QueueTicket(Box<QueuedAcquire>),
    AgentWait(Box<AgentWait>),
    RetryTicket(Box<RetryTicket>),
    FileSession(Box<FileSession>),
}

impl KernelState {
    /// Records `event`.
    ///
    /// Whatever [`decide`](crate::kernel::decide) produced in this state is accepted. An event that cannot
    /// follow is refused and changes nothing, so that a damaged ledger is found instead of believed.
    pub fn apply(&mut self, event: &Event) -> Result<(), ApplyError> {
        self.apply_and_take(event).map(drop)
    }

    /// Records `event`, and returns what it removed unless the state still has it in another table.
    pub fn apply_and_take(&mut self, event: &Event) -> Result<Option<Removed>, ApplyError> {
        ensure(event.occurred_at() >= self.now, "its tick is before the last one")?;
        self.check_work_event(event)?;
        let mut removed = None;
        match event {
            Event::Issued(issued) => self.apply_issued(issued)?,
            Event::Renewed { lease, at, expires_at, ttl } => {
                self.apply_renewed(*lease, *at, *expires_at, *ttl)?
            }
            Event::Released { lease, at, by, reason } => {
                let slot = self.find_active_slot(*lease, *at)?;
                let holder = self.leases.get(slot).holder;
                let own = is_stored_as(self.holder_name(holder).as_str(), by.as_str());
                ensure(own, "it releases somebody else's lease")?;
                self.end_lease(slot, *at, LeaseEnd::Released(*reason));
            }
            Event::Expired { lease, at } => {
                let slot = self.find_slot(*lease)?;
                ensure(
                    is_expired(at.0, self.leases.get(slot).terms.expires_at.0),
                    "it ends a lease too early",
                )?;
                self.end_lease(slot, *at, LeaseEnd::Expired);
            }
            Event::Revoked { lease, at, cause, .. } => {
                let slot = self.find_active_slot(*lease, *at)?;
                self.end_lease(slot, *at, LeaseEnd::Revoked(*cause));
            }
            Event::Queued(queued) => self.apply_queued(queued)?,
            Event::File(event) => removed = self.apply_file(event)?,
            Event::Intent(event) => self.apply_intent(event)?,
            Event::Agent(event) => removed = self.apply_agent(event)?,
            Event::Work(event) => self.apply_work(event)?,
            Event::Left { ticket, at, .. } => {
                let waiting = self
                    .remove_queue_entry(*ticket, *at)
                    .ok_or(ApplyError("it ends a wait that is not there"))?;
                if let Some(key) = waiting.queued.key {
                    self.keys.remove_queued(self.holders.get(waiting.holder).principal, key);
                }
                removed = Some(Removed::QueueTicket(Box::new(waiting.queued)));
            }
            Event::Marked { at, reading } => {
                let clock =
                    self.clock.as_mut().ok_or(ApplyError("it marks the time before any writer started"))?;
                clock.tick = *at;
                clock.reading = reading.clone();
            }
            Event::Resumed { at, reading, wall_anchor, .. } => {
                self.apply_resumed(*at, reading, *wall_anchor)?
            }
            Event::Restored { at, fence, hold_until, .. } => {
                ensure(*fence >= self.last_fence && *fence <= Fence::MAX, "it takes fences back")?;
                ensure(hold_until >= at, "it holds grants back until before it happened")?;
                self.last_fence = *fence;
                self.restore_hold = Some(*hold_until);
            }
        }
        self.now = event.occurred_at();
        self.forget();
        Ok(removed)
    }

    fn apply_issued(&mut self, issued: &IssuedLease) -> Result<(), ApplyError> {
        let terms = &issued.terms;
        ensure(issued.fence > self.last_fence && issued.fence <= Fence::MAX, "its fence was used before")?;
        ensure(
            has_duration(terms.issued_at.0, terms.expires_at.0) && terms.ttl > TickDuration(0),
            "it grants no time",
        )?;
        ensure(terms.renewals == 0, "it is renewed already")?;
        ensure(issued.ticket.is_none_or(|ticket| ticket <= self.last_ticket), "its ticket was never drawn")?;
        let holder = self.holders.look_up(issued.holder.as_str());
        let own = self.can_use_holder_at(holder.slot(), &issued.principal, terms.issued_at)
            && self.can_use_agent_name(&issued.holder, &issued.principal);
        ensure(own, "its holder is somebody else's")?;
        self.check_intent_session_lease_issued(issued)?;
        self.check_file_lease_issued(issued)?;
        let mut resource = self.resources.look_up(issued.resource.as_str());
        if let Some(resource) = resource.slot() {
            let fits = self.leases_on(resource).all(|lease| lease.terms.mode.is_compatible(terms.mode));
            ensure(fits, "its resource is held")?;
        }
        let fits_beside = |lease: &LeaseEntry| {
            lease.terms.mode.is_compatible(terms.mode) || holder.slot() == Some(lease.holder)
        };
        let fits = self
            .overlaps
            .overlapping(&issued.resource)
            .flat_map(|(_, slot)| self.leases_on(slot))
            .all(fits_beside);
        ensure(fits, "what overlaps its resource is held")?;
        if let Some(waiting) = issued.ticket.and_then(|ticket| self.queue_entry(ticket)) {
            let queued = &waiting.queued;
            let own = queued.holder == issued.holder && queued.key == issued.key;
            ensure(own, "its ticket is somebody else's")?;
            ensure(!is_expired(terms.issued_at.0, queued.until.0), "its ticket was over")?;
            let is_requested =
                resource.slot().is_some_and(|slot| waiting.modes_on(slot).contains(terms.mode));
            ensure(is_requested, "its ticket is for something else")?;
        }
        if let Some(key) = issued.key
            && let Some(principal) = self.find_principal(&issued.principal)
        {
            let free = self.keys.can_issue(principal, key, issued.ticket, terms.issued_at);
            ensure(free, "its key was used for something else")?;
        }

        if let Some(ticket) = issued.ticket {
            self.remove_queue_entry(ticket, terms.issued_at);
            // Perhaps nobody else waited for it.
            resource = self.resources.look_up(issued.resource.as_str());
        }
        let holder = self.intern_holder(holder, &issued.holder, &issued.principal);
        let resource = self.intern_resource(resource, &issued.resource);
        let principal = self.insert_lease(LeaseEntry {
            fence: issued.fence,
            terms: terms.clone(),
            key: issued.key.map(Box::new),
            resource,
            holder,
            holder_index: 0,
        });
        self.expiries.insert((terms.expires_at, issued.fence));
        if issued.principal.as_str() == FILES_PRINCIPAL {
            self.record_uncommitted_transfer(issued);
        }
        self.last_fence = issued.fence;
        if let Some(key) = issued.key {
            self.keys.record_issued(principal, key, issued.fence);
        }
        if let Some(authority) = &issued.authority {
            self.insert_work_lease(issued.fence, WorkLease::new(authority.clone()), true);
        }
        if !self.agents.is_empty() {
            self.record_agent_grant(
                &issued.holder,
                (issued.fence, terms.mode),
                issued.ticket,
                terms.issued_at,
            );
        }
        Ok(())
    }

    fn apply_renewed(
        &mut self,
        lease: Fence,
        at: Tick,
        expires_at: Tick,
        ttl: TickDuration,
    ) -> Result<(), ApplyError> {
        let slot = self.find_active_slot(lease, at)?;
        let entry = self.leases.get_mut(slot);
        let gives_time = extends(entry.terms.expires_at.0, expires_at.0) && ttl > TickDuration(0);
        ensure(gives_time, "it renews without giving time")?;
        let before = std::mem::replace(&mut entry.terms.expires_at, expires_at);
        let length = std::mem::replace(&mut entry.terms.ttl, ttl);
        entry.terms.renewals = entry.terms.renewals.saturating_add(1);
        self.ttl_histogram.remove(length);
        self.ttl_histogram.add(ttl);
        self.expiries.remove((before, lease));
        self.expiries.insert((expires_at, lease));
        Ok(())
    }

    fn apply_queued(&mut self, queued: &QueuedAcquire) -> Result<(), ApplyError> {
        ensure(queued.ticket > self.last_ticket, "its ticket was drawn before")?;
        ensure(has_duration(queued.at.0, queued.until.0), "it waits no time")?;
        ensure(!queued.requests.is_empty(), "it waits for nothing")?;
        ensure(can_be_assigned(&queued.requests), "it waits for one resource twice")?;
        let last = |request: &LeaseRequest| request.ttl > TickDuration(0);
        ensure(queued.requests.iter().all(last), "it waits for a lease of no time")?;
        let holder = self.holders.look_up(queued.holder.as_str());
        let own = self.can_use_holder_at(holder.slot(), &queued.principal, queued.at)
            && self.can_use_agent_name(&queued.holder, &queued.principal);
        ensure(own, "its holder is somebody else's")?;
        self.check_not_an_intent_session(&queued.holder)?;
        self.check_not_a_file_session(&queued.holder)?;
        if let Some(key) = queued.key
            && let Some(principal) = self.find_principal(&queued.principal)
        {
            let free = self.keys.get(principal, key.key, queued.at).is_none();
            ensure(free, "its key was used for something else")?;
        }

        let holder = self.intern_holder(holder, &queued.holder, &queued.principal);
        let each = queued
            .requests
            .iter()
            .flat_map(|request| request.resources().map(|resource| (resource, request.mode)));
        let mut intern =
            |resource: &Resource| self.intern_resource(self.resources.look_up(resource.as_str()), resource);
        let resources: Vec<_> = each.map(|(resource, mode)| (intern(resource), mode)).collect();
        let principal = self.insert_queue_entry(queued.clone(), holder, resources);
        if let Some(key) = queued.key {
            self.keys.record_queued(principal, key, queued.ticket);
        }
        self.last_ticket = queued.ticket;
        Ok(())
    }

    fn apply_resumed(&mut self, at: Tick, reading: &ClockReading, wall: u64) -> Result<(), ApplyError> {
        let before = self.clock.as_ref().map_or(0, |clock| clock.anchor.wall_time_of(at));
        ensure(wall >= before, "it sets wall time back")?;
        self.clock =
            Some(ClockState { tick: at, reading: reading.clone(), anchor: ClockAnchor { tick: at, wall } });
        Ok(())
    }

    fn find_slot(&self, lease: Fence) -> Result<Slot, ApplyError> {
        self.by_fence.get(lease).ok_or(ApplyError("there is no such lease"))
    }

    /// A lease that still had time at `at`: only those can be renewed, given back or taken away.
    fn find_active_slot(&self, lease: Fence, at: Tick) -> Result<Slot, ApplyError> {
        let slot = self.find_slot(lease)?;
        ensure(!is_expired(at.0, self.leases.get(slot).terms.expires_at.0), "the lease was over")?;
        Ok(slot)
    }

    fn end_lease(&mut self, slot: Slot, at: Tick, end: LeaseEnd) {
        let lease = self.leases.remove(slot);
        let expires_at = lease.terms.expires_at;
        let work = self.remove_work_lease(lease.fence);
        self.ttl_histogram.remove(lease.terms.ttl);
        self.by_fence.remove(lease.fence);
        self.expiries.remove((expires_at, lease.fence));
        let holder = self.holders.get_mut(lease.holder);
        if let Some(moved) = holder.leases.swap_remove(lease.holder_index as usize) {
            self.leases.get_mut(moved).holder_index = lease.holder_index;
        }
        let principal = self.principals.get_mut(holder.principal);
        principal.leases -= 1;
        if let Some(key) = &lease.key {
            self.keys.record_ended(holder.principal, **key, at);
        }
        let resource = self.resources.get_mut(lease.resource);
        resource.leases.remove(slot);
        let (resource, holder) = (resource.name.clone(), holder.name.clone());
        if principal.name.as_str() == FILES_PRINCIPAL {
            self.files.record_lease_end(&resource, &holder, at, end);
        }
        self.ended_leases.add(EndedLease {
            fence: lease.fence,
            resource,
            holder,
            principal: principal.name.clone(),
            terms: lease.terms,
            ended_at: at,
            end,
            work_lease: work,
        });
        self.drop_resource_if_unused(lease.resource);
        self.mark_holder_idle_if_unused(lease.holder, at);
        if !self.agents.is_empty() {
            // What was over before anybody said so was held until it was over.
            self.record_agent_loss(lease.fence, lease.holder, at.min(expires_at));
        }
    }

    fn remove_queue_entry(&mut self, ticket: Ticket, at: Tick) -> Option<QueueEntry> {
        let waiting = self.queue_entries.remove(&ticket)?;
        self.queue_deadlines.remove(&(waiting.queued.until, ticket));
        let holder = self.holders.get_mut(waiting.holder);
        holder.tickets.remove(&ticket);
        let counts = self.principals.get_mut(holder.principal);
        counts.queue_entry_count -= 1;
        counts.requested_leases -= waiting.queued.requests.len();
        for resource in waiting.resources() {
            self.resources.get_mut(resource).queue.remove(ticket);
        }
        for resource in waiting.resources() {
            self.drop_resource_if_unused(resource);
        }
        self.mark_holder_idle_if_unused(waiting.holder, at);
        Some(waiting)
    }

    fn intern_resource(&mut self, spot: NameLookup, name: &Resource) -> Slot {
        let new_entry =
            || ResourceEntry { name: name.clone(), leases: SmallList::None, queue: Default::default() };
        let slot = self.resources.get_or_insert(spot, new_entry);
        if spot.slot().is_none() {
            self.overlaps.insert(name, slot);
        }
        slot
    }

    fn drop_resource_if_unused(&mut self, slot: Slot) {
        let entry = self.resources.get(slot);
        if entry.queue.is_empty() && entry.leases.as_slice().is_empty() {
            let entry = self.resources.remove(slot);
            self.overlaps.remove(&entry.name);
        }
    }

    /// The holder's entry, which belongs to `principal` from now on.
    fn intern_holder(&mut self, spot: NameLookup, name: &Holder, principal: &Principal) -> Slot {
        let before = spot.slot().map(|slot| self.holders.get(slot).principal);
        // Nearly always it belonged to the same before, who need not be looked for then.
        let same = before.filter(|before| self.principals.get(*before).name == *principal);
        let principal = same.unwrap_or_else(|| {
            let new_entry = || PrincipalEntry {
                name: principal.clone(),
                leases: 0,
                requested_leases: 0,
                queue_entry_count: 0,
            };
            self.principals.get_or_insert(self.principals.look_up(principal.as_str()), new_entry)
        });
        let slot = self.holders.get_or_insert(spot, || KnownHolder {
            name: name.clone(),
            principal,
            leases: HolderLeases::default(),
            tickets: Default::default(),
            idle: None,
        });
        let entry = self.holders.get_mut(slot);
        entry.principal = principal;
        if let Some(rest) = entry.idle.take() {
            self.idle_holders.remove(&rest.number);
        }
        slot
    }

    fn mark_holder_idle_if_unused(&mut self, slot: Slot, at: Tick) {
        let entry = self.holders.get_mut(slot);
        if entry.leases.is_empty() && entry.tickets.is_empty() {
            self.last_idle_number += 1;
            let rest = HolderIdleSince { since: at, number: self.last_idle_number };
            entry.idle = Some(rest);
            // It may have held a million.
            entry.leases = HolderLeases::default();
            self.idle_holders.insert(rest.number, slot);
        }
    }

    /// Drops what need not be remembered any longer. Driven by the ticks of events alone, so that a replay
    /// forgets exactly what the writer forgot.
    fn forget(&mut self) {
        self.keys.forget(self.now);
        self.ended_leases.forget(self.now);
        self.forget_intent_sessions();
        self.forget_agents();
        while let Some((number, slot)) =
            self.idle_holders.first_key_value().map(|(number, slot)| (*number, *slot))
        {
            let rest = self.holders.get(slot).idle;
            let kept = rest
                .is_some_and(|rest| !is_expired(self.now.0, rest.since.saturating_add(HOLDER_RETENTION).0));
            if kept && self.idle_holders.len() <= MAX_IDLE_HOLDERS {
                break;
            }
            self.idle_holders.remove(&number);
            self.holders.remove(slot);
        }
    }
}

pub(in crate::kernel) fn ensure(holds: bool, otherwise: &'static str) -> Result<(), ApplyError> {
    if holds { Ok(()) } else { Err(ApplyError(otherwise)) }
}
