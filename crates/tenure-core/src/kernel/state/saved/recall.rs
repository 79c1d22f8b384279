//! What is remembered beside leases and waits comes back: keys, and leases that are over.

use super::RestoreError;
use super::form::Terms;
use super::restore::Restoring;
use crate::kernel::limits::KEY_KEPT;
use crate::kernel::name::{Holder, Resource};
use crate::kernel::state::Slot;
use crate::kernel::state::memory::{EndedLease, KeyEntry, KeyOutcome, Keys};
use crate::kernel::value::{Fence, RequestKey, Tick, Ticket};

impl Restoring<'_> {
    pub(super) fn keys(&mut self) -> Result<(), RestoreError> {
        let mut keys = Vec::new();
        for principal in self.principals.clone() {
            let mut before = None;
            for _ in 0..self.take.count(34)? {
                let key = self.take.request_key()?;
                let ascends = before.is_none_or(|before| before < key.key);
                self.take.ensure(ascends, "keys are not in their order")?;
                before = Some(key.key);
                keys.push(((principal, key.key), self.key(principal, key)?));
            }
        }
        self.state.keys = Keys::from_sorted(keys);
        Ok(())
    }

    fn key(&mut self, principal: Slot, key: RequestKey) -> Result<KeyEntry, RestoreError> {
        let count = self.take.count(1)?;
        if count == 0 {
            let ticket = Ticket(self.take.number()?);
            if ticket == Ticket(0) {
                let outcome = KeyOutcome::Spent(Box::new(self.spent()?));
                return Ok(KeyEntry { body: key.body, outcome, live: 0, forget_at: Some(self.forget_at()?) });
            }
            let waiting = self.state.waits.get_mut(&ticket);
            let waiting = waiting.ok_or_else(|| self.take.damaged("a key waits for nothing"))?;
            let own = self.state.holders.get(waiting.holder).principal == principal;
            self.take.ensure(own, "a key leads to somebody else's ticket")?;
            let earlier = waiting.queued.key.replace(key);
            self.take.ensure(earlier.is_none(), "two keys lead to one ticket")?;
            let outcome = KeyOutcome::Waiting(ticket);
            return Ok(KeyEntry { body: key.body, outcome, live: 0, forget_at: None });
        }
        let (mut leases, mut live, mut fence) = (Vec::with_capacity(count), 0, Fence(0));
        for _ in 0..count {
            fence = Fence(self.take.after(fence.0)?);
            self.take.ensure(fence <= self.state.last_fence, "a key leads to a lease that never was")?;
            if let Some(slot) = self.state.by_fence.get(fence) {
                let lease = self.state.leases.get_mut(slot);
                let own = self.state.holders.get(lease.holder).principal == principal;
                self.take.ensure(own, "a key leads to somebody else's lease")?;
                let earlier = lease.key.replace(Box::new(key));
                self.take.ensure(earlier.is_none(), "two keys lead to one lease")?;
                live += 1;
            }
            leases.push(fence);
        }
        let forget_at = if live == 0 { Some(self.forget_at()?) } else { None };
        Ok(KeyEntry { body: key.body, outcome: KeyOutcome::Leases(leases), live, forget_at })
    }

    /// No later than for a key whose last lease ended just now: the queue of keys goes by that.
    fn forget_at(&mut self) -> Result<Tick, RestoreError> {
        let forget_at = Tick(self.take.after(self.state.now.0)?);
        let latest = self.state.now.saturating_add(KEY_KEPT);
        self.take.ensure(forget_at <= latest, "a key is kept too long")?;
        Ok(forget_at)
    }

    pub(super) fn ended_leases(&mut self) -> Result<(), RestoreError> {
        let mut before = Tick(0);
        for _ in 0..self.take.count(8 + Terms::LEAST)? {
            let fence = Fence(self.take.after(0)?);
            let over = self.state.by_fence.get(fence).is_none() && self.state.ended(fence).is_none();
            self.take.ensure(fence <= self.state.last_fence && over, "an ended lease lives or never was")?;
            let resource = self.take.name(Resource::parse)?;
            let holder = self.take.name(Holder::parse)?;
            let principal = self.principal()?;
            let principal = self.state.principals.get(principal).name.clone();
            let terms = self.take.terms()?;
            let ended_at = self.take.past()?;
            self.take.ensure(ended_at >= before, "ends are not in their order")?;
            before = ended_at;
            self.state.ended.add(EndedLease {
                fence,
                resource,
                holder,
                principal,
                mode: terms.mode,
                issued_at: terms.issued_at,
                expires_at: terms.expires_at,
                ttl: terms.ttl,
                renewals: terms.renewals,
                nonce: terms.nonce,
                labels: terms.labels,
                ended_at,
                end: self.take.end()?,
                work: None,
            });
        }
        Ok(())
    }
}
