//! A decision in the making: what the state would be after the events so far.
//!
//! Deciding must not change the state, yet one decision may take several steps: an expiry lets a waiter
//! in, and who came now stands behind it. So the draft remembers what it has ended and issued, and
//! answers every question as if that had been applied.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::agent::{Pending, Rank};
use super::answer::{Answer, Decision, Refusal};
use super::event::{Cause, Event, Issued, WaitEnd};
use super::intent::SessionEnd;
use super::mode::{Mode, Modes};
use super::name::{Holder, Principal, Resource};
use super::state::{LeaseEntry, Slot, State, Waiting};
use super::value::{Fence, RequestKey, Tick, Ticket};
use super::want::{Want, widest};
use crate::authority::Authority;
use crate::lease::ReleaseReason;
use crate::rules::overlap::{has_parts, overlap};
use crate::rules::time::is_over;

/// With so many leases granted, a decision lets in no more waiters. One decision is one part of a batch, and a batch
/// must not grow beyond what can be signed and written at once.
const GRANTED_AT_ONCE: usize = 512;

/// With so many bytes of names granted, neither, for the same reason.
const BYTES_GRANTED_AT_ONCE: usize = 1 << 20;

/// The state, and what this decision adds to it.
pub(crate) struct Draft<'a> {
    pub(crate) state: &'a State,
    pub(crate) now: Tick,
    events: Vec<Event>,
    last_fence: Fence,
    /// Leases of the state that end in this decision. A set: a sweep ends a thousand, and asks of each.
    ended: BTreeSet<Fence>,
    /// Waits of the state that end in this decision, served or not.
    gone: BTreeSet<Ticket>,
    grants: Vec<usize>,
    /// How long the names of what is granted are.
    granted_bytes: usize,
    /// Resources on which something ended and somebody waits, who may have its turn. A set: a thousand readers of
    /// one resource may end together.
    pub(super) freed: BTreeSet<Slot>,
    /// On these something changed that agents who wait may get on by, or die of.
    pub(super) stirred: BTreeSet<Resource>,
    /// A wait of an agent that begins in this decision.
    pub(super) new_pending: Option<Pending>,
    /// An attempt that begins in this decision.
    pub(super) begun: Option<Rank>,
    /// To whom the agent belongs that asks.
    pub(super) declaring: Option<Principal>,
    /// Waits of agents whose turn came in this decision, and what they got.
    pub(super) served_agents: Vec<(Ticket, Vec<Fence>)>,
    /// Agents that die in this decision, when they may come back, and what is over of theirs.
    pub(super) dead: BTreeMap<Holder, (Tick, Vec<Fence>)>,
    /// Sessions of the state that end in this decision, and how.
    pub(super) ended_sessions: BTreeMap<Holder, SessionEnd>,
    /// Holders of which a lease ended that may be a session's. By their names: how they lie in memory must not show in
    /// the ledger.
    pub(super) bereft: BTreeSet<Holder>,
    /// Somebody's turn came for whom there was no room any more.
    pub(super) has_unserved: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocker<'a> {
    pub(crate) holder: &'a Holder,
    /// When its lease, or its wait, is over.
    pub(crate) until: Tick,
}

impl<'a> Draft<'a> {
    /// An empty decision. A request that was stamped before the newest event is decided at that event's tick.
    pub(crate) fn new(state: &'a State, now: Tick) -> Self {
        Self {
            state,
            now: now.max(state.now()),
            events: Vec::new(),
            last_fence: state.last_fence(),
            ended: BTreeSet::new(),
            gone: BTreeSet::new(),
            grants: Vec::new(),
            granted_bytes: 0,
            freed: BTreeSet::new(),
            stirred: BTreeSet::new(),
            new_pending: None,
            begun: None,
            declaring: None,
            served_agents: Vec::new(),
            dead: BTreeMap::new(),
            ended_sessions: BTreeMap::new(),
            bereft: BTreeSet::new(),
            has_unserved: false,
        }
    }

    /// The decision, with everybody let in whose turn has come.
    pub(crate) fn finish(mut self, answer: Result<Answer, Refusal>) -> Decision {
        self.end_bereft_sessions();
        self.serve_agents_and_waiters();
        let answer = answer.unwrap_or_else(Answer::Refused);
        Decision { events: self.events, answer, has_unserved: self.has_unserved }
    }

    pub(in crate::kernel) fn events(&self) -> &[Event] {
        &self.events
    }

