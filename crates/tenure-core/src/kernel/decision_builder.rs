//! A decision in the making: what the state would be after the events so far.
//!
//! Deciding must not change the state, yet one decision may take several steps: an expiry lets a waiter
//! in, and who came now stands behind it. So the decision remembers what it has ended and issued, and
//! answers every question as if that had been applied.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::agent::{AgentRank, AgentWait};
use super::event::{Event, IssuedLease, RevocationCause, WaitEnd};
use super::intent::IntentSessionEnd;
use super::lease_request::{LeaseRequest, drop_covered_requests};
use super::mode::{LeaseMode, ModeSet};
use super::name::{Holder, Principal, Resource};
use super::newtypes::{Fence, IdempotencyKey, Tick, Ticket};
use super::outcome::{CommandOutcome, Decision, Rejection};
use super::state::{KernelState, LeaseEntry, QueueEntry, Slot};
use crate::authority::Authority;
use crate::lease::ReleaseReason;
use crate::rules::overlap::{is_hierarchical, overlaps};
use crate::rules::time::is_expired;

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
    ended_leases: BTreeSet<Fence>,
    /// Waits of the state that end in this decision, served or not.
    ended_waiters: BTreeSet<Ticket>,
    grant_indices: Vec<usize>,
    /// How long the names of what is granted are.
    granted_bytes: usize,
    /// Resources on which something ended and somebody waits, who may have its turn. A set: a thousand readers of
    /// one resource may end together.
    pub(super) affected_queues: BTreeSet<Slot>,
    /// On these something changed that agents who wait may get on by, or die of.
    pub(super) affected_for_agents: BTreeSet<Resource>,
    /// A wait of an agent that begins in this decision.
    pub(super) new_agent_wait: Option<AgentWait>,
    /// An attempt that begins in this decision.
    pub(super) new_attempt: Option<AgentRank>,
    /// To whom the agent belongs that asks.
    pub(super) declaring_principal: Option<Principal>,
    /// Waits of agents whose turn came in this decision, and what they got.
    pub(super) served_agent_tickets: Vec<(Ticket, Vec<Fence>)>,
    /// Agents that die in this decision, when they may come back, and what is over of theirs.
    pub(super) aborted_agents: BTreeMap<Holder, (Tick, Vec<Fence>)>,
    /// Sessions of the state that end in this decision, and how.
    pub(super) ended_sessions: BTreeMap<Holder, IntentSessionEnd>,
    /// Holders of which a lease ended that may be a session's. By their names: how they lie in memory must not show in
    /// the ledger.
    pub(super) orphaned_sessions: BTreeSet<Holder>,
    /// Somebody's turn came for whom there was no room any more.
    pub(super) has_more_waiters: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocker<'a> {
    pub(crate) holder: &'a Holder,
    /// When its lease, or its wait, is over.
    pub(crate) until: Tick,
}

