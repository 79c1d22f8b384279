//! A decision in the making: what the state would be after the events so far.
//!
//! Deciding must not change the state, yet one decision may take several steps: an expiry lets a waiter
//! in, and who came now stands behind it. So the decision remembers what it has ended and issued, and
//! answers every question as if that had been applied.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::lease_request::LeaseRequest;
use crate::authority::Authority;
use crate::kernel::api_decisions::{self, ApiDecisions};
use crate::kernel::command::Command;
use crate::kernel::event::{Event, IssuedLease, LeaseTerms, RevocationCause, WaitEnd};
use crate::kernel::outcome::{CommandOutcome, Decision, Rejection};
use crate::kernel::state::{KernelState, LeaseEntry, QueueEntry, Slot};
use crate::lease::ReleaseReason;
use crate::rules::is_expired;
use crate::rules::overlap::overlaps;
use crate::value::{Fence, Holder, IdempotencyKey, LeaseMode, ModeSet, Principal, Resource, Tick, Ticket};

/// With so many leases granted, a decision lets in no more waiters. One decision is one part of a batch, and a batch
/// must not grow beyond what can be signed and written at once.
const MAX_GRANTS_PER_DECISION: usize = 512;

/// With so many bytes of names granted, neither, for the same reason.
const MAX_GRANTED_BYTES_PER_DECISION: usize = 1 << 20;

/// The state, and what this decision adds to it.
pub(crate) struct DecisionBuilder<'a> {
    pub(crate) state: &'a KernelState,
    pub(crate) now: Tick,
    events: Vec<Event>,
    last_fence: Fence,
    /// Leases of the state that end in this decision. A set: a sweep ends a thousand, and asks of each.
    pub(in crate::kernel) ended_leases: BTreeSet<Fence>,
    /// Waiters of the queue that leave it in this decision, served or not.
    pub(in crate::kernel) ended_waiters: BTreeSet<Ticket>,
    grant_indices: Vec<usize>,
    /// How long the names of what is granted are.
    granted_bytes: usize,
    /// Resources on which something ended and somebody waits, who may have its turn. A set: a thousand readers of
    /// one resource may end together.
    pub(in crate::kernel) affected_queues: BTreeSet<Slot>,
    /// Somebody's turn came for whom there was no room any more.
    pub(in crate::kernel) has_more_waiters: bool,
    /// What the other APIs add. The lease part reaches it through the functions of [`api_decisions`] alone.
    pub(in crate::kernel) apis: ApiDecisions,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocker<'a> {
    pub(crate) holder: &'a Holder,
    /// When its lease, or its wait, is over.
    pub(crate) until: Tick,
}

impl<'a> DecisionBuilder<'a> {
    /// An empty decision. A request that was stamped before the newest event is decided at that event's tick.
    pub(crate) fn new(state: &'a KernelState, command: &Command, now: Tick) -> Self {
        Self {
            state,
            now: now.max(state.now()),
            events: Vec::new(),
            last_fence: state.last_fence(),
            ended_leases: BTreeSet::new(),
            ended_waiters: BTreeSet::new(),
            grant_indices: Vec::new(),
            granted_bytes: 0,
            affected_queues: BTreeSet::new(),
            has_more_waiters: false,
            apis: ApiDecisions::new(state, command),
        }
    }

    /// The decision, with everybody let in whose turn has come.
    pub(crate) fn finish(mut self, answer: Result<CommandOutcome, Rejection>) -> Decision {
        self.serve_affected();
        let answer = answer.unwrap_or_else(CommandOutcome::Rejected);
        Decision { events: self.events, outcome: answer, has_more_waiters: self.has_more_waiters }
    }

    /// Serves what the ends so far leave free, those first that come before the queue.
    fn serve_affected(&mut self) {
        api_decisions::serve_before_queue(self);
        self.serve_waiters();
    }

    pub(in crate::kernel) fn events(&self) -> &[Event] {
        &self.events
    }

    /// Adds an event, and before it the ends of all that ends with what it ends. What ended already ends no second time.
    pub(crate) fn push(&mut self, event: Event) {
        if let Some(lease) = event.ended_lease() {
            if self.ended_leases.contains(&lease) {
                return;
            }
            api_decisions::end_dependents(self, lease);
        }
        self.events.push(event);
    }