    /// Adds an event, and before it the ends of all that ends with what it ends. What ended already ends no second time.
    pub(crate) fn push(&mut self, event: Event) {
        if let Some(lease) = event.ends() {
            if self.ended.contains(&lease) {
                return;
            }
            self.end_descendants(lease);
        }
        self.events.push(event);
    }

    /// Adds an event that takes nothing along.
    pub(super) fn push_plain(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Whether a lease of the state ends in this decision.
    pub(super) fn has_ended(&self, lease: Fence) -> bool {
        self.ended.contains(&lease)
    }

    /// Whether a lease of the state still lives, here and now.
    pub(crate) fn lives(&self, lease: &LeaseEntry) -> bool {
        !is_over(self.now.0, lease.terms.expires_at.0) && !self.ended.contains(&lease.fence)
    }

    /// Whether somebody of the state still waits, here and now.
    pub(crate) fn waits(&self, waiting: &Waiting) -> bool {
        !is_over(self.now.0, waiting.queued.until.0) && !self.gone.contains(&waiting.queued.ticket)
    }

    /// Announces what is over on `resource` and on what overlaps it, and lets in whose turn that makes it.
    pub(crate) fn settle(&mut self, resource: &Resource) {
        let state = self.state;
        let some_wait_is_over = state.over_waits(self.now).next().is_some();
        if state.has_pending() && has_parts(resource.as_str()) {
            self.time_out_agents(usize::MAX);
        }
        for slot in state.slots_around(resource) {
            state.leases_on(slot).for_each(|lease| self.expire_if_over(lease));
            if some_wait_is_over {
                state.queue_on(slot).for_each(|waiting| self.time_out_if_over(waiting));
            }
        }
        self.end_bereft_sessions();
        self.serve_agents_and_waiters();
    }

    /// Announces at most `most` leases and waits that are over. Says whether there are more.
    pub(crate) fn sweep(&mut self, most: usize) -> bool {
        let state = self.state;
        let mut leases = state.over_leases(self.now);
        leases.by_ref().take(most).for_each(|lease| self.expire_if_over(lease));
        let mut waits = state.over_waits(self.now);
        let left = most.saturating_sub(self.ended.len());
        waits.by_ref().take(left).for_each(|waiting| self.time_out_if_over(waiting));
        let has_more_sessions = self.sweep_sessions(most.saturating_sub(self.ended.len() + self.gone.len()));
        let has_more_agents = self.sweep_agents(most);
        self.end_bereft_sessions();
        self.serve_agents_and_waiters();
        leases.next().is_some() || waits.next().is_some() || has_more_sessions || has_more_agents
    }

    /// Ends a lease of the state by the registrar's word.
    pub(crate) fn revoke(&mut self, lease: &LeaseEntry, cause: Cause, by: &Principal, detail: &str) {
        let (by, detail) = (by.clone(), detail.into());
        self.push(Event::Revoked { lease: lease.fence, at: self.now, cause, by, detail });
        self.mark_ended(lease);
    }

    /// Gives back a lease of the state in its holder's name.
    pub(crate) fn release(&mut self, lease: &LeaseEntry, reason: ReleaseReason) {
        let by = self.state.holder_name(lease.holder).stored();
        self.push(Event::Released { lease: lease.fence, at: self.now, by, reason });
        self.mark_ended(lease);
    }

    /// The answer to a question as if `lease` were not there.
    pub(crate) fn without<T>(&mut self, lease: &LeaseEntry, ask: impl FnOnce(&Self) -> T) -> T {
        self.ended.insert(lease.fence);
        let answer = ask(self);
        self.ended.remove(&lease.fence);
        answer
    }

    /// Notes that a lease of the state ended by an event that is already pushed.
    pub(crate) fn mark_ended(&mut self, lease: &LeaseEntry) {
        self.ended.insert(lease.fence);
        self.note_loss(lease);
        self.free(lease.resource);
    }

    /// Ends a wait with nothing.
    pub(crate) fn leave(&mut self, waiting: &Waiting, end: WaitEnd) {
        self.push(Event::Left { ticket: waiting.queued.ticket, at: self.now, end });
        self.mark_gone(waiting);
    }

    /// Grants. Whatever is over on the resource is announced first, because a ledger never holds two
    /// leases that do not go together, not even when one of them is over.
    pub(crate) fn issue(&mut self, grant: Grant<'_>) -> Result<Fence, Refusal> {
        let expires_at = self.now.checked_add(grant.want.ttl).ok_or(Refusal::Exhausted)?;
        let fence = self.last_fence.next().ok_or(Refusal::Exhausted)?;
        let state = self.state;
        // Nearly always nothing is, and then nobody need be looked at: below a folder there may be many.
        if state.over_leases(self.now).next().is_some() {
            state.leases_around(grant.resource).for_each(|lease| self.expire_if_over(lease));
        }
        self.last_fence = fence;
        self.grants.push(self.events.len());
        self.granted_bytes += grant.resource.as_str().len() + grant.holder.as_str().len();
        self.stir(grant.resource);
        self.push(Event::Issued(Issued {
            fence,
            resource: grant.resource.clone(),
            holder: grant.holder.clone(),
            principal: grant.principal.clone(),
            mode: grant.want.mode,
            at: self.now,
            expires_at,
            ttl: grant.want.ttl,
            nonce: grant.want.nonce,
            labels: grant.want.labels.clone(),
            key: grant.key,
            ticket: grant.ticket,
            continues: grant.continues,
            authority: grant.authority.cloned(),
        }));
        Ok(fence)
    }

    /// How many grants are still possible, after those of this decision.
    pub(crate) fn fences_left(&self) -> u64 {
        Fence::MAX.0 - self.last_fence.0
    }

    /// What is in the way of one who wants `resource` like this: leases that do not go with it, and waiters before
    /// `place` that would not, so that many readers cannot keep one writer out for ever.
    ///
    /// Whoever waits for any one of several resources is in the way on each of them: first come, first served.
    pub(crate) fn blockers<'b>(
        &'b self,
        resource: &'b Resource,
        mode: Mode,
        place: Place,
    ) -> impl Iterator<Item = Blocker<'b>> {
        let slot = self.state.find_resource(resource);
        let around = self.state.slots_around_at(slot, resource);
        let leases = around.flat_map(|slot| self.state.leases_on(slot));
        let leases = leases.filter(move |lease| !lease.terms.mode.goes_with(mode) && self.lives(lease));
        let leases = leases.map(|lease| (self.state.holder_name(lease.holder), lease.terms.expires_at));
        let granted = self.granted_around(resource).filter(move |issued| !issued.mode.goes_with(mode));
        let granted = granted.map(|issued| (&issued.holder, issued.expires_at));
        let held = leases.chain(granted).map(|(holder, until)| Blocker { holder, until });

