//! What must hold after every event, whatever happened. Tests and the simulator ask after each step.

use std::collections::{BTreeMap, BTreeSet};

use super::retention::{EndedLease, IdempotencyEntry, IdempotencyOutcome};
use super::{ClockState, KernelState};
use crate::kernel::agent::{AgentRecord, AgentWait};
use crate::kernel::event::{LeaseTerms, QueuedAcquire};
use crate::kernel::file::{FileSession, RetryTicket, UncommittedFile};
use crate::kernel::intent::IntentSession;
use crate::kernel::work::WorkLease;
use crate::rules::has_duration;
use crate::value::{
    Fence, Holder, IdempotencyKey, ModeSet, Principal, RequestDigest, Resource, Tick, Ticket,
};

impl KernelState {
    /// Checks everything, in time proportional to all there is. The error says what is wrong, for people.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.invariant_leases_on_a_resource_are_compatible()?;
        self.invariant_overlapping_leases_are_compatible()?;
        self.invariant_every_lease_is_indexed()?;
        self.invariant_every_queue_entry_is_indexed()?;
        self.invariant_principal_counts_match_holders()?;
        self.invariant_idle_holders_hold_nothing()?;
        self.invariant_keys_refer_to_leases_or_queue_entries()?;
        self.invariant_intent_sessions_hold_required_leases()?;
        self.invariant_children_are_within_parents()?;
        self.invariant_agents_wait_only_for_younger()?;
        self.invariant_agent_holdings_are_indexed()?;
        self.invariant_files_are_held_by_active_sessions()
    }

    fn invariant_leases_on_a_resource_are_compatible(&self) -> Result<(), String> {
        for (slot, resource) in self.resources.iter() {
            let leases: Vec<_> = self.leases_on(slot).collect();
            for (index, one) in leases.iter().enumerate() {
                for other in &leases[index + 1..] {
                    let both = || format!("{:?} and {:?} on {}", one.fence, other.fence, resource.name);
                    ensure(one.terms.mode.is_compatible(other.terms.mode), both)?;
                }
            }
            let unused = leases.is_empty() && resource.queue.is_empty();
            ensure(!unused, || format!("{} is kept for nobody", resource.name))?;
        }
        Ok(())
    }

    fn invariant_every_lease_is_indexed(&self) -> Result<(), String> {
        let count = self.leases.len();
        ensure(self.by_fence.len() == count, || "leases and their numbers differ in count".into())?;
        ensure(self.ttl_histogram.len() == count, || "leases and their lengths differ in count".into())?;
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
            ensure(self.ended_leases.get(fence).is_none(), || format!("{fence:?} lives and is over"))?;
            ensure(has_duration(lease.terms.issued_at.0, lease.terms.expires_at.0), || {
                format!("{fence:?} has no time")
            })?;
            let of_holder = &self.holders.get(lease.holder).leases;
            let found = of_holder.get(lease.holder_index as usize) == Some(slot);
            ensure(found, || format!("{fence:?} not with its holder"))?;
        }
        Ok(())
    }

    fn invariant_every_queue_entry_is_indexed(&self) -> Result<(), String> {
        ensure(self.queue_deadlines.len() == self.queue_entries.len(), || {
            "waits and their ends differ in count".into()
        })?;
        let queued: usize = self.resources.iter().map(|(_, resource)| resource.queue.len()).sum();
        let requested: usize = self.queue_entries.values().map(|waiting| waiting.resource_modes.len()).sum();
        ensure(queued == requested, || "waits and queues differ in count".into())?;
        for (ticket, waiting) in &self.queue_entries {
            let end = (waiting.queued.until, *ticket);
            ensure(self.queue_deadlines.contains(&end), || format!("{ticket:?} not by end"))?;
            let holder = self.holders.get(waiting.holder);
            ensure(holder.tickets.contains(ticket), || format!("{ticket:?} not with its holder"))?;
            let mut requested: BTreeMap<&Resource, ModeSet> = BTreeMap::new();
            for (request, resource) in waiting
                .queued
                .requests
                .iter()
                .flat_map(|request| request.resources().map(move |resource| (request, resource)))
            {
                let modes = requested.entry(resource).or_default();
                *modes = modes.with(request.mode);
            }
            let places =
                waiting.resource_modes.iter().map(|(slot, modes)| (self.resource_name(*slot), *modes));
            let places: BTreeMap<&Resource, ModeSet> = places.collect();
            ensure(places == requested, || format!("{ticket:?} does not wait for what it wants"))?;
            for resource in waiting.resources() {
                let queue = &self.resources.get(resource).queue;
                ensure(queue.contains(*ticket), || format!("{ticket:?} not in its queue"))?;
            }
        }
        Ok(())
    }

    fn invariant_principal_counts_match_holders(&self) -> Result<(), String> {
        for (slot, principal) in self.principals.iter() {
            let own = || self.holders.iter().filter(|(_, holder)| holder.principal == slot);
            let leases: usize = own().map(|(_, holder)| holder.leases.len()).sum();
            let waiters: usize = own().map(|(_, holder)| holder.tickets.len()).sum();
            let entries = own().flat_map(|(holder, _)| self.queue_entries_of(holder));
            let requested: usize = entries.map(|waiting| waiting.queued.requests.len()).sum();
            let counted = (principal.leases, principal.queue_entry_count, principal.requested_leases);
            let wrong =
                || format!("{}: counted {counted:?}, has {leases} {waiters} {requested}", principal.name);
            ensure(counted == (leases, waiters, requested), wrong)?;
        }
        Ok(())
    }

    fn invariant_idle_holders_hold_nothing(&self) -> Result<(), String> {
        for (_, holder) in self.holders.iter() {
            let idle = holder.leases.is_empty() && holder.tickets.is_empty();
            ensure(idle == holder.idle.is_some(), || format!("{} rests: {idle}", holder.name))?;
        }
        let idle = self.holders.iter().filter_map(|(slot, holder)| Some((holder.idle?.number, slot)));
        let idle: BTreeMap<_, _> = idle.collect();
        ensure(idle == self.idle_holders, || "those who rest and their list differ".into())?;
        Ok(())
    }

    fn invariant_keys_refer_to_leases_or_queue_entries(&self) -> Result<(), String> {
        let keyed = self.leases.iter().filter(|(_, lease)| lease.key.is_some());
        let keyed: BTreeSet<Fence> = keyed.map(|(_, lease)| lease.fence).collect();
        let mut live = 0;
        for ((_, digest), entry) in self.keys.iter() {
            live += entry.live;
            match &entry.outcome {
                IdempotencyOutcome::Waiting(ticket) => {
                    ensure(self.queue_entries.contains_key(ticket), || {
                        format!("{digest:?} waits for nothing")
                    })?;
                }
                IdempotencyOutcome::Spent(_) => {
                    ensure(entry.forget_at.is_some(), || format!("{digest:?} is kept for ever"))?;
                }
                IdempotencyOutcome::Leases(leases) => {
                    let counted = leases.iter().filter(|fence| keyed.contains(fence)).count();
                    ensure(counted == entry.live, || format!("{digest:?} counts its leases wrongly"))?;
                    ensure((counted == 0) == entry.forget_at.is_some(), || {
                        format!("{digest:?} is kept for ever or too short")
                    })?;
                }
            }
        }
        ensure(live == keyed.len(), || "keys and leases with a key differ in count".into())?;
        ensure(self.keys.is_consistent(), || "keys are not queued to be forgotten as they say".into())
    }
}