    /// Adds an event that takes nothing along.
    pub(in crate::kernel) fn push_without_cascade(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Whether a lease of the state still lives, here and now.
    pub(crate) fn is_active(&self, lease: &LeaseEntry) -> bool {
        !is_expired(self.now.0, lease.terms.expires_at.0) && !self.ended_leases.contains(&lease.fence)
    }

    /// Whether somebody of the state still waits, here and now.
    pub(crate) fn is_waiting(&self, waiting: &QueueEntry) -> bool {
        !is_expired(self.now.0, waiting.queued.until.0)
            && !self.ended_waiters.contains(&waiting.queued.ticket)
    }

    /// Announces what is over on `resource` and on what overlaps it, and lets in whose turn that makes it.
    pub(crate) fn expire_and_serve(&mut self, resource: &Resource) {
        let state = self.state;
        let has_timed_out_waiters = state.timed_out_queue_entries(self.now).next().is_some();
        api_decisions::time_out_before_queue(self, resource);
        for slot in state.slots_overlapping(resource) {
            state.leases_on(slot).for_each(|lease| self.expire_if_due(lease));
            if has_timed_out_waiters {
                state.queue_on(slot).for_each(|waiting| self.time_out_if_due(waiting));
            }
        }
        self.serve_affected();
    }

    /// Announces at most `max` leases and waits that are over. Says whether there are more.
    pub(crate) fn sweep(&mut self, max: usize) -> bool {
        let state = self.state;
        let mut leases = state.expired_leases(self.now);
        leases.by_ref().take(max).for_each(|lease| self.expire_if_due(lease));
        let mut timed_out = state.timed_out_queue_entries(self.now);
        let remaining = max.saturating_sub(self.ended_leases.len());
        timed_out.by_ref().take(remaining).for_each(|waiting| self.time_out_if_due(waiting));
        let has_more = api_decisions::sweep(self, max);
        self.serve_affected();
        leases.next().is_some() || timed_out.next().is_some() || has_more
    }

    /// Ends a lease of the state by the registrar's word.
    pub(crate) fn revoke(
        &mut self,
        lease: &LeaseEntry,
        cause: RevocationCause,
        by: &Principal,
        detail: &str,
    ) {
        let (by, detail) = (by.clone(), detail.into());
        self.push(Event::Revoked { lease: lease.fence, at: self.now, cause, by, detail });
        self.mark_ended(lease);
    }

    /// Gives back a lease of the state in its holder's name.
    pub(crate) fn release(&mut self, lease: &LeaseEntry, reason: ReleaseReason) {
        let by = self.state.holder_name(lease.holder).to_stored_id();
        self.push(Event::Released { lease: lease.fence, at: self.now, by, reason });
        self.mark_ended(lease);
    }

    /// The answer to a question as if `lease` were not there.
    pub(crate) fn evaluate_without_lease<T>(
        &mut self,
        lease: &LeaseEntry,
        ask: impl FnOnce(&Self) -> T,
    ) -> T {
        self.ended_leases.insert(lease.fence);
        let answer = ask(self);
        self.ended_leases.remove(&lease.fence);
        answer
    }

    /// Notes that a lease of the state ended by an event that is already pushed.
    pub(crate) fn mark_ended(&mut self, lease: &LeaseEntry) {
        self.ended_leases.insert(lease.fence);
        api_decisions::record_end(self, lease);
        let state = self.state;
        self.mark_affected(Some(lease.resource), state.resource_name(lease.resource));
    }

    /// Ends a wait with nothing.
    pub(crate) fn end_wait(&mut self, waiting: &QueueEntry, end: WaitEnd) {
        self.push(Event::Left { ticket: waiting.queued.ticket, at: self.now, end });
        self.mark_wait_ended(waiting);
    }

    /// Grants. Whatever is over on the resource is announced first, because a ledger never holds two
    /// leases that do not go together, not even when one of them is over.
    pub(crate) fn issue_lease(&mut self, grant: Grant<'_>) -> Result<Fence, Rejection> {
        let expires_at = self.now.checked_add(grant.request.ttl).ok_or(Rejection::Exhausted)?;
        let fence = self.last_fence.next().ok_or(Rejection::Exhausted)?;
        let state = self.state;
        // Nearly always nothing is, and then nobody need be looked at: below a folder there may be many.
        if state.expired_leases(self.now).next().is_some() {
            state.leases_overlapping(grant.resource).for_each(|lease| self.expire_if_due(lease));
        }
        self.last_fence = fence;
        self.grant_indices.push(self.events.len());
        self.granted_bytes += grant.resource.as_str().len() + grant.holder.as_str().len();
        api_decisions::record_change(self, grant.resource);
        self.push(Event::Issued(IssuedLease {
            fence,
            resource: grant.resource.clone(),
            holder: grant.holder.clone(),
            principal: grant.principal.clone(),
            terms: LeaseTerms {
                mode: grant.request.mode,
                issued_at: self.now,
                expires_at,
                ttl: grant.request.ttl,
                renewals: 0,
                nonce: grant.request.nonce,
                labels: grant.request.labels.clone(),
            },
            key: grant.key,
            ticket: grant.ticket,
            continues: grant.continues,
            authority: grant.authority.cloned(),
        }));
        Ok(fence)
    }

    /// How many grants are still possible, after those of this decision.
    pub(crate) fn remaining_fences(&self) -> u64 {
        Fence::MAX.0 - self.last_fence.0
    }

    /// What is in the way of one who wants `resource` like this: leases that do not go with it, and waiters before
    /// `place` that would not, so that many readers cannot keep one writer out for ever.
    ///
    /// Whoever waits for any one of several resources is in the way on each of them: first come, first served.
    pub(crate) fn blockers<'b>(
        &'b self,
        resource: &'b Resource,
        mode: LeaseMode,
        place: QueuePosition,
    ) -> impl Iterator<Item = Blocker<'b>> {
        let slot = self.state.find_resource(resource);
        let around = self.state.slots_overlapping_at(slot, resource);
        let leases = around.flat_map(|slot| self.state.leases_on(slot));
        let leases =
            leases.filter(move |lease| !lease.terms.mode.is_compatible(mode) && self.is_active(lease));
        let leases = leases.map(|lease| (self.state.holder_name(lease.holder), lease.terms.expires_at));
        let granted = self
            .issued_leases_overlapping(resource)
            .filter(move |issued| !issued.terms.mode.is_compatible(mode));
        let granted = granted.map(|issued| (&issued.holder, issued.terms.expires_at));
        let held = leases.chain(granted).map(|(holder, until)| Blocker { holder, until });

