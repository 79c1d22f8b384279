//! What the table of leases becomes by one operation, or why it cannot have answered like this.

use crate::law::Law;
use crate::operation::ObservedState;

use super::lease_table::{EndKind, FenceBounds, LeaseTable, ModelLease};
use super::resource_operation::{GrantResult, MILLISECOND, Observation, ResourceAction, ResourceOperation};

/// Why an operation cannot come next.
pub(super) type StepViolation = (Law, String);

/// The table after `part`, if that can come next.
pub(super) fn step(table: &LeaseTable, part: &ResourceOperation) -> Result<LeaseTable, StepViolation> {
    // Nobody is told of what is decided later, neither by the server nor by what a reader sees.
    if table.now > part.ended {
        let reason = format!("something before it cannot have happened before {} us", table.now);
        return Err((Law::RealTimeOrder, reason));
    }
    let mut step = TableStep { table: table.clone(), part };
    match &part.action {
        ResourceAction::Acquire { granted: None, .. } | ResourceAction::Continue { got: None, .. } => {
            step.apply_unanswered()?
        }
        ResourceAction::Acquire { granted: Some(got), .. } => step.granted(*got)?,
        ResourceAction::Continue { fence, got: Some(got), .. } => step.apply_continuation(*fence, *got)?,
        ResourceAction::Renew { fence, ttl, valid } => step.renewed(*fence, *ttl, *valid)?,
        ResourceAction::End { fence } => step.ended(*fence)?,
        ResourceAction::AlreadyEnded { fence } => step.check_already_ended(*fence)?,
        ResourceAction::KeyEnded { key } => step.check_key_ended(*key)?,
        ResourceAction::Held { .. } => step.held()?,
        ResourceAction::Show { fence, seen } => step.shown(*fence, *seen)?,
        ResourceAction::List { seen } => step.listed(seen)?,
    }
    Ok(step.table)
}

struct TableStep<'a> {
    table: LeaseTable,
    part: &'a ResourceOperation,
}

