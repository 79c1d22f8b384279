//! What the table of leases becomes by one operation, or why it cannot have answered like this.

use crate::law::Law;
use crate::operation::Life;

use super::part::{Glance, Got, MILLISECOND, Part, What};
use super::table::{Ended, Lease, Name, Table};

/// Why an operation cannot come next.
pub(super) type Obstacle = (Law, String);

/// The table after `part`, if that can come next.
pub(super) fn step(table: &Table, part: &Part) -> Result<Table, Obstacle> {
    // Nobody is told of what is decided later, neither by the server nor by what a reader sees.
    if table.now > part.ended {
        let reason = format!("something before it cannot have happened before {} us", table.now);
        return Err((Law::RealTimeOrder, reason));
    }
    let mut step = Step { table: table.clone(), part };
    match &part.what {
        What::Acquire { got: None, .. } | What::Continue { got: None, .. } => step.happen_untold()?,
        What::Acquire { got: Some(got), .. } => step.granted(*got)?,
        What::Continue { fence, got: Some(got), .. } => step.continued(*fence, *got)?,
        What::Renew { fence, ttl, valid } => step.renewed(*fence, *ttl, *valid)?,
        What::End { fence } => step.ended(*fence)?,
        What::Over { fence } => step.over(*fence)?,
        What::KeyOver { key } => step.key_over(*key)?,
        What::Held { .. } => step.held()?,
        What::Show { fence, seen } => step.shown(*fence, *seen)?,
        What::List { seen } => step.listed(seen)?,
    }
    Ok(step.table)
}

struct Step<'a> {
    table: Table,
    part: &'a Part,
}