        let conflicting = ModeSet::conflicting_with(mode);
        let queue = self.state.slots_overlapping_at(slot, resource).flat_map(move |slot| {
            let queue = self.state.queue_on(slot);
            let before = queue.take_while(move |waiting| place.is_after(waiting.queued.ticket));
            before.filter(move |waiting| {
                waiting.modes_on(slot).intersects(conflicting) && self.is_waiting(waiting)
            })
        });
        let queue =
            queue.map(|waiting| Blocker { holder: &waiting.queued.holder, until: waiting.queued.until });
        held.chain(queue).chain(api_decisions::blockers_before_queue(self, resource, mode))
    }

    pub(crate) fn is_queued(&self, holder: &Holder) -> bool {
        let slot = self.state.find_holder(holder);
        slot.into_iter()
            .flat_map(|slot| self.state.queue_entries_of(slot))
            .any(|waiting| self.is_waiting(waiting))
    }

    pub(crate) fn waiter_count(&self, resource: &Resource) -> usize {
        let slot = self.state.find_resource(resource);
        slot.map_or(0, |slot| self.state.queue_on(slot).filter(|waiting| self.is_waiting(waiting)).count())
    }

    /// What a holder has, here and now, oldest first.
    pub(crate) fn active_leases_of(&self, holder: &Holder) -> Vec<&'a LeaseEntry> {
        let state = self.state;
        let slot: Option<Slot> = state.find_holder(holder);
        let leases = slot.into_iter().flat_map(|slot| state.leases_of(slot));
        let mut living: Vec<_> = leases.filter(|lease| self.is_active(lease)).collect();
        // Where they lie in memory must not show in the ledger.
        living.sort_unstable_by_key(|lease| lease.fence);
        living
    }

    /// On what a lease is, and when it is over, with what this decision has given it.
    pub(crate) fn expiry_and_resource_of(&self, fence: Fence) -> Option<(Tick, &Resource)> {
        let renewed = self.events().iter().rev().find_map(|event| match event {
            Event::Renewed { lease, expires_at, .. } if *lease == fence => Some(*expires_at),
            _ => None,
        });
        let issued = self.issued_leases().find(|issued| issued.fence == fence);
        if let Some(issued) = issued {
            return Some((issued.terms.expires_at, &issued.resource));
        }
        let lease = self.state.find_lease(fence)?;
        Some((renewed.unwrap_or(lease.terms.expires_at), self.state.resource_name(lease.resource)))
    }

    pub(crate) fn expire_leases_of(&mut self, holder: &Holder) {
        let Some(slot) = self.state.find_holder(holder) else { return };
        let mut leases: Vec<_> = self.state.leases_of(slot).collect();
        leases.sort_unstable_by_key(|lease| lease.fence);
        leases.into_iter().for_each(|lease| self.expire_if_due(lease));
    }

    /// Whether a lease may last until then.
    pub(crate) fn can_last_until(&self, lease: &LeaseEntry, expires_at: Tick) -> bool {
        api_decisions::latest_expiry(self, lease).is_none_or(|end| expires_at <= end)
    }

    pub(in crate::kernel) fn expire_if_due(&mut self, lease: &LeaseEntry) {
        if is_expired(self.now.0, lease.terms.expires_at.0) && !self.ended_leases.contains(&lease.fence) {
            self.push(Event::Expired { lease: lease.fence, at: self.now });
            self.mark_ended(lease);
        }
    }

    /// Announces that a wait is over, if it is.
    pub(crate) fn time_out_if_due(&mut self, waiting: &QueueEntry) {
        let queued = &waiting.queued;
        if is_expired(self.now.0, queued.until.0) && !self.ended_waiters.contains(&queued.ticket) {
            self.end_wait(waiting, WaitEnd::TimedOut);
        }
    }

    /// Whether so much is granted already that whoever else could be let in has to wait for the next decision.
    pub(in crate::kernel) fn is_full(&self) -> bool {
        self.grant_indices.len() >= MAX_GRANTS_PER_DECISION
            || self.granted_bytes >= MAX_GRANTED_BYTES_PER_DECISION
    }

    pub(in crate::kernel) fn mark_wait_ended(&mut self, waiting: &QueueEntry) {
        self.ended_waiters.insert(waiting.queued.ticket);
        let state = self.state;
        waiting.resources().for_each(|slot| self.mark_affected(Some(slot), state.resource_name(slot)));
    }

    pub(in crate::kernel) fn issued_leases(&self) -> impl Iterator<Item = &IssuedLease> {
        self.grant_indices.iter().filter_map(|index| match &self.events[*index] {
            Event::Issued(issued) => Some(issued),
            _ => None,
        })
    }

    /// Notes that something ended on a resource: whoever waits for it, or for what overlaps it, may have its turn.
    pub(in crate::kernel) fn mark_affected(&mut self, slot: Option<Slot>, resource: &Resource) {
        api_decisions::record_change(self, resource);
        let state = self.state;
        let around = state.slots_overlapping_at(slot, resource);
        self.affected_queues.extend(around.filter(|slot| state.has_queue(*slot)));
    }

    /// What this decision has granted so far that overlaps `resource`, or is on it.
    pub(crate) fn issued_leases_overlapping(
        &self,
        resource: &Resource,
    ) -> impl Iterator<Item = &IssuedLease> {
        self.issued_leases().filter(move |issued| overlaps(issued.resource.as_str(), resource.as_str()))
    }

    pub(crate) fn issued_leases_on(&self, resource: &Resource) -> impl Iterator<Item = &IssuedLease> {
        self.issued_leases().filter(move |issued| issued.resource == *resource)
    }
}

