//! Which leases have authority, how much of it is left, and which was derived from which.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::authority::{Authority, Budget, check_derived, work_id_of};
use crate::kernel::event::{Event, IssuedLease};
use crate::kernel::state::apply::ensure;
use crate::kernel::state::{ApplyError, KernelState, ensure as hold};
use crate::kernel::work::WorkEvent;
use crate::rules::is_expired;
use crate::value::{Fence, LeaseMode, MAX_DERIVATION_DEPTH, MAX_DESCENDANTS};

/// What became of the authority of one lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkLease {
    pub authority: Arc<Authority>,
    pub remaining: Budget,
    pub spent: Budget,
    /// What was given to leases that were derived from it, whatever became of them.
    pub delegated: Budget,
    /// The living leases that were derived from it.
    pub children: BTreeSet<Fence>,
    /// How many living leases there are below it.
    descendants: usize,
    depth: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyedSpend {
    pub(in crate::kernel) lease: Fence,
    /// What was left then.
    pub(in crate::kernel) remaining: Budget,
}

#[derive(Debug, Clone, Default)]
pub(in crate::kernel) struct WorkLeaseStore(BTreeMap<Fence, WorkLease>);

impl WorkLeaseStore {
    pub(in crate::kernel) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(in crate::kernel) fn iter(&self) -> impl Iterator<Item = (&Fence, &WorkLease)> {
        self.0.iter()
    }
}

impl WorkLease {
    pub(in crate::kernel) fn new(authority: Arc<Authority>) -> WorkLease {
        let (remaining, spent, delegated) = (authority.budget, Budget::ZERO, Budget::ZERO);
        WorkLease {
            authority,
            remaining,
            spent,
            delegated,
            children: BTreeSet::new(),
            descendants: 0,
            depth: 0,
        }
    }

    /// As it was, with what was used up and given away; nothing if that is more than it had.
    pub(in crate::kernel) fn from_usage(
        authority: Arc<Authority>,
        spent: Budget,
        delegated: Budget,
    ) -> Option<WorkLease> {
        let remaining = authority.budget.minus(spent.plus(delegated)?).ok()?;
        Some(WorkLease { remaining, spent, delegated, ..WorkLease::new(authority) })
    }
}

impl KernelState {
    /// What became of the authority of a living lease; nothing for a lease that has none.
    pub fn work_lease(&self, fence: Fence) -> Option<&WorkLease> {
        self.work_leases.0.get(&fence)
    }

    /// Everybody below a lease, parents before their children.
    pub(in crate::kernel) fn derived_leases(&self, fence: Fence) -> Vec<Fence> {
        let children = |fence: &Fence| {
            self.work_lease(*fence).into_iter().flat_map(|work| work.children.iter().copied())
        };
        let mut found: Vec<Fence> = children(&fence).collect();
        let mut next = 0;
        while let Some(fence) = found.get(next).copied() {
            found.extend(children(&fence));
            next += 1;
        }
        found
    }

    /// Whether something more may be derived from a lease.
    pub(in crate::kernel) fn can_derive(&self, parent: Fence) -> bool {
        let shallow = self.work_lease(parent).is_some_and(|work| work.depth < MAX_DERIVATION_DEPTH);
        shallow && self.with_ancestors(parent).all(|(_, work)| work.descendants < MAX_DESCENDANTS)
    }

    /// Whether an event leaves the tree of leases whole. Nothing is changed.
    pub(in crate::kernel) fn check_work_event(&self, event: &Event) -> Result<(), ApplyError> {
        match event {
            Event::Issued(issued) => self.check_authority(issued),
            Event::Released { lease, .. } | Event::Expired { lease, .. } | Event::Revoked { lease, .. } => {
                let is_alone = self.work_lease(*lease).is_none_or(|work| work.children.is_empty());
                ensure(is_alone, "it ends a lease before those that were derived from it")
            }
            Event::Renewed { lease, expires_at, .. } => {
                let parent = self.work_lease(*lease).and_then(|work| work.authority.parent);
                let parent = parent.and_then(|parent| self.find_lease(parent));
                let fits = parent.is_none_or(|parent| *expires_at <= parent.terms.expires_at);
                ensure(fits, "it renews a lease beyond its parent's end")
            }
            _ => Ok(()),
        }
    }

    fn check_authority(&self, issued: &IssuedLease) -> Result<(), ApplyError> {
        let Some(authority) = &issued.authority else { return Ok(()) };
        let work_id = work_id_of(&issued.resource).filter(|_| issued.terms.mode == LeaseMode::Exclusive);
        let work_id = work_id.ok_or(ApplyError("it has authority over what is no work of its own"))?;
        ensure(authority.budget.check().is_ok(), "its budget is too large")?;
        let Some(parent) = authority.parent else { return Ok(()) };
        let lease = self
            .find_lease(parent)
            .filter(|lease| !is_expired(issued.terms.issued_at.0, lease.terms.expires_at.0));
        let lease = lease.ok_or(ApplyError("it is derived from a lease that is over"))?;
        let work =
            self.work_lease(parent).ok_or(ApplyError("it is derived from a lease without authority"))?;
        ensure(self.can_derive(parent), "too much is derived from one lease")?;
        let has = (&work.authority.scope, work.remaining, lease.terms.expires_at);
        let fits = check_derived(has, work_id, (&authority.scope, authority.budget, issued.terms.expires_at));
        ensure(fits.is_ok(), "it is more than a part of the lease that it is derived from")
    }