impl Step<'_> {
    /// The server decided this no earlier than what it decided before, and no later than the answer came.
    fn decide(&mut self, not_before: u64) -> Result<u64, Obstacle> {
        let at = self.table.now.max(self.part.invoked).max(not_before);
        if at > self.part.ended {
            let reason = format!("it was answered before {at} us, when this could happen at the earliest");
            return Err((Law::RealTimeOrder, reason));
        }
        self.table.now = at;
        Ok(at)
    }

    fn never_granted(&self, fence: u64) -> Result<(), Obstacle> {
        if fence <= self.table.last_fence {
            return Ok(());
        }
        Err((Law::ReadsAreTrue, format!("{fence} was not granted yet")))
    }

    /// Whatever does not go with this one must be over by now.
    fn make_way(&mut self, mode: crate::operation::Mode) -> Result<u64, Obstacle> {
        let mut not_before = 0;
        while let Some(place) = self.table.leases.iter().position(|lease| !lease.mode.goes_with(mode)) {
            let lease = self.table.leases[place];
            if lease.end.0 > self.part.ended {
                let until = lease.end.0;
                let reason = format!("{} lives until {until} us at the least", named(&lease));
                return Err((Law::OneHolder, reason));
            }
            not_before = lease.end.0.max(not_before);
            self.table.remove(place, Ended::RanOut);
        }
        self.decide(not_before)
    }

    /// The end of a lease that was decided at `at` or later, for so long.
    fn end(&self, at: u64, ttl: (u64, u64), valid: u64) -> (u64, u64) {
        let Part { invoked, ended, .. } = *self.part;
        let latest = |length: u64| ended.saturating_add(length);
        ((at + ttl.0).max(invoked + valid), latest(ttl.1).min(latest(valid + MILLISECOND - 1)))
    }

    fn granted(&mut self, got: Got) -> Result<(), Obstacle> {
        let What::Acquire { holder, mode, ttl, key, .. } = self.part.what else { return Ok(()) };
        if self.finds_again(key, got)? {
            return Ok(());
        }
        if got.fence <= self.table.last_fence {
            let law = if key.is_some() { Law::Once } else { Law::FenceGrows };
            return Err((law, format!("{} was given out before", self.table.last_fence)));
        }
        if key.is_some_and(|key| self.table.spent.contains(&key)) {
            return Err((Law::Once, "this key has led to a lease already".to_owned()));
        }
        let at = self.make_way(mode)?;
        let end = self.end(at, (ttl, ttl), got.valid);
        if end.0 > end.1 {
            let reason = format!(
                "{} ms were asked for, {} ms were promised",
                ttl / MILLISECOND,
                got.valid / MILLISECOND
            );
            return Err((Law::NeverShorter, reason));
        }
        let name = Name::Fence(got.fence);
        self.table.add(Some(got.fence), Lease { name, holder, mode, ttl: (ttl, ttl), key, end });
        Ok(())
    }

    /// The same request, sent again: the lease must live.
    fn granted_again(&mut self, place: usize, got: Got) -> Result<(), Obstacle> {
        let at = self.decide(0)?;
        let lease = self.table.leases[place];
        if lease.end.1 <= at {
            return Err((Law::StrictEnd, format!("{} was over by {} us", named(&lease), lease.end.1)));
        }
        self.table.leases[place].end = self.agree(&lease, got.valid, Law::Once)?;
        Ok(())
    }

    /// The end of a lease, known better now: it lives for `valid` from a moment of this operation.
    fn agree(&self, lease: &Lease, valid: u64, law: Law) -> Result<(u64, u64), Obstacle> {
        let Part { invoked, ended, .. } = *self.part;
        let said = (invoked + valid, ended.saturating_add(valid + MILLISECOND - 1));
        let both = (lease.end.0.max(said.0), lease.end.1.min(said.1));
        if both.0 > both.1 {
            let (from, to) = lease.end;
            let reason = format!("{} ends between {from} and {to} us, not as this says", named(lease));
            return Err((law, reason));
        }
        Ok(both)
    }

    fn renewed(&mut self, fence: u64, ttl: Option<u64>, valid: Option<u64>) -> Result<(), Obstacle> {
        let place = self.living(fence)?;
        let at = self.decide(0)?;
        let lease = self.table.leases[place];
        if lease.end.1 <= at {
            return Err((Law::StrictEnd, format!("{} was over by {} us", named(&lease), lease.end.1)));
        }
        let asked = ttl.map_or(lease.ttl, |ttl| (ttl, ttl));
        let least = lease.end.0.max(at + asked.0);
        let most = lease.end.1.max(self.part.ended.saturating_add(asked.1));
        let end = match valid {
            None => (least, most),
            Some(valid) => {
                let latest = self.part.ended.saturating_add(valid + MILLISECOND - 1);
                (least.max(self.part.invoked + valid), latest.min(most))
            }
        };
        if end.0 > end.1 {
            let reason =
                format!("{} had until {} us at the least, and has less now", named(&lease), lease.end.0);
            return Err((Law::NeverShorter, reason));
        }
        // If it may have had that end already, its length is what it was, or what was asked for.
        let may_be_unchanged = end.0 <= lease.end.1;
        let both = (asked.0.min(lease.ttl.0), asked.1.max(lease.ttl.1));
        let lease = &mut self.table.leases[place];
        (lease.ttl, lease.end) = (if may_be_unchanged { both } else { asked }, end);
        Ok(())
    }

    /// Where a lease is that must live.
    fn living(&self, fence: u64) -> Result<usize, Obstacle> {
        let missing = || match self.never_granted(fence) {
            Err(obstacle) => obstacle,
            Ok(()) => (Law::StrictEnd, format!("{fence} is over")),
        };
        self.table.find(fence).ok_or_else(missing)
    }

    fn ended(&mut self, fence: u64) -> Result<(), Obstacle> {
        let Some(place) = self.table.find(fence) else {
            if self.table.end_of(fence) == Some(Ended::RanOut) {
                return Err((Law::StrictEnd, format!("{fence} ran out")));
            }
            return self.never_granted(fence);
        };
        let at = self.decide(0)?;
        let lease = self.table.leases[place];
        if lease.end.1 <= at {
            return Err((Law::StrictEnd, format!("{} was over by {} us", named(&lease), lease.end.1)));
        }
        self.table.remove(place, Ended::Released);
        Ok(())
    }

    fn continued(&mut self, fence: u64, got: Got) -> Result<(), Obstacle> {
        let What::Continue { holder, mode, key, .. } = self.part.what else { return Ok(()) };
        if self.finds_again(Some(key), got)? {
            return Ok(());
        }
        let place = self.living(fence)?;
        let ttl = self.table.leases[place].ttl;
        self.ended(fence)?;
        if got.fence <= self.table.last_fence {
            return Err((Law::FenceGrows, format!("{} was given out before", self.table.last_fence)));
        }
        let at = self.make_way(mode)?;
        let (name, end) = (Name::Fence(got.fence), self.end(at, ttl, got.valid));
        if end.0 > end.1 {
            return Err((Law::NeverShorter, format!("{} ms were promised", got.valid / MILLISECOND)));
        }
        self.table.add(Some(got.fence), Lease { name, holder, mode, ttl, key: Some(key), end });
        Ok(())
    }

    /// Whether the same request, sent again, finds what came of it before.
    fn finds_again(&mut self, key: Option<super::part::Number>, got: Got) -> Result<bool, Obstacle> {
        let untold = key.and_then(|key| self.table.find_untold(got.fence, |lease| lease.key == Some(key)));
        if let Some(place) = untold {
            self.table.tell(place, got.fence);
        }
        let Some(place) = self.table.find(got.fence) else { return Ok(false) };
        if key.is_none() || self.table.leases[place].key != key {
            return Err((Law::FenceOnce, format!("{} is another request's", got.fence)));
        }
        self.granted_again(place, got).map(|()| true)
    }

    /// It happened, and nobody was told.
    fn happen_untold(&mut self) -> Result<(), Obstacle> {
        let (holder, mode, ttl, key) = match self.part.what {
            What::Acquire { holder, mode, ttl, key, .. } => (holder, mode, (ttl, ttl), key),
            What::Continue { fence, holder, mode, key, .. } => {
                let ttl = self.table.leases[self.living(fence)?].ttl;
                self.ended(fence)?;
                (holder, mode, ttl, Some(key))
            }
            _ => return Ok(()),
        };
        self.check_once(key)?;
        let at = self.make_way(mode)?;
        // A grant that cannot be delivered is taken back at once, unless it can be asked for again.
        let earliest = if key.is_some() { at + ttl.0 } else { at };
        let end = (earliest, self.part.ended.saturating_add(ttl.1));
        let name = Name::Untold { above: 0, below: 0 };
        self.table.add(None, Lease { name, holder, mode, ttl, key, end });
        Ok(())
    }

    /// A key leads to one lease, whatever has become of it.
    fn check_once(&self, key: Option<super::part::Number>) -> Result<(), Obstacle> {
        let Some(key) = key else { return Ok(()) };
        let (What::Acquire { told, .. } | What::Continue { told, .. }) = self.part.what else {
            return Ok(());
        };
        let is_there = self.table.leases.iter().any(|lease| lease.key == Some(key));
        let was_told = told.is_some_and(|fence| fence <= self.table.last_fence);
        if is_there || was_told || self.table.spent.contains(&key) {
            return Err((Law::Once, "this key has led to a lease already".to_owned()));
        }
        Ok(())
    }

    fn over(&mut self, fence: u64) -> Result<(), Obstacle> {
        let Some(place) = self.table.find(fence) else { return self.never_granted(fence) };
        self.run_out(place)
    }

    fn key_over(&mut self, key: super::part::Number) -> Result<(), Obstacle> {
        match self.table.leases.iter().position(|lease| lease.key == Some(key)) {
            Some(place) => self.run_out(place),
            None if self.table.spent.contains(&key) => Ok(()),
            None => Err((Law::Once, "nothing was granted under this key".to_owned())),
        }
    }

    fn run_out(&mut self, place: usize) -> Result<(), Obstacle> {
        let lease = self.table.leases[place];
        if lease.end.0 > self.part.ended {
            let reason = format!("{} lives until {} us at the least", named(&lease), lease.end.0);
            return Err((Law::NeverEarly, reason));
        }
        self.decide(lease.end.0)?;
        self.table.remove(place, Ended::RanOut);
        Ok(())
    }

    fn held(&mut self) -> Result<(), Obstacle> {
        let What::Held { mode, own, by, waited_for } = self.part.what else { return Ok(()) };
        let from = self.table.now.max(self.part.invoked);
        let is_in_the_way = |lease: &Lease| {
            !lease.mode.goes_with(mode)
                && own.is_none_or(|own| lease.name != Name::Fence(own))
                && by.is_none_or(|by| lease.holder == by)
                && lease.end.1 > from
        };
        if waited_for || self.table.leases.iter().any(is_in_the_way) {
            return Ok(());
        }
        Err((Law::HeldBySomebody, "nobody who does not go with it holds it".to_owned()))
    }

    fn shown(&mut self, fence: u64, seen: Option<Glance>) -> Result<(), Obstacle> {
        match seen {
            Some(seen) if seen.state == Life::Active => self.seen_alive(seen),
            Some(seen) => match self.table.find(fence) {
                None => {
                    let shown = if seen.state == Life::Released { Ended::Released } else { Ended::RanOut };
                    if self.table.end_of(fence).is_some_and(|ended| ended != shown) {
                        return Err((Law::ReadsAreTrue, format!("{fence} ended otherwise")));
                    }
                    self.never_granted(fence)
                }
                Some(_) if seen.state == Life::Released => {
                    Err((Law::ReadsAreTrue, format!("nobody has given {fence} back")))
                }
                Some(place) => self.unseen(place, Law::NeverEarly),
            },
            None => self.table.find(fence).map_or(Ok(()), |place| self.unseen(place, Law::ReadsAreFresh)),
        }
    }

    fn listed(&mut self, seen: &[Glance]) -> Result<(), Obstacle> {
        seen.iter().try_for_each(|one| self.seen_alive(*one))?;
        let is_listed = |lease: &Lease| seen.iter().any(|one| lease.name == Name::Fence(one.fence));
        let unlisted: Vec<_> =
            (0..self.table.leases.len()).filter(|place| !is_listed(&self.table.leases[*place])).collect();
        unlisted.into_iter().try_for_each(|place| self.unseen(place, Law::ReadsAreFresh))
    }

    fn seen_alive(&mut self, seen: Glance) -> Result<(), Obstacle> {
        let is_it = |lease: &Lease| lease.holder == seen.holder && lease.mode == seen.mode;
        if self.table.find(seen.fence).is_none()
            && let Some(place) = self.table.find_untold(seen.fence, is_it)
        {
            self.table.tell(place, seen.fence);
        }
        let Some(place) = self.table.find(seen.fence) else {
            self.never_granted(seen.fence)?;
            return Err((Law::ReadsAreFresh, format!("{} is over", seen.fence)));
        };
        let lease = self.table.leases[place];
        if !is_it(&lease) {
            return Err((Law::ReadsAreTrue, format!("{} has another holder or mode", seen.fence)));
        }
        if lease.end.1 <= self.part.invoked {
            return Err((Law::StrictEnd, format!("{} was over by {} us", named(&lease), lease.end.1)));
        }
        self.agree(&lease, seen.remaining, Law::ReadsAreTrue).map(|_| ())
    }

    /// A lease that a reader does not see as alive must be able to be over.
    fn unseen(&self, place: usize, law: Law) -> Result<(), Obstacle> {
        let lease = self.table.leases[place];
        if lease.end.0 <= self.part.ended {
            return Ok(());
        }
        Err((law, format!("{} lives until {} us at the least", named(&lease), lease.end.0)))
    }
}

fn named(lease: &Lease) -> String {
    match lease.name {
        Name::Fence(fence) => format!("{fence} ({})", lease.mode),
        Name::Untold { .. } => format!("a lease that nobody was told of ({})", lease.mode),
    }
}
