//! The authority of leases in a checkpoint.

use std::sync::Arc;

use crate::authority::{Authority, Budget, LeaseScope};
use crate::kernel::state::KernelState;
use crate::kernel::state::checkpoint::RestoreError;
use crate::kernel::state::checkpoint::bytes::{CheckpointReader, CheckpointWriter};
use crate::kernel::state::checkpoint::decode::CheckpointDecoder;
use crate::kernel::state::checkpoint::fields::{CheckpointCodec, checkpoint_struct};
use crate::kernel::work::{KeyedSpend, WorkLease};
use crate::value::Fence;

/// The fewest bytes that the authority of a lease has: one for each of three budgets' amounts, its number, its parent, and a
/// scope.
const MIN_BYTES: usize = 3 * 4 + 3;

checkpoint_struct! { KeyedSpend { lease, remaining } }

impl CheckpointCodec for Budget {
    fn write(&self, put: &mut CheckpointWriter<'_>) {
        self.amounts().into_iter().for_each(|amount| put.varint(amount));
    }

    fn read(take: &mut CheckpointReader<'_>) -> Result<Self, RestoreError> {
        let mut amounts = [0; 4];
        for amount in &mut amounts {
            *amount = take.varint()?;
        }
        let budget = Budget::from_amounts(amounts);
        take.ensure(budget.check().is_ok(), "a budget is too large")?;
        Ok(budget)
    }
}

impl CheckpointCodec for WorkLease {
    fn write(&self, put: &mut CheckpointWriter<'_>) {
        put.varint(self.authority.parent.map_or(0, |parent| parent.0));
        let scope = self.authority.scope.canonical_bytes();
        put.count(scope.len());
        put.bytes(&scope);
        [self.authority.budget, self.spent, self.delegated].iter().for_each(|budget| budget.write(put));
    }

    fn read(take: &mut CheckpointReader<'_>) -> Result<Self, RestoreError> {
        let parent = take.varint()?;
        let parent = (parent > 0).then_some(Fence(parent));
        let length = take.count(1)?;
        let scope = LeaseScope::from_canonical_bytes(take.slice(length)?);
        let scope = scope.map_err(|_| take.damaged("a scope is none"))?;
        let (budget, (spent, delegated)) = CheckpointCodec::read(take)?;
        let authority = Arc::new(Authority { parent, scope, budget });
        let work = WorkLease::from_usage(authority, spent, delegated);
        work.ok_or_else(|| take.damaged("more was used up than there was"))
    }
}

impl CheckpointWriter<'_> {
    /// Of leases that live, by their numbers, then of those that are over.
    pub(in crate::kernel) fn encode_work_leases(&mut self, state: &KernelState) {
        self.write_work_leases(state.work_leases.iter().map(|(fence, work)| (*fence, work)).collect());
        let ended =
            state.ended_leases.iter().filter_map(|ended| Some((ended.fence, ended.work_lease.as_deref()?)));
        self.write_work_leases(ended.collect());
    }

    fn write_work_leases(&mut self, works: Vec<(Fence, &WorkLease)>) {
        self.count(works.len());
        let mut before = 0;
        for (fence, work) in works {
            self.delta(&mut before, fence.0);
            work.write(self);
        }
    }
}

impl CheckpointDecoder<'_> {
    pub(in crate::kernel) fn decode_work_leases(&mut self) -> Result<(), RestoreError> {
        let mut fence = Fence(0);
        for _ in 0..self.reader.count(MIN_BYTES)? {
            fence = Fence(self.reader.delta(fence.0)?);
            let work = WorkLease::read(&mut self.reader)?;
            let is_active = self.state.find_lease(fence).is_some();
            self.reader.ensure(is_active, "there is authority of a lease that does not live")?;
            // Numbers grow, so the parent was read before.
            let has_parent = work.authority.parent.is_none_or(|parent| self.state.can_derive(parent));
            self.reader.ensure(has_parent, "a lease lives without its parent, or with too many")?;
            self.state.insert_work_lease(fence, work, false);
        }
        let mut fence = Fence(0);
        for _ in 0..self.reader.count(MIN_BYTES)? {
            fence = Fence(self.reader.delta(fence.0)?);
            let work = WorkLease::read(&mut self.reader)?;
            let ended = self.state.ended_leases.get_mut(fence);
            let ended = ended.ok_or_else(|| self.reader.damaged("there is authority of no lease"))?;
            ended.work_lease = Some(Box::new(work));
        }
        let fits = self.state.invariant_children_are_within_parents().is_ok();
        self.reader.ensure(fits, "a lease is more than a part of its parent")
    }
}
