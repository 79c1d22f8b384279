//! The authority of leases as bytes and back.

use std::sync::Arc;

use super::RestoreError;
use super::bytes::{Put, Take};
use super::part::{Saved, saved};
use super::restore::Restoring;
use crate::authority::{Authority, Budget, LeaseScope};
use crate::kernel::state::State;
use crate::kernel::state::works::{SpentUnderKey, Work};
use crate::kernel::value::Fence;

/// The fewest bytes that the authority of a lease has: one for each of three budgets' amounts, its number, its parent, and a
/// scope.
const LEAST: usize = 3 * 4 + 3;

saved! { SpentUnderKey { lease, left } }

impl Saved for Budget {
    fn put(&self, put: &mut Put<'_>) {
        self.amounts().into_iter().for_each(|amount| put.number(amount));
    }

    fn read(take: &mut Take<'_>) -> Result<Self, RestoreError> {
        let mut amounts = [0; 4];
        for amount in &mut amounts {
            *amount = take.number()?;
        }
        let budget = Budget::from_amounts(amounts);
        take.ensure(budget.check().is_ok(), "a budget is too large")?;
        Ok(budget)
    }
}

impl Saved for Work {
    fn put(&self, put: &mut Put<'_>) {
        put.number(self.authority.parent.map_or(0, |parent| parent.0));
        let scope = self.authority.scope.canonical_bytes();
        put.count(scope.len());
        put.bytes(&scope);
        [self.authority.budget, self.spent, self.given].iter().for_each(|budget| budget.put(put));
    }

    fn read(take: &mut Take<'_>) -> Result<Self, RestoreError> {
        let parent = take.number()?;
        let parent = (parent > 0).then_some(Fence(parent));
        let length = take.count(1)?;
        let scope = LeaseScope::from_canonical_bytes(take.slice(length)?);
        let scope = scope.map_err(|_| take.damaged("a scope is none"))?;
        let (budget, (spent, given)) = Saved::read(take)?;
        let authority = Arc::new(Authority { parent, scope, budget });
        let work = Work::recalled(authority, spent, given);
        work.ok_or_else(|| take.damaged("more was used up than there was"))
    }
}

impl Put<'_> {
    /// Of leases that live, by their numbers, then of those that are over.
    pub(super) fn works(&mut self, state: &State) {
        self.works_of(state.works.iter().map(|(fence, work)| (*fence, work)).collect());
        let over = state.ended.iter().filter_map(|ended| Some((ended.fence, ended.work.as_deref()?)));
        self.works_of(over.collect());
    }

    fn works_of(&mut self, works: Vec<(Fence, &Work)>) {
        self.count(works.len());
        let mut before = 0;
        for (fence, work) in works {
            self.after(&mut before, fence.0);
            work.put(self);
        }
    }
}

impl Restoring<'_> {
    pub(super) fn works(&mut self) -> Result<(), RestoreError> {
        let mut fence = Fence(0);
        for _ in 0..self.take.count(LEAST)? {
            fence = Fence(self.take.after(fence.0)?);
            let work = Work::read(&mut self.take)?;
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
            let work = Work::read(&mut self.take)?;
            let ended = self.state.ended.get_mut(fence);
            let ended = ended.ok_or_else(|| self.take.damaged("there is authority of no lease"))?;
            ended.work = Some(Box::new(work));
        }
        let fits = self.state.invariant_every_child_is_a_part_of_its_parent().is_ok();
        self.take.ensure(fits, "a lease is more than a part of its parent")
    }
}
