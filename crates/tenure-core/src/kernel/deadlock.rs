//! Who waits for whom. A wait that would close a circle is refused, because nothing but an expiry would
//! ever end it.
//!
//! A holder that waits for its own lease is not a circle: whoever has that lease's token may still give it
//! back, and a name that several processes share is common.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::command::Want;
use super::draft::{Draft, Place};
use super::name::Holder;
use super::state::{Slot, Waiting};

impl Draft<'_> {
    /// The circle that `holder` would close by waiting for `wants` behind everybody else: each one waits for
    /// the next, and the last for the first.
    pub(crate) fn circle(&self, holder: &Holder, wants: &[Want]) -> Option<Vec<Holder>> {
        // Nobody waits for somebody who holds nothing and waits for nothing.
        let own = self.state.find_holder(holder)?;
        let behind_all = Place::default();
        let ahead = wants.iter().flat_map(|want| self.blockers(want, behind_all));
        let first: Vec<Slot> = ahead.filter_map(|blocker| self.state.find_holder(blocker.holder)).collect();
        self.path(own, first, &BTreeSet::from([own]))
    }

    /// The circle that would come of `to` getting a lease for which `waiters` wait.
    pub(crate) fn circle_by_handing_to(&self, to: &Holder, waiters: &[Slot]) -> Option<Vec<Holder>> {
        let start = self.state.find_holder(to)?;
        let others = waiters.iter().copied().filter(|waiter| *waiter != start).collect();
        self.path(start, self.waited_for_by(start), &others)
    }

    /// The shortest way from `start` over `next` to one of `goals`, along who waits for whom.
    fn path(&self, start: Slot, next: Vec<Slot>, goals: &BTreeSet<Slot>) -> Option<Vec<Holder>> {
        let mut came_from: BTreeMap<Slot, Slot> = BTreeMap::new();
        let mut reached = VecDeque::new();
        let visit = |from: Slot, to: Vec<Slot>, came_from: &mut BTreeMap<_, _>, reached: &mut VecDeque<_>| {
            for slot in to {
                if slot != from && slot != start && came_from.get(&slot).is_none() {
                    came_from.insert(slot, from);
                    reached.push_back(slot);
                }
            }
        };
        visit(start, next, &mut came_from, &mut reached);
        while let Some(slot) = reached.pop_front() {
            let waited_for = self.waited_for_by(slot);
            let closes = goals.contains(&start) && waited_for.contains(&start);
            if goals.contains(&slot) || closes {
                let back = std::iter::successors(Some(slot), |slot| came_from.get(slot).copied());
                let mut path: Vec<_> = back.map(|slot| self.state.holder_name(slot).clone()).collect();
                path.reverse();
                return Some(path);
            }
            visit(slot, waited_for, &mut came_from, &mut reached);
        }
        None
    }

    fn waited_for_by(&self, holder: Slot) -> Vec<Slot> {
        let waits = self.state.waits_of(holder).filter(|waiting| self.waits(waiting));
        let mut ahead: Vec<Slot> = waits.flat_map(|waiting| self.ahead_of(waiting)).collect();
        // In the order of leases and tickets: how holders lie in memory must not show in an answer.
        let mut seen = BTreeSet::new();
        ahead.retain(|slot| seen.insert(*slot));
        ahead
    }

    fn ahead_of(&self, waiting: &Waiting) -> Vec<Slot> {
        let place = Place { before: Some(waiting.queued.ticket) };
        let ahead = waiting.queued.wants.iter().flat_map(|want| self.blockers(want, place));
        ahead.filter_map(|blocker| self.state.find_holder(blocker.holder)).collect()
    }
}
