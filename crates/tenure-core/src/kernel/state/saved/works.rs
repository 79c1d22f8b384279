//! The authority of leases as bytes and back.

use std::sync::Arc;

use super::RestoreError;
use super::bytes::Put;
use super::restore::Restoring;
use crate::authority::{Authority, Budget, LeaseScope};
use crate::kernel::state::State;
use crate::kernel::state::works::{SpentUnderKey, Work};
use crate::kernel::value::Fence;

/// The fewest bytes that the authority of a lease has: one for each of three budgets' amounts, its number, its parent, and a
/// scope.
const LEAST: usize = 3 * 4 + 3;

impl Put<'_> {
    /// Of leases that live, by their numbers, then of those that are over.
    pub(super) fn works(&mut self, state: &State) {
        self.count(state.works.iter().count());
        let mut before = Fence(0);
        for (fence, work) in state.works.iter() {
            self.work(&mut before, *fence, work);
        }
        let over = || state.ended.iter().filter_map(|ended| Some((ended.fence, ended.work.as_deref()?)));
        self.count(over().count());
        let mut before = Fence(0);
        for (fence, work) in over() {
            self.work(&mut before, fence, work);
        }
    }

    /// What a key leads to that something was spent under.
    pub(super) fn spent(&mut self, spent: &SpentUnderKey) {
        self.count(0);
        self.number(0);
        self.number(spent.lease.0);
        self.budget(spent.left);
    }

    fn work(&mut self, before: &mut Fence, fence: Fence, work: &Work) {
        self.number(fence.0 - before.0);
        *before = fence;
        self.number(work.authority.parent.map_or(0, |parent| parent.0));
        let scope = work.authority.scope.canonical_bytes();
        self.count(scope.len());
        self.bytes(&scope);
        self.budget(work.authority.budget);
        self.budget(work.spent);
        self.budget(work.given);
    }

    fn budget(&mut self, budget: Budget) {
        budget.amounts().into_iter().for_each(|amount| self.number(amount));
    }
}

impl Restoring<'_> {
    pub(super) fn works(&mut self) -> Result<(), RestoreError> {
        let mut fence = Fence(0);
        for _ in 0..self.take.count(LEAST)? {
            fence = Fence(self.take.after(fence.0)?);
            let work = self.work()?;
            let lives = self.state.by_fence.get(fence).is_some();
            self.take.ensure(lives, "there is authority of a lease that does not live")?;
            // Numbers grow, so the parent was read before.
            let has_parent = work.authority.parent.is_none_or(|parent| self.state.may_have_child(parent));
            self.take.ensure(has_parent, "a lease lives without its parent, or with too many")?;
            self.state.enter_work(fence, work, false);
        }
        let mut fence = Fence(0);
        for _ in 0..self.take.count(LEAST)? {
            fence = Fence(self.take.after(fence.0)?);
            let work = self.work()?;
            let ended = self.state.ended.get_mut(fence);
            let ended = ended.ok_or_else(|| self.take.damaged("there is authority of no lease"))?;
            ended.work = Some(Box::new(work));
        }
        let fits = self.state.invariant_every_child_is_a_part_of_its_parent().is_ok();
        self.take.ensure(fits, "a lease is more than a part of its parent")
    }

    pub(super) fn spent(&mut self) -> Result<SpentUnderKey, RestoreError> {
        let lease = Fence(self.take.number()?);
        self.take.ensure(lease <= self.state.last_fence, "a key leads to a lease that never was")?;
        Ok(SpentUnderKey { lease, left: self.budget()? })
    }

    fn work(&mut self) -> Result<Work, RestoreError> {
        let parent = self.take.number()?;
        let parent = (parent > 0).then_some(Fence(parent));
        let length = self.take.count(1)?;
        let scope = LeaseScope::from_canonical_bytes(self.take.slice(length)?);
        let scope = scope.map_err(|_| self.take.damaged("a scope is none"))?;
        let (budget, spent, given) = (self.budget()?, self.budget()?, self.budget()?);
        let authority = Arc::new(Authority { parent, scope, budget });
        let work = Work::recalled(authority, spent, given);
        work.ok_or_else(|| self.take.damaged("more was used up than there was"))
    }

    fn budget(&mut self) -> Result<Budget, RestoreError> {
        let mut amounts = [0; 4];
        for amount in &mut amounts {
            *amount = self.take.number()?;
        }
        let budget = Budget::from_amounts(amounts);
        self.take.ensure(budget.check().is_ok(), "a budget is too large")?;
        Ok(budget)
    }
}