impl<'a> DecisionBuilder<'a> {
    /// An empty decision. A request that was stamped before the newest event is decided at that event's tick.
    pub(crate) fn new(state: &'a KernelState, now: Tick) -> Self {
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
            affected_for_agents: BTreeSet::new(),
            new_agent_wait: None,
            new_attempt: None,
            declaring_principal: None,
            served_agent_tickets: Vec::new(),
            aborted_agents: BTreeMap::new(),
            ended_sessions: BTreeMap::new(),
            orphaned_sessions: BTreeSet::new(),
            has_more_waiters: false,
        }
    }

    /// The decision, with everybody let in whose turn has come.
    pub(crate) fn finish(mut self, answer: Result<CommandOutcome, Rejection>) -> Decision {
        self.end_orphaned_sessions();
        self.serve_agents_and_waiters();
        let answer = answer.unwrap_or_else(CommandOutcome::Rejected);
        Decision { events: self.events, outcome: answer, has_more_waiters: self.has_more_waiters }
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
            self.end_derived_leases(lease);
        }
        self.events.push(event);
    }

    /// Adds an event that takes nothing along.
    pub(super) fn push_without_cascade(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Whether a lease of the state ends in this decision.
    pub(super) fn has_ended(&self, lease: Fence) -> bool {
        self.ended_leases.contains(&lease)
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
        if state.has_waiting_agents() && is_hierarchical(resource.as_str()) {
            self.time_out_waiting_agents(usize::MAX);
        }
        for slot in state.slots_overlapping(resource) {
            state.leases_on(slot).for_each(|lease| self.expire_if_due(lease));
            if has_timed_out_waiters {
                state.queue_on(slot).for_each(|waiting| self.time_out_if_due(waiting));
            }
        }
        self.end_orphaned_sessions();
        self.serve_agents_and_waiters();
    }

    /// Announces at most `max` leases and waits that are over. Says whether there are more.
    pub(crate) fn sweep(&mut self, max: usize) -> bool {
        let state = self.state;
        let mut leases = state.expired_leases(self.now);
        leases.by_ref().take(max).for_each(|lease| self.expire_if_due(lease));
        let mut timed_out = state.timed_out_queue_entries(self.now);
        let remaining = max.saturating_sub(self.ended_leases.len());
        timed_out.by_ref().take(remaining).for_each(|waiting| self.time_out_if_due(waiting));
        let has_more_sessions = self
            .sweep_intent_sessions(max.saturating_sub(self.ended_leases.len() + self.ended_waiters.len()));
        let has_more_agents = self.enforce_agent_limits(max);
        self.end_orphaned_sessions();
        self.serve_agents_and_waiters();
        leases.next().is_some() || timed_out.next().is_some() || has_more_sessions || has_more_agents
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
        self.record_lost_lease(lease);
        self.mark_affected(lease.resource);
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
        self.mark_affected_for_agents(grant.resource);
        self.push(Event::Issued(IssuedLease {
            fence,
            resource: grant.resource.clone(),
            holder: grant.holder.clone(),
            principal: grant.principal.clone(),
            mode: grant.request.mode,
            at: self.now,
            expires_at,
            ttl: grant.request.ttl,
            nonce: grant.request.nonce,
            labels: grant.request.labels.clone(),
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
        let granted =
            self.grants_overlapping(resource).filter(move |issued| !issued.mode.is_compatible(mode));
        let granted = granted.map(|issued| (&issued.holder, issued.expires_at));
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
        // Agents come before everybody who has no age.
        let agents = self.waiting_agents_conflicting(resource, mode);
        held.chain(queue)
            .chain(agents.map(|pending| Blocker { holder: &pending.rank.agent, until: pending.until }))
    }

    pub(crate) fn waiter_count(&self, resource: &Resource) -> usize {
        let slot = self.state.find_resource(resource);
        slot.map_or(0, |slot| self.state.queue_on(slot).filter(|waiting| self.is_waiting(waiting)).count())
    }

    /// Whether a principal has or waits for more than `max_leases` leases, or has more than `max_waiters` waiters.
    ///
    /// What is over does not count, announced or not. It is looked for only where that decides.
    pub(crate) fn exceeds_usage(&self, principal: &Principal, max_leases: usize, max_waiters: usize) -> bool {
        let requested = if max_leases < usize::MAX { self.agent_requested_lease_count(principal) } else { 0 };
        let Some(slot) = self.state.find_principal(principal) else { return requested > max_leases };
        let is_own = |holder: Slot| self.state.principal_of(holder).0 == slot;
        let (mut leases, mut waiters) = self.state.usage_of(slot);
        leases += requested + self.grants().filter(|issued| issued.principal == *principal).count();
        let ended = self.ended_leases.iter().filter_map(|fence| self.state.find_lease(*fence));
        leases -= ended.filter(|lease| is_own(lease.holder)).count();
        for waiting in self.ended_waiters.iter().filter_map(|ticket| self.state.queue_entry(*ticket)) {
            if is_own(waiting.holder) {
                waiters -= 1;
                leases -= waiting.queued.requests.len();
            }
        }
        if leases <= max_leases && waiters <= max_waiters {
            return false;
        }
        let expired = self.state.expired_leases(self.now).filter(|lease| is_own(lease.holder));
        leases -= expired.filter(|lease| !self.ended_leases.contains(&lease.fence)).count();
        for waiting in self.state.timed_out_queue_entries(self.now).filter(|waiting| is_own(waiting.holder)) {
            if !self.ended_waiters.contains(&waiting.queued.ticket) {
                waiters -= 1;
                leases -= waiting.queued.requests.len();
            }
        }
        leases > max_leases || waiters > max_waiters
    }

    pub(super) fn expire_if_due(&mut self, lease: &LeaseEntry) {
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
    pub(super) fn is_full(&self) -> bool {
        self.grant_indices.len() >= MAX_GRANTS_PER_DECISION
            || self.granted_bytes >= MAX_GRANTED_BYTES_PER_DECISION
    }

    /// How many waits have ended in this decision.
    pub(super) fn ended_wait_count(&self) -> usize {
        self.ended_waiters.len()
    }

    /// Whether a wait ended in this decision.
    pub(super) fn has_wait_ended(&self, ticket: Ticket) -> bool {
        self.ended_waiters.contains(&ticket)
    }

    /// Notes that the wait of an agent ended, served or not. Whoever came after it may have its turn.
    pub(super) fn mark_agent_wait_ended(&mut self, ticket: Ticket) {
        self.ended_waiters.insert(ticket);
        let state = self.state;
        let requests = state.agent_wait(ticket).map(|pending| &pending.requests[..]).unwrap_or_default();
        for request in drop_covered_requests(requests) {
            let around = state.slots_overlapping(&request.resource);
            self.affected_queues.extend(around.filter(|slot| state.has_queue(*slot)));
            self.mark_affected_for_agents(&request.resource);
        }
    }

    /// Notes that something changed on a resource that agents may wait for.
    pub(super) fn mark_affected_for_agents(&mut self, resource: &Resource) {
        let has_waiting_agents = self.state.has_waiting_agents() || self.new_agent_wait.is_some();
        if has_waiting_agents && is_hierarchical(resource.as_str()) {
            self.affected_for_agents.insert(resource.clone());
        }
    }

    pub(super) fn mark_wait_ended(&mut self, waiting: &QueueEntry) {
        self.ended_waiters.insert(waiting.queued.ticket);
        waiting.resources().for_each(|resource| self.mark_affected(resource));
    }

    pub(super) fn grants(&self) -> impl Iterator<Item = &IssuedLease> {
        self.grant_indices.iter().filter_map(|index| match &self.events[*index] {
            Event::Issued(issued) => Some(issued),
            _ => None,
        })
    }

    /// Notes that something ended on a resource: whoever waits for it, or for what overlaps it, may have its turn.
    pub(super) fn mark_affected(&mut self, resource: Slot) {
        let state = self.state;
        self.mark_affected_for_agents(state.resource_name(resource));
        let around = state.slots_overlapping_at(Some(resource), state.resource_name(resource));
        self.affected_queues.extend(around.filter(|slot| state.has_queue(*slot)));
    }

    /// What this decision has granted so far that overlaps `resource`, or is on it.
    pub(crate) fn grants_overlapping(&self, resource: &Resource) -> impl Iterator<Item = &IssuedLease> {
        self.grants().filter(move |issued| overlaps(issued.resource.as_str(), resource.as_str()))
    }

    pub(crate) fn grants_on(&self, resource: &Resource) -> impl Iterator<Item = &IssuedLease> {
        self.grants().filter(move |issued| issued.resource == *resource)
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
