//! Deadlock detection. A wait that would close a cycle is rejected, because nothing but an expiry would
//! ever end it.
//!
//! A holder makes progress once everything that it waits for is served. A wait is served once each of its requests has a
//! resource of its own that nothing blocks. So a wait may be served as long as it can choose its resources so that all
//! holders that block them make progress. By this rule, which starts from the holders that wait for nothing, all other
//! holders never make progress: each waits for another of them, whatever it chooses.
//!
//! A holder with two waits may be served with one and never with the other. Where it waits for any one of several, it
//! blocks all of them now, and one of them later. So a wait for any one of several is also served if more of
//! them come free than can be taken by holders without progress.
//!
//! Only a new wait, or a lease with another holder, can close a cycle. Serving a waiter cannot: the waiters that it
//! blocks afterwards were blocked by it before.
//!
//! A holder that waits for its own lease is not a cycle: the bearer of that lease's token may still release it, and a
//! name that several processes share is common.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::assignment::find_matching;
use super::decision_builder::{DecisionBuilder, QueuePosition};
use super::lease_request::{LeaseRequest, assign_resource_numbers};
use crate::kernel::api_decisions;
use crate::kernel::state::{LeaseEntry, QueueEntry, Slot};
use crate::rules::overlap::{is_hierarchical, overlaps};
use crate::value::{Holder, LeaseMode, Resource, Ticket};

impl DecisionBuilder<'_> {
    /// The circle that `holder` would close by waiting for `requests` behind everybody else: each one waits for
    /// the next, and the last for the first.
    pub(crate) fn find_cycle(&self, holder: &Holder, requests: &[LeaseRequest]) -> Option<Vec<Holder>> {
        // Nobody waits for somebody who holds nothing and waits for nothing.
        let own = self.state.find_holder(holder).filter(|own| !self.state.is_holder_idle(*own))?;
        WaitForGraph { builder: self, candidate: Some((own, requests)), transferred: None }
            .shortest_cycle_through(own)
    }

    /// The circle that would come of `to` getting `lease`, which somebody else no longer has.
    pub(crate) fn find_cycle_after_transfer(&self, lease: &LeaseEntry, to: &Holder) -> Option<Vec<Holder>> {
        let to = self.state.find_holder(to)?;
        let handed = Some((self.state.resource_name(lease.resource), lease.terms.mode, to));
        WaitForGraph { builder: self, candidate: None, transferred: handed }.shortest_cycle_through(to)
    }
}