    /// Enters the authority of a lease that lives. What its parent gave is taken from it, unless that is known already.
    pub(in crate::kernel) fn insert_work_lease(&mut self, fence: Fence, mut work: WorkLease, is_new: bool) {
        if let Some(parent) = work.authority.parent {
            let budget = work.authority.budget;
            if let Some(above) = self.work_leases.0.get_mut(&parent) {
                above.children.insert(fence);
                work.depth = above.depth + 1;
                if is_new {
                    above.remaining = above.remaining.minus(budget).unwrap_or(Budget::ZERO);
                    above.delegated = above.delegated.plus(budget).unwrap_or(Budget::MAX);
                }
            }
            self.count_descendants(parent, |count| count + 1);
        }
        self.work_leases.0.insert(fence, work);
    }

    /// Takes out the authority of a lease that ends, to be remembered with it.
    pub(in crate::kernel) fn remove_work_lease(&mut self, fence: Fence) -> Option<Box<WorkLease>> {
        let mut work = self.work_leases.0.remove(&fence)?;
        if let Some(parent) = work.authority.parent {
            if let Some(above) = self.work_leases.0.get_mut(&parent) {
                above.children.remove(&fence);
            }
            self.count_descendants(parent, |count| count.saturating_sub(1));
        }
        // Where it stood means nothing any more.
        work.depth = 0;
        Some(Box::new(work))
    }

    pub(in crate::kernel) fn apply_work(&mut self, event: &WorkEvent) -> Result<(), ApplyError> {
        match event {
            WorkEvent::Spent { lease, at, amount, purpose, key } => {
                let entry =
                    self.find_lease(*lease).filter(|entry| !is_expired(at.0, entry.terms.expires_at.0));
                let entry = entry.ok_or(ApplyError("it spends from a lease that is over"))?;
                let principal = self.holders.get(entry.holder).principal;
                let work = self.work_leases.0.get_mut(lease);
                let work = work.ok_or(ApplyError("it spends from a lease without authority"))?;
                ensure(work.authority.scope.allows(purpose), "it spends for what is not allowed")?;
                let remaining =
                    work.remaining.minus(*amount).map_err(|_| ApplyError("it spends more than is left"))?;
                let spent = work.spent.plus(*amount).ok_or(ApplyError("it spends more than there is"))?;
                if let Some(key) = key {
                    let is_free = self.keys.get(principal, key.key, *at).is_none();
                    ensure(is_free, "its key was used for something else")?;
                    self.keys.record_budget_spend(
                        principal,
                        *key,
                        KeyedSpend { lease: *lease, remaining },
                        *at,
                    );
                }
                (work.remaining, work.spent) = (remaining, spent);
                Ok(())
            }
        }
    }

    /// What was given is what is left, what was used up and what was given away; a child is never more than a part of its
    /// parent, and never alone.
    pub(in crate::kernel) fn invariant_children_are_within_parents(&self) -> Result<(), String> {
        for (fence, work) in self.work_leases.iter() {
            let lease = self.find_lease(*fence);
            let lease = lease.ok_or_else(|| format!("{fence:?} has authority and is no lease"))?;
            let work_id = work_id_of(self.resource_name(lease.resource));
            hold(work_id.is_some(), || format!("{fence:?} has authority over what is no work"))?;
            let parts = work.remaining.plus(work.spent).and_then(|sum| sum.plus(work.delegated));
            hold(parts == Some(work.authority.budget), || {
                format!("{fence:?} has a budget that does not add up")
            })?;
            let below = self.derived_leases(*fence);
            hold(below.len() == work.descendants, || format!("{fence:?} counts what is below it wrongly"))?;
            let mut delegated = Budget::ZERO;
            for child in &work.children {
                let own = self.work_lease(*child).map(|child| (child.authority.clone(), child.depth));
                let (authority, depth) =
                    own.ok_or_else(|| format!("{child:?} is a child without authority"))?;
                let named = authority.parent == Some(*fence)
                    && depth == work.depth + 1
                    && depth <= MAX_DERIVATION_DEPTH;
                hold(named, || format!("{child:?} is not where it says"))?;
                delegated = delegated.plus(authority.budget).ok_or("more was given than can be counted")?;
                let within = authority.scope.is_within(&work.authority.scope);
                hold(within, || format!("{child:?} may do more than {fence:?}"))?;
                let end = self.find_lease(*child).map(|child| child.terms.expires_at);
                hold(end <= Some(lease.terms.expires_at), || format!("{child:?} outlives {fence:?}"))?;
            }
            hold(work.delegated.covers(delegated), || format!("{fence:?} gave more than it says"))?;
            let parent = work.authority.parent.map(|parent| (parent, self.work_lease(parent)));
            let is_known =
                parent.is_none_or(|(_, parent)| parent.is_some_and(|work| work.children.contains(fence)));
            hold(is_known, || format!("{fence:?} lives without its parent"))?;
        }
        Ok(())
    }

    /// A lease and everybody above it, the root last.
    fn with_ancestors(&self, fence: Fence) -> impl Iterator<Item = (Fence, &WorkLease)> {
        let own = self.work_lease(fence).map(|work| (fence, work));
        std::iter::successors(own, |(_, work)| {
            let parent = work.authority.parent?;
            self.work_lease(parent).map(|work| (parent, work))
        })
    }

    fn count_descendants(&mut self, from: Fence, change: impl Fn(usize) -> usize) {
        let above: Vec<Fence> = self.with_ancestors(from).map(|(fence, _)| fence).collect();
        for fence in above {
            if let Some(work) = self.work_leases.0.get_mut(&fence) {
                work.descendants = change(work.descendants);
            }
        }
    }
}
