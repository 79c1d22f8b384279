//! Ended leases: how each ended, and the idempotency keys of their requests.

use std::collections::{BTreeMap, VecDeque};

use super::slab::{Slab, Slot};
use crate::kernel::event::LeaseTerms;
use crate::kernel::outcome::LeaseEnd;
use crate::kernel::work::{KeyedSpend, WorkLease};
use crate::rules::is_expired;
use crate::value::{
    ENDED_LEASE_RETENTION, Fence, Holder, IdempotencyKey, KEY_RETENTION, MAX_ENDED_LEASES, Principal,
    RequestDigest, Resource, Tick, Ticket,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedLease {
    pub fence: Fence,
    pub resource: Resource,
    pub holder: Holder,
    pub principal: Principal,
    pub terms: LeaseTerms,
    pub ended_at: Tick,
    pub end: LeaseEnd,
    /// What became of its authority, if it had any.
    pub work_lease: Option<Box<WorkLease>>,
}

/// The leases that ended last. They stand in a table of their own and the tree leads there: whatever is
/// put into a tree is moved about by its neighbours.
#[derive(Debug, Clone, Default)]
pub(crate) struct EndedLeases {
    leases: Slab<EndedLease>,
    by_fence: BTreeMap<Fence, Slot>,
    order: VecDeque<(Tick, Slot)>,
}

impl EndedLeases {
    pub(crate) fn get(&self, fence: Fence) -> Option<&EndedLease> {
        self.by_fence.get(&fence).map(|slot| self.leases.get(*slot))
    }

    pub(crate) fn add(&mut self, lease: EndedLease) {
        let (fence, ended_at) = (lease.fence, lease.ended_at);
        let slot = self.leases.insert(lease);
        self.order.push_back((ended_at, slot));
        self.by_fence.insert(fence, slot);
    }

    pub(crate) fn forget(&mut self, now: Tick) {
        while let Some((ended_at, slot)) = self.order.front().copied() {
            let kept = !is_expired(now.0, ended_at.saturating_add(ENDED_LEASE_RETENTION).0);
            if kept && self.order.len() <= MAX_ENDED_LEASES {
                break;
            }
            self.order.pop_front();
            let lease = self.leases.remove(slot);
            self.by_fence.remove(&lease.fence);
        }
    }

    /// Oldest end first: the order in which they are forgotten.
    pub(crate) fn oldest_first(&self) -> impl Iterator<Item = &EndedLease> {
        self.order.iter().map(|(_, slot)| self.leases.get(*slot))
    }

    pub(in crate::kernel) fn get_mut(&mut self, fence: Fence) -> Option<&mut EndedLease> {
        self.by_fence.get(&fence).map(|slot| self.leases.get_mut(*slot))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &EndedLease> {
        self.by_fence.values().map(|slot| self.leases.get(*slot))
    }
}

/// What was asked for under a key, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdempotencyEntry {
    pub(crate) body: RequestDigest,
    pub(crate) outcome: IdempotencyOutcome,
    pub(crate) live: usize,
    /// From when on the key may be used for something else.
    pub(crate) forget_at: Option<Tick>,
}

/// What came of a request with a key. Refusals are not remembered: the caller may ask again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IdempotencyOutcome {
    Waiting(Ticket),
    Leases(Vec<Fence>),
    Spent(Box<KeyedSpend>),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct IdempotencyKeys {
    entries: BTreeMap<(Slot, RequestDigest), IdempotencyEntry>,
    order: VecDeque<(Tick, Slot, RequestDigest)>,
}

impl IdempotencyKeys {
    /// The keys with these entries, which come in their order. Keys that are forgotten at one tick are
    /// forgotten together, so their order among themselves may be any.
    pub(crate) fn from_sorted(entries: Vec<((Slot, RequestDigest), IdempotencyEntry)>) -> Self {
        let ends = entries.iter().filter_map(|((slot, key), entry)| Some((entry.forget_at?, *slot, *key)));
        let mut order: Vec<_> = ends.collect();
        order.sort_unstable();
        Self { entries: entries.into_iter().collect(), order: order.into() }
    }

    pub(crate) fn get(&self, principal: Slot, key: RequestDigest, now: Tick) -> Option<&IdempotencyEntry> {
        let entry = self.entries.get(&(principal, key))?;
        let forgotten = entry.forget_at.is_some_and(|at| is_expired(now.0, at.0));
        (!forgotten).then_some(entry)
    }

    /// Whether a lease can have been issued under `key` at `now`: nothing was asked under it, or it is the
    /// wait that is served, or this is one more lease of the same request.
    pub(crate) fn can_issue(
        &self,
        principal: Slot,
        key: IdempotencyKey,
        ticket: Option<Ticket>,
        now: Tick,
    ) -> bool {
        self.get(principal, key.key, now).is_none_or(|entry| {
            let same = match &entry.outcome {
                IdempotencyOutcome::Waiting(waiting) => Some(*waiting) == ticket,
                IdempotencyOutcome::Leases(_) => entry.live > 0,
                IdempotencyOutcome::Spent(_) => false,
            };
            same && entry.body == key.body
        })
    }

    pub(crate) fn record_queued(&mut self, principal: Slot, key: IdempotencyKey, ticket: Ticket) {
        let outcome = IdempotencyOutcome::Waiting(ticket);
        let entry = IdempotencyEntry { body: key.body, outcome, live: 0, forget_at: None };
        self.entries.insert((principal, key.key), entry);
    }

    pub(crate) fn remove_queued(&mut self, principal: Slot, key: IdempotencyKey) {
        self.entries.remove(&(principal, key.key));
    }

    pub(crate) fn record_issued(&mut self, principal: Slot, key: IdempotencyKey, fence: Fence) {
        let new_entry = || IdempotencyEntry {
            body: key.body,
            outcome: IdempotencyOutcome::Leases(Vec::new()),
            live: 0,
            forget_at: None,
        };
        let entry = self.entries.entry((principal, key.key)).or_insert_with(new_entry);
        // A wait that was served, or a key that is used again after its time: this request is the one now.
        if entry.forget_at.is_some() || matches!(entry.outcome, IdempotencyOutcome::Waiting(_)) {
            *entry = new_entry();
        }
        if let IdempotencyOutcome::Leases(leases) = &mut entry.outcome {
            leases.push(fence);
            entry.live += 1;
        }
    }

    pub(crate) fn record_ended(&mut self, principal: Slot, key: IdempotencyKey, at: Tick) {
        let Some(entry) = self.entries.get_mut(&(principal, key.key)) else { return };
        entry.live = entry.live.saturating_sub(1);
        if entry.live == 0 {
            let forget_at = at.saturating_add(KEY_RETENTION);
            entry.forget_at = Some(forget_at);
            self.order.push_back((forget_at, principal, key.key));
        }
    }

    pub(crate) fn record_budget_spend(
        &mut self,
        principal: Slot,
        key: IdempotencyKey,
        spent: KeyedSpend,
        at: Tick,
    ) {
        let (outcome, forget_at) =
            (IdempotencyOutcome::Spent(Box::new(spent)), at.saturating_add(KEY_RETENTION));
        let entry = IdempotencyEntry { body: key.body, outcome, live: 0, forget_at: Some(forget_at) };
        self.entries.insert((principal, key.key), entry);
        self.order.push_back((forget_at, principal, key.key));
    }

    pub(crate) fn forget(&mut self, now: Tick) {
        while let Some((forget_at, principal, key)) = self.order.front().copied() {
            if !is_expired(now.0, forget_at.0) {
                break;
            }
            self.order.pop_front();
            // The key may have been used again since.
            let same = |entry: &IdempotencyEntry| entry.forget_at == Some(forget_at);
            if self.entries.get(&(principal, key)).is_some_and(same) {
                self.entries.remove(&(principal, key));
            }
        }
    }

    /// The keys of one principal, in their order.
    pub(crate) fn of_principal(
        &self,
        principal: Slot,
    ) -> impl Iterator<Item = (&RequestDigest, &IdempotencyEntry)> {
        let (first, last) = (RequestDigest([u8::MIN; 16]), RequestDigest([u8::MAX; 16]));
        let own = self.entries.range((principal, first)..=(principal, last));
        own.map(|((_, key), entry)| (key, entry))
    }

    /// Whether each key that has a tick to be forgotten at stands in the queue once, in order, and nothing else does.
    pub(crate) fn is_consistent(&self) -> bool {
        let ends =
            self.entries.iter().filter_map(|((slot, key), entry)| Some((entry.forget_at?, *slot, *key)));
        let (mut ends, mut queue): (Vec<_>, Vec<_>) = (ends.collect(), self.order.iter().copied().collect());
        let ascends = queue.is_sorted_by_key(|(forget_at, _, _)| *forget_at);
        ends.sort_unstable();
        queue.sort_unstable();
        ascends && ends == queue
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&(Slot, RequestDigest), &IdempotencyEntry)> {
        self.entries.iter()
    }
}