/// Who waits for whom, if something were so that is not yet.
struct WaitForGraph<'d, 'a> {
    builder: &'d DecisionBuilder<'a>,
    /// Somebody also waits for these, behind everybody else.
    candidate: Option<(Slot, &'d [LeaseRequest])>,
    /// A lease: on what, how, and whose.
    transferred: Option<(&'d Resource, LeaseMode, Slot)>,
}

/// Holders of whom none gets on, and what they wait for.
struct Deadlock {
    holders: BTreeSet<Slot>,
    tickets: BTreeSet<Ticket>,
}

impl<'d> WaitForGraph<'d, '_> {
    /// The shortest circle through `start` of those who never get on, if it is one of them.
    fn shortest_cycle_through(&self, start: Slot) -> Option<Vec<Holder>> {
        let (circle, reached) = self.search(start, None);
        let circle = circle?;
        let has_alternatives = |holder: &Slot| {
            self.requests_of(*holder)
                .any(|(requests, _)| requests.iter().any(|request| !request.alternatives.is_empty()))
        };
        // Without alternatives, every holder in a circle is stuck in it.
        let circle = if reached.iter().any(has_alternatives) {
            let stuck = self.deadlocked_among(reached);
            self.search(start, Some(&stuck)).0?
        } else {
            circle
        };
        Some(circle.into_iter().map(|slot| self.builder.state.holder_name(slot).clone()).collect())
    }

    /// Follows who waits for whom from `start`, and only among `within` and their hopeless waits if that is given. The
    /// shortest way back, and everybody who was met, `start` too.
    fn search(&self, start: Slot, within: Option<&Deadlock>) -> (Option<Vec<Slot>>, BTreeSet<Slot>) {
        let mut came_from: BTreeMap<Slot, Slot> = BTreeMap::new();
        let mut circle = None;
        let mut next = VecDeque::from([start]);
        let mut known = VisitedQueues::default();
        while let Some(slot) = next.pop_front() {
            let waited_for = match within {
                None => self.new_blockers_of(slot, start, &mut known),
                Some(stuck) => self.blockers_within(slot, stuck),
            };
            if slot != start && circle.is_none() && waited_for.contains(&start) {
                let back = std::iter::successors(Some(slot), |slot| came_from.get(slot).copied());
                let mut path: Vec<Slot> = back.collect();
                path.reverse();
                circle = Some(path);
            }
            for other in waited_for {
                if other != start && !came_from.contains_key(&other) {
                    came_from.insert(other, slot);
                    next.push_back(other);
                }
            }
        }
        (circle, came_from.into_keys().chain([start]).collect())
    }

    /// Those who never get on. `holders` are all that any of them waits for.
    fn deadlocked_among(&self, holders: BTreeSet<Slot>) -> Deadlock {
        let tickets = |holder: Slot| self.requests_of(holder).filter_map(|(_, place)| place.before);
        // Who came first is asked first: those behind it know about it then, and few rounds are needed.
        let mut rest: Vec<Slot> = holders.iter().copied().collect();
        let mut stuck = Deadlock { tickets: rest.iter().copied().flat_map(tickets).collect(), holders };
        rest.sort_unstable_by_key(|holder| {
            self.requests_of(*holder).filter_map(|(_, place)| place.before).min()
        });
        loop {
            let before = rest.len();
            rest.retain(|holder| {
                let mut entries = self.requests_of(*holder);
                let gets_on =
                    entries.all(|(requests, place)| self.can_be_served(*holder, requests, place, &stuck));
                if gets_on {
                    stuck.holders.remove(holder);
                    for ticket in tickets(*holder) {
                        stuck.tickets.remove(&ticket);
                    }
                }
                !gets_on
            });
            if rest.len() == before {
                return stuck;
            }
        }
    }

    /// Whether there is a resource for each request on which no deadlocked holder is in the way.
    fn can_be_served(
        &self,
        holder: Slot,
        requests: &[LeaseRequest],
        place: QueuePosition,
        stuck: &Deadlock,
    ) -> bool {
        let comes_free = |resource: &Resource, mode: LeaseMode| {
            self.holders_ahead_on(resource, mode, place)
                .all(|other| other == holder || !stuck.holders.contains(&other))
        };
        let some =
            |request: &LeaseRequest| request.resources().any(|resource| comes_free(resource, request.mode));
        match requests {
            [only] => return some(only) || self.has_spare_alternative(only, place, stuck),
            requests if requests.iter().all(|request| request.alternatives.is_empty()) => {
                return requests.iter().all(some);
            }
            _ => {}
        }
        let numbers = assign_resource_numbers(requests);
        let will_do = requests.iter().map(|request| {
            let free = request.resources().filter(|resource| comes_free(resource, request.mode));
            free.map(|resource| numbers[resource]).collect()
        });
        find_matching(&will_do.collect::<Vec<Vec<usize>>>()).is_ok()
    }

    /// Whether more of the resources that will do come free than those who are stuck can take. Each wait of theirs for one
    /// thing takes one, as soon as it is free, and is in nobody's way on the others then. How they want it does not
    /// matter: who is in the way of one who is in the way is so too.
    fn has_spare_alternative(
        &self,
        request: &'d LeaseRequest,
        place: QueuePosition,
        stuck: &Deadlock,
    ) -> bool {
        // Who takes a folder takes more than one, so these cannot be counted.
        if request.resources().any(|resource| is_hierarchical(resource.as_str())) {
            return false;
        }
        let is_free = |resource: &&Resource| !self.is_held_by_deadlocked(resource, stuck);
        let mut free: BTreeSet<&Resource> = request.resources().filter(is_free).collect();
        let first = stuck.tickets.iter().take_while(|ticket| place.is_after(**ticket));
        let first = first.filter_map(|ticket| self.builder.state.queue_entry(*ticket)).collect::<Vec<_>>();
        // Who waits for several things is in the way on each until it has all of them.
        let several =
            first.iter().map(|waiting| &waiting.queued.requests).filter(|requests| requests.len() > 1);
        for resource in several.flatten().flat_map(LeaseRequest::resources) {
            free.remove(resource);
        }
        let takes_one = |waiting: &&&QueueEntry| match &waiting.queued.requests[..] {
            [only] => only.resources().any(|resource| free.contains(resource)),
            _ => false,
        };
        free.len() > first.iter().filter(takes_one).take(free.len()).count()
    }

    /// Whether one of those who are stuck has it.
    fn is_held_by_deadlocked(&self, resource: &Resource, stuck: &Deadlock) -> bool {
        let (decision, state) = (self.builder, self.builder.state);
        let leases = state.leases_overlapping(resource).filter(|lease| decision.is_active(lease));
        let granted = decision
            .issued_leases_overlapping(resource)
            .filter_map(|issued| state.find_holder(&issued.holder));
        let handed = self
            .transferred
            .filter(|(other, _, _)| overlaps(other.as_str(), resource.as_str()))
            .map(|(_, _, to)| to);
        let mut holders = leases.map(|lease| lease.holder).chain(granted).chain(handed);
        holders.any(|holder| stuck.holders.contains(&holder))
    }

    /// Whom `holder` waits for, itself not among them, unless they are known from somebody who stands behind it: the
    /// queues of a pool are nearly the same, and need not be walked once for each who stands in them.
    fn new_blockers_of(&self, holder: Slot, start: Slot, known: &mut VisitedQueues<'d>) -> Vec<Slot> {
        let mut ahead = Vec::new();
        for (requests, place) in self.requests_of(holder) {
            for (resource, mode) in resources_with_modes(requests) {
                if known.get(&(resource, mode)).is_some_and(|walked| walked.is_at_or_after(place)) {
                    continue;
                }
                let first = ahead.len();
                ahead.extend(self.holders_ahead_on(resource, mode, place));
                // Who is in its own way would not be met again, and has to be: the way back leads to it.
                if holder != start || !ahead[first..].contains(&start) {
                    known.insert((resource, mode), place);
                }
            }
        }
        dedup_except(ahead, holder)
    }

    /// Whom of those who are stuck `holder` waits for, itself not among them, by what keeps it from getting on.
    fn blockers_within(&self, holder: Slot, stuck: &Deadlock) -> Vec<Slot> {
        let mut entries = self.requests_of(holder).collect::<Vec<_>>();
        entries.retain(|(requests, place)| !self.can_be_served(holder, requests, *place, stuck));
        let ahead = entries.into_iter().flat_map(|(requests, place)| {
            resources_with_modes(requests)
                .flat_map(move |(resource, mode)| self.holders_ahead_on(resource, mode, place))
        });
        dedup_except(ahead.filter(|slot| stuck.holders.contains(slot)), holder)
    }

    /// What `holder` waits for, and from where in the queue.
    fn requests_of(&self, holder: Slot) -> impl Iterator<Item = (&'d [LeaseRequest], QueuePosition)> {
        let decision = self.builder;
        let asking = self.candidate.filter(|(own, _)| *own == holder);
        let asking = asking.map(|(_, requests)| (requests, QueuePosition::default()));
        let entries =
            decision.state.queue_entries_of(holder).filter(move |waiting| decision.is_waiting(waiting));
        let entries = entries.map(|waiting| {
            let queued = &waiting.queued;
            (&queued.requests[..], QueuePosition { before: Some(queued.ticket) })
        });
        let files = api_decisions::requests_behind_queue(decision, holder);
        let files = files.map(|request| (std::slice::from_ref(request), QueuePosition::default()));
        asking.into_iter().chain(entries).chain(files)
    }

    fn holders_ahead_on(
        &self,
        resource: &'d Resource,
        mode: LeaseMode,
        place: QueuePosition,
    ) -> impl Iterator<Item = Slot> {
        let decision = self.builder;
        let blockers = decision.blockers(resource, mode, place);
        let known = blockers.filter_map(|blocker| decision.state.find_holder(blocker.holder));
        let handed = self.transferred.filter(|(other, held, _)| {
            overlaps(other.as_str(), resource.as_str()) && !held.is_compatible(mode)
        });
        known.chain(handed.map(|(_, _, holder)| holder))
    }
}

/// How far from the front each queue was walked, for somebody who wants the resource like this.
type VisitedQueues<'d> = BTreeMap<(&'d Resource, LeaseMode), QueuePosition>;

fn resources_with_modes(requests: &[LeaseRequest]) -> impl Iterator<Item = (&Resource, LeaseMode)> {
    requests.iter().flat_map(|request| request.resources().map(|resource| (resource, request.mode)))
}

/// In the order of leases and tickets: how holders lie in memory must not show in an answer.
fn dedup_except(slots: impl IntoIterator<Item = Slot>, but: Slot) -> Vec<Slot> {
    let mut seen = BTreeSet::from([but]);
    slots.into_iter().filter(|slot| seen.insert(*slot)).collect()
}