/// From where in the queue a request is seen.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct QueuePosition {
    /// Only waiters with a smaller ticket count; `None`: it comes after everybody.
    pub(crate) before: Option<Ticket>,
}

impl QueuePosition {
    /// Whether whoever is before `other` is before this one too.
    pub(crate) fn is_at_or_after(self, other: QueuePosition) -> bool {
        self.before.is_none_or(|own| other.before.is_some_and(|ticket| ticket <= own))
    }

    /// Whether the wait with this ticket comes first.
    pub(crate) fn is_after(self, ticket: Ticket) -> bool {
        self.before.is_none_or(|own| ticket < own)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Grant<'a> {
    pub(crate) holder: &'a Holder,
    pub(crate) principal: &'a Principal,
    pub(crate) request: &'a LeaseRequest,
    /// Which of the lease request's resources.
    pub(crate) resource: &'a Resource,
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) ticket: Option<Ticket>,
    pub(crate) continues: Option<Fence>,
    /// What its holder may do, if it is a lease on work that says so.
    pub(crate) authority: Option<&'a Arc<Authority>>,
}

impl<'a> Grant<'a> {
    /// The grant of a request's first resource, to a caller that did not wait.
    pub(crate) fn new(holder: &'a Holder, principal: &'a Principal, request: &'a LeaseRequest) -> Self {
        let resource = &request.resource;
        let (key, ticket, continues, authority) = (None, None, None, None);
        Self { holder, principal, request, resource, key, ticket, continues, authority }
    }
}