        let apart = Modes::kept_out_by(mode);
        let queue = self.state.slots_around_at(slot, resource).flat_map(move |slot| {
            let queue = self.state.queue_on(slot);
            let before = queue.take_while(move |waiting| place.is_after(waiting.queued.ticket));
            before.filter(move |waiting| waiting.modes_on(slot).meets(apart) && self.waits(waiting))
        });
        let queue =
            queue.map(|waiting| Blocker { holder: &waiting.queued.holder, until: waiting.queued.until });
        // Agents come before everybody who has no age.
        let agents = self.pending_apart(resource, mode);
        held.chain(queue)
            .chain(agents.map(|pending| Blocker { holder: &pending.rank.agent, until: pending.until }))
    }

    pub(crate) fn waiting_on(&self, resource: &Resource) -> usize {
        let slot = self.state.find_resource(resource);
        slot.map_or(0, |slot| self.state.queue_on(slot).filter(|waiting| self.waits(waiting)).count())
    }

    /// Whether a principal has or waits for more than `most` leases, or has more than `most_waits` waits.
    ///
    /// What is over does not count, announced or not. It is looked for only where that decides.
    pub(crate) fn uses_more_than(&self, principal: &Principal, most: usize, most_waits: usize) -> bool {
        let wanted = if most < usize::MAX { self.wanted_by_agents_of(principal) } else { 0 };
        let Some(slot) = self.state.find_principal(principal) else { return wanted > most };
        let is_own = |holder: Slot| self.state.principal_of(holder).0 == slot;
        let (mut leases, mut waits) = self.state.usage_of(slot);
        leases += wanted + self.granted().filter(|issued| issued.principal == *principal).count();
        let ended = self.ended.iter().filter_map(|fence| self.state.find_lease(*fence));
        leases -= ended.filter(|lease| is_own(lease.holder)).count();
        for waiting in self.gone.iter().filter_map(|ticket| self.state.waiting(*ticket)) {
            if is_own(waiting.holder) {
                waits -= 1;
                leases -= waiting.queued.wants.len();
            }
        }
        if leases <= most && waits <= most_waits {
            return false;
        }
        let over = self.state.over_leases(self.now).filter(|lease| is_own(lease.holder));
        leases -= over.filter(|lease| !self.ended.contains(&lease.fence)).count();
        for waiting in self.state.over_waits(self.now).filter(|waiting| is_own(waiting.holder)) {
            if !self.gone.contains(&waiting.queued.ticket) {
                waits -= 1;
                leases -= waiting.queued.wants.len();
            }
        }
        leases > most || waits > most_waits
    }

    pub(super) fn expire_if_over(&mut self, lease: &LeaseEntry) {
        if is_over(self.now.0, lease.terms.expires_at.0) && !self.ended.contains(&lease.fence) {
            self.push(Event::Expired { lease: lease.fence, at: self.now });
            self.mark_ended(lease);
        }
    }

    /// Announces that a wait is over, if it is.
    pub(crate) fn time_out_if_over(&mut self, waiting: &Waiting) {
        let queued = &waiting.queued;
        if is_over(self.now.0, queued.until.0) && !self.gone.contains(&queued.ticket) {
            self.leave(waiting, WaitEnd::TimedOut);
        }
    }

    /// Whether so much is granted already that whoever else could be let in has to wait for the next decision.
    pub(super) fn is_full(&self) -> bool {
        self.grants.len() >= GRANTED_AT_ONCE || self.granted_bytes >= BYTES_GRANTED_AT_ONCE
    }

    /// How many waits have ended in this decision.
    pub(super) fn served(&self) -> usize {
        self.gone.len()
    }

    /// Whether a wait ended in this decision.
    pub(super) fn has_gone(&self, ticket: Ticket) -> bool {
        self.gone.contains(&ticket)
    }

    /// Notes that the wait of an agent ended, served or not. Whoever came after it may have its turn.
    pub(super) fn mark_served(&mut self, ticket: Ticket) {
        self.gone.insert(ticket);
        let state = self.state;
        let wants = state.pending_under(ticket).map(|pending| &pending.wants[..]).unwrap_or_default();
        for want in widest(wants) {
            let around = state.slots_around(&want.resource);
            self.freed.extend(around.filter(|slot| state.is_waited_for(*slot)));
            self.stir(&want.resource);
        }
    }

    /// Notes that something changed on a resource that agents may wait for.
    pub(super) fn stir(&mut self, resource: &Resource) {
        let someone_waits = self.state.has_pending() || self.new_pending.is_some();
        if someone_waits && has_parts(resource.as_str()) {
            self.stirred.insert(resource.clone());
        }
    }

    pub(super) fn mark_gone(&mut self, waiting: &Waiting) {
        self.gone.insert(waiting.queued.ticket);
        waiting.resources().for_each(|resource| self.free(resource));
    }

    pub(super) fn granted(&self) -> impl Iterator<Item = &Issued> {
        self.grants.iter().filter_map(|index| match &self.events[*index] {
            Event::Issued(issued) => Some(issued),
            _ => None,
        })
    }

    /// Notes that something ended on a resource: whoever waits for it, or for what overlaps it, may have its turn.
    pub(super) fn free(&mut self, resource: Slot) {
        let state = self.state;
        self.stir(state.resource_name(resource));
        let around = state.slots_around_at(Some(resource), state.resource_name(resource));
        self.freed.extend(around.filter(|slot| state.is_waited_for(*slot)));
    }

    /// What this decision has granted so far that overlaps `resource`, or is on it.
    pub(crate) fn granted_around(&self, resource: &Resource) -> impl Iterator<Item = &Issued> {
        self.granted().filter(move |issued| overlap(issued.resource.as_str(), resource.as_str()))
    }

    pub(crate) fn granted_on(&self, resource: &Resource) -> impl Iterator<Item = &Issued> {
        self.granted().filter(move |issued| issued.resource == *resource)
    }
}

/// From where in the queue a request is seen.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    /// Only waiters with a smaller ticket count; `None`: it comes after everybody.
    pub(crate) before: Option<Ticket>,
}

impl Place {
    /// Whether whoever is before `other` is before this one too.
    pub(crate) fn reaches(self, other: Place) -> bool {
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
    pub(crate) want: &'a Want,
    /// Which of the want's resources.
    pub(crate) resource: &'a Resource,
    pub(crate) key: Option<RequestKey>,
    pub(crate) ticket: Option<Ticket>,
    pub(crate) continues: Option<Fence>,
    /// What its holder may do, if it is a lease on work that says so.
    pub(crate) authority: Option<&'a Arc<Authority>>,
}