/// States what must hold, and what to say if it does not.
pub(crate) fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// Everything that the events add up to, without how it is laid out in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparableState {
    now: Tick,
    clock: Option<ClockState>,
    last_fence: Fence,
    last_ticket: Ticket,
    restore_hold: Option<Tick>,
    leases: Vec<ComparableLease>,
    queue_entries: Vec<QueuedAcquire>,
    holders: Vec<(Holder, Principal, Option<Tick>)>,
    keys: Vec<(Principal, RequestDigest, IdempotencyEntry)>,
    ended_leases: Vec<EndedLease>,
    intent_sessions: Vec<IntentSession>,
    intent_sessions_revision: u64,
    agents: Vec<(Holder, AgentRecord)>,
    waiting_agents: Vec<AgentWait>,
    work_leases: Vec<(Fence, WorkLease)>,
    file_sessions: Vec<FileSession>,
    retry_tickets: Vec<RetryTicket>,
    blocked_reports: Vec<RetryTicket>,
    uncommitted_files: Vec<(Resource, UncommittedFile)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ComparableLease {
    fence: Fence,
    resource: Resource,
    holder: Holder,
    terms: LeaseTerms,
    key: Option<IdempotencyKey>,
}

impl KernelState {
    /// A copy to compare with. It visits everything: for tests and the simulator.
    pub fn to_comparable(&self) -> ComparableState {
        let leases = self.by_fence.iter_from(Fence(0)).map(|slot| {
            let entry = self.leases.get(slot);
            ComparableLease {
                fence: entry.fence,
                resource: self.resource_name(entry.resource).clone(),
                holder: self.holder_name(entry.holder).clone(),
                terms: entry.terms.clone(),
                key: entry.key.as_deref().copied(),
            }
        });
        let holders = self.holders.iter().map(|(slot, entry)| {
            (entry.name.clone(), self.principal_of(slot).1.clone(), entry.idle.map(|rest| rest.since))
        });
        let mut holders: Vec<_> = holders.collect();
        holders.sort_unstable();
        let keys = self.keys.iter().map(|((principal, digest), entry)| {
            (self.principals.get(*principal).name.clone(), *digest, entry.clone())
        });
        let mut keys: Vec<_> = keys.collect();
        keys.sort_unstable_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)));
        ComparableState {
            now: self.now,
            clock: self.clock.clone(),
            last_fence: self.last_fence,
            last_ticket: self.last_ticket,
            restore_hold: self.restore_hold,
            leases: leases.collect(),
            queue_entries: self.queue_entries.values().map(|waiting| waiting.queued.clone()).collect(),
            holders,
            keys,
            ended_leases: self.ended_leases.iter().cloned().collect(),
            intent_sessions: self.intent_sessions.iter().cloned().collect(),
            intent_sessions_revision: self.intent_sessions.revision(),
            agents: self.agents.iter().map(|(id, agent)| (id.clone(), agent.clone())).collect(),
            waiting_agents: self.agents.wait_index.iter().cloned().collect(),
            work_leases: self.work_leases.iter().map(|(fence, work)| (*fence, work.clone())).collect(),
            file_sessions: self.file_sessions().cloned().collect(),
            retry_tickets: self.retry_tickets().cloned().collect(),
            blocked_reports: self.blocked_reports().cloned().collect(),
            uncommitted_files: self
                .files
                .uncommitted_oldest_first()
                .map(|(resource, uncommitted)| (resource.clone(), uncommitted.clone()))
                .collect(),
        }
    }
}