impl TableStep<'_> {
    /// The server decided this no earlier than what it decided before, and no later than the answer came.
    fn decide(&mut self, not_before: u64) -> Result<u64, StepViolation> {
        let at = self.table.now.max(self.part.invoked).max(not_before);
        if at > self.part.ended {
            let reason = format!("it was answered before {at} us, when this could happen at the earliest");
            return Err((Law::RealTimeOrder, reason));
        }
        self.table.now = at;
        Ok(at)
    }

    fn never_granted(&self, fence: u64) -> Result<(), StepViolation> {
        if fence <= self.table.last_fence {
            return Ok(());
        }
        Err((Law::AccurateReads, format!("{fence} was not granted yet")))
    }

    /// Whatever does not go with this one must be over by now.
    fn expire_conflicting(&mut self, mode: crate::operation::LeaseMode) -> Result<u64, StepViolation> {
        let mut not_before = 0;
        while let Some(place) = self.table.leases.iter().position(|lease| !lease.mode.is_compatible(mode)) {
            let lease = self.table.leases[place];
            if lease.end.0 > self.part.ended {
                let until = lease.end.0;
                let reason = format!("{} lives until {until} us at the least", describe(&lease));
                return Err((Law::MutualExclusion, reason));
            }
            not_before = lease.end.0.max(not_before);
            self.table.remove(place, EndKind::Expired);
        }
        self.decide(not_before)
    }

    /// The end of a lease that was decided at `at` or later, for so long.
    fn end(&self, at: u64, ttl: (u64, u64), valid: u64) -> (u64, u64) {
        let ResourceOperation { invoked, ended, .. } = *self.part;
        let latest = |length: u64| ended.saturating_add(length);
        ((at + ttl.0).max(invoked + valid), latest(ttl.1).min(latest(valid + MILLISECOND - 1)))
    }

    fn granted(&mut self, got: GrantResult) -> Result<(), StepViolation> {
        let ResourceAction::Acquire { holder, mode, ttl, key, .. } = self.part.action else { return Ok(()) };
        if self.finds_repeated_grant(key, got)? {
            return Ok(());
        }
        if got.fence <= self.table.last_fence {
            let law = if key.is_some() { Law::Idempotency } else { Law::MonotonicFences };
            return Err((law, format!("{} was given out before", self.table.last_fence)));
        }
        if key.is_some_and(|key| self.table.spent_keys.contains(&key)) {
            return Err((Law::Idempotency, "this key has led to a lease already".to_owned()));
        }
        let at = self.expire_conflicting(mode)?;
        let end = self.end(at, (ttl, ttl), got.valid);
        if end.0 > end.1 {
            let reason = format!(
                "{} ms were asked for, {} ms were promised",
                ttl / MILLISECOND,
                got.valid / MILLISECOND
            );
            return Err((Law::NoShortening, reason));
        }
        let name = FenceBounds::Exact(got.fence);
        self.table.add(Some(got.fence), ModelLease { fence: name, holder, mode, ttl: (ttl, ttl), key, end });
        Ok(())
    }

    /// The same request, sent again: the lease must live.
    fn granted_again(&mut self, place: usize, got: GrantResult) -> Result<(), StepViolation> {
        let at = self.decide(0)?;
        let lease = self.table.leases[place];
        if lease.end.1 <= at {
            return Err((Law::NoUseAfterEnd, format!("{} was over by {} us", describe(&lease), lease.end.1)));
        }
        self.table.leases[place].end = self.narrow_expiry(&lease, got.valid, Law::Idempotency)?;
        Ok(())
    }

    /// The end of a lease, known better now: it lives for `valid` from a moment of this operation.
    fn narrow_expiry(&self, lease: &ModelLease, valid: u64, law: Law) -> Result<(u64, u64), StepViolation> {
        let ResourceOperation { invoked, ended, .. } = *self.part;
        let promised = (invoked + valid, ended.saturating_add(valid + MILLISECOND - 1));
        let both = (lease.end.0.max(promised.0), lease.end.1.min(promised.1));
        if both.0 > both.1 {
            let (from, to) = lease.end;
            let reason = format!("{} ends between {from} and {to} us, not as this says", describe(lease));
            return Err((law, reason));
        }
        Ok(both)
    }

    fn renewed(&mut self, fence: u64, ttl: Option<u64>, valid: Option<u64>) -> Result<(), StepViolation> {
        let place = self.find_active(fence)?;
        let at = self.decide(0)?;
        let lease = self.table.leases[place];
        if lease.end.1 <= at {
            return Err((Law::NoUseAfterEnd, format!("{} was over by {} us", describe(&lease), lease.end.1)));
        }
        let requested = ttl.map_or(lease.ttl, |ttl| (ttl, ttl));
        let least = lease.end.0.max(at + requested.0);
        let max_end = lease.end.1.max(self.part.ended.saturating_add(requested.1));
        let end = match valid {
            None => (least, max_end),
            Some(valid) => {
                let latest = self.part.ended.saturating_add(valid + MILLISECOND - 1);
                (least.max(self.part.invoked + valid), latest.min(max_end))
            }
        };
        if end.0 > end.1 {
            let reason =
                format!("{} had until {} us at the least, and has less now", describe(&lease), lease.end.0);
            return Err((Law::NoShortening, reason));
        }
        // If it may have had that end already, its length is what it was, or what was asked for.
        let may_be_unchanged = end.0 <= lease.end.1;
        let both = (requested.0.min(lease.ttl.0), requested.1.max(lease.ttl.1));
        let lease = &mut self.table.leases[place];
        (lease.ttl, lease.end) = (if may_be_unchanged { both } else { requested }, end);
        Ok(())
    }

    /// Where a lease is that must live.
    fn find_active(&self, fence: u64) -> Result<usize, StepViolation> {
        let missing = || match self.never_granted(fence) {
            Err(obstacle) => obstacle,
            Ok(()) => (Law::NoUseAfterEnd, format!("{fence} is over")),
        };
        self.table.find(fence).ok_or_else(missing)
    }

    fn ended(&mut self, fence: u64) -> Result<(), StepViolation> {
        let Some(place) = self.table.find(fence) else {
            if self.table.end_of(fence) == Some(EndKind::Expired) {
                return Err((Law::NoUseAfterEnd, format!("{fence} ran out")));
            }
            return self.never_granted(fence);
        };
        let at = self.decide(0)?;
        let lease = self.table.leases[place];
        if lease.end.1 <= at {
            return Err((Law::NoUseAfterEnd, format!("{} was over by {} us", describe(&lease), lease.end.1)));
        }
        self.table.remove(place, EndKind::Released);
        Ok(())
    }

    fn apply_continuation(&mut self, fence: u64, got: GrantResult) -> Result<(), StepViolation> {
        let ResourceAction::Continue { holder, mode, key, .. } = self.part.action else { return Ok(()) };
        if self.finds_repeated_grant(Some(key), got)? {
            return Ok(());
        }
        let place = self.find_active(fence)?;
        let ttl = self.table.leases[place].ttl;
        self.ended(fence)?;
        if got.fence <= self.table.last_fence {
            return Err((Law::MonotonicFences, format!("{} was given out before", self.table.last_fence)));
        }
        let at = self.expire_conflicting(mode)?;
        let (name, end) = (FenceBounds::Exact(got.fence), self.end(at, ttl, got.valid));
        if end.0 > end.1 {
            return Err((Law::NoShortening, format!("{} ms were promised", got.valid / MILLISECOND)));
        }
        self.table.add(Some(got.fence), ModelLease { fence: name, holder, mode, ttl, key: Some(key), end });
        Ok(())
    }

    /// Whether the same request, sent again, finds what came of it before.
    fn finds_repeated_grant(
        &mut self,
        key: Option<super::resource_operation::NameId>,
        got: GrantResult,
    ) -> Result<bool, StepViolation> {
        let untold = key.and_then(|key| self.table.find_unknown(got.fence, |lease| lease.key == Some(key)));
        if let Some(place) = untold {
            self.table.set_fence(place, got.fence);
        }
        let Some(place) = self.table.find(got.fence) else { return Ok(false) };
        if key.is_none() || self.table.leases[place].key != key {
            return Err((Law::UniqueFences, format!("{} is another request's", got.fence)));
        }
        self.granted_again(place, got).map(|()| true)
    }

    /// It happened, and nobody was told.
    fn apply_unanswered(&mut self) -> Result<(), StepViolation> {
        let (holder, mode, ttl, key) = match self.part.action {
            ResourceAction::Acquire { holder, mode, ttl, key, .. } => (holder, mode, (ttl, ttl), key),
            ResourceAction::Continue { fence, holder, mode, key, .. } => {
                let ttl = self.table.leases[self.find_active(fence)?].ttl;
                self.ended(fence)?;
                (holder, mode, ttl, Some(key))
            }
            _ => return Ok(()),
        };
        self.check_once(key)?;
        let at = self.expire_conflicting(mode)?;
        // A grant that cannot be delivered is taken back at once, unless it can be asked for again.
        let earliest = if key.is_some() { at + ttl.0 } else { at };
        let end = (earliest, self.part.ended.saturating_add(ttl.1));
        let name = FenceBounds::Between { above: 0, below: 0 };
        self.table.add(None, ModelLease { fence: name, holder, mode, ttl, key, end });
        Ok(())
    }

    /// A key leads to one lease, whatever has become of it.
    fn check_once(&self, key: Option<super::resource_operation::NameId>) -> Result<(), StepViolation> {
        let Some(key) = key else { return Ok(()) };
        let (ResourceAction::Acquire { known_fence, .. } | ResourceAction::Continue { known_fence, .. }) =
            self.part.action
        else {
            return Ok(());
        };
        let is_there = self.table.leases.iter().any(|lease| lease.key == Some(key));
        let was_reported = known_fence.is_some_and(|fence| fence <= self.table.last_fence);
        if is_there || was_reported || self.table.spent_keys.contains(&key) {
            return Err((Law::Idempotency, "this key has led to a lease already".to_owned()));
        }
        Ok(())
    }

    fn check_already_ended(&mut self, fence: u64) -> Result<(), StepViolation> {
        let Some(place) = self.table.find(fence) else { return self.never_granted(fence) };
        self.expire(place)
    }

    fn check_key_ended(&mut self, key: super::resource_operation::NameId) -> Result<(), StepViolation> {
        match self.table.leases.iter().position(|lease| lease.key == Some(key)) {
            Some(place) => self.expire(place),
            None if self.table.spent_keys.contains(&key) => Ok(()),
            None => Err((Law::Idempotency, "nothing was granted under this key".to_owned())),
        }
    }

    fn expire(&mut self, place: usize) -> Result<(), StepViolation> {
        let lease = self.table.leases[place];
        if lease.end.0 > self.part.ended {
            let reason = format!("{} lives until {} us at the least", describe(&lease), lease.end.0);
            return Err((Law::NoEarlyEnd, reason));
        }
        self.decide(lease.end.0)?;
        self.table.remove(place, EndKind::Expired);
        Ok(())
    }

    fn held(&mut self) -> Result<(), StepViolation> {
        let ResourceAction::Held { mode, own, by, waited_for } = self.part.action else { return Ok(()) };
        let from = self.table.now.max(self.part.invoked);
        let is_in_the_way = |lease: &ModelLease| {
            !lease.mode.is_compatible(mode)
                && own.is_none_or(|own| lease.fence != FenceBounds::Exact(own))
                && by.is_none_or(|by| lease.holder == by)
                && lease.end.1 > from
        };
        if waited_for || self.table.leases.iter().any(is_in_the_way) {
            return Ok(());
        }
        Err((Law::JustifiedDenials, "nobody who does not go with it holds it".to_owned()))
    }

    fn shown(&mut self, fence: u64, seen: Option<Observation>) -> Result<(), StepViolation> {
        match seen {
            Some(seen) if seen.state == ObservedState::Active => self.seen_alive(seen),
            Some(seen) => match self.table.find(fence) {
                None => {
                    let shown = if seen.state == ObservedState::Released {
                        EndKind::Released
                    } else {
                        EndKind::Expired
                    };
                    if self.table.end_of(fence).is_some_and(|ended| ended != shown) {
                        return Err((Law::AccurateReads, format!("{fence} ended otherwise")));
                    }
                    self.never_granted(fence)
                }
                Some(_) if seen.state == ObservedState::Released => {
                    Err((Law::AccurateReads, format!("nobody has given {fence} back")))
                }
                Some(place) => self.unseen(place, Law::NoEarlyEnd),
            },
            None => self.table.find(fence).map_or(Ok(()), |place| self.unseen(place, Law::NoStaleReads)),
        }
    }

    fn listed(&mut self, seen: &[Observation]) -> Result<(), StepViolation> {
        seen.iter().try_for_each(|one| self.seen_alive(*one))?;
        let is_listed =
            |lease: &ModelLease| seen.iter().any(|one| lease.fence == FenceBounds::Exact(one.fence));
        let unlisted: Vec<_> =
            (0..self.table.leases.len()).filter(|place| !is_listed(&self.table.leases[*place])).collect();
        unlisted.into_iter().try_for_each(|place| self.unseen(place, Law::NoStaleReads))
    }

    fn seen_alive(&mut self, seen: Observation) -> Result<(), StepViolation> {
        let is_it = |lease: &ModelLease| lease.holder == seen.holder && lease.mode == seen.mode;
        if self.table.find(seen.fence).is_none()
            && let Some(place) = self.table.find_unknown(seen.fence, is_it)
        {
            self.table.set_fence(place, seen.fence);
        }
        let Some(place) = self.table.find(seen.fence) else {
            self.never_granted(seen.fence)?;
            return Err((Law::NoStaleReads, format!("{} is over", seen.fence)));
        };
        let lease = self.table.leases[place];
        if !is_it(&lease) {
            return Err((Law::AccurateReads, format!("{} has another holder or mode", seen.fence)));
        }
        if lease.end.1 <= self.part.invoked {
            return Err((Law::NoUseAfterEnd, format!("{} was over by {} us", describe(&lease), lease.end.1)));
        }
        self.narrow_expiry(&lease, seen.remaining, Law::AccurateReads).map(|_| ())
    }

    /// A lease that a reader does not see as alive must be able to be over.
    fn unseen(&self, place: usize, law: Law) -> Result<(), StepViolation> {
        let lease = self.table.leases[place];
        if lease.end.0 <= self.part.ended {
            return Ok(());
        }
        Err((law, format!("{} lives until {} us at the least", describe(&lease), lease.end.0)))
    }
}

fn describe(lease: &ModelLease) -> String {
    match lease.fence {
        FenceBounds::Exact(fence) => format!("{fence} ({})", lease.mode),
        FenceBounds::Between { .. } => format!("a lease that nobody was told of ({})", lease.mode),
    }
}
