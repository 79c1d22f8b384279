//! Who waits for whom, worked out from the model: a second opinion on circles of waits.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::kernel::{Holder, LeaseRequest, Resource, Tick, Ticket};

use crate::kernel::model::{LeaseModel, overlaps, request_overlaps};

/// What each waiter waits for, and who is in its way there.
#[derive(Debug, Default)]
pub struct WaitGraph(Vec<WaitNode>);

#[derive(Debug)]
struct WaitNode {
    holder: Holder,
    requests: Vec<LeaseRequest>,
    /// Who else is in the way of each want on each resource.
    blockers: BTreeMap<(usize, Resource), BTreeSet<Holder>>,
    /// Who has each resource, in whatever mode.
    held: BTreeMap<Resource, BTreeSet<Holder>>,
    /// Who waits before it, and for what.
    before: Vec<(Holder, Vec<LeaseRequest>)>,
}

impl WaitGraph {
    /// Everybody's.
    pub fn from_model(model: &LeaseModel, now: Tick) -> WaitGraph {
        let mut graph = WaitGraph::default();
        for wait in model.active_waiters(now) {
            graph.add(model, &wait.holder, &wait.requests, wait.ticket, now);
        }
        graph
    }

    /// One more.
    pub fn add(
        &mut self,
        model: &LeaseModel,
        holder: &Holder,
        requests: &[LeaseRequest],
        ticket: Ticket,
        now: Tick,
    ) {
        let (mut first, mut held) = (BTreeMap::new(), BTreeMap::new());
        for (index, request) in requests.iter().enumerate() {
            for resource in request.resources() {
                let blockers = model.blockers(resource, request.mode, ticket, now);
                let blockers = blockers.into_iter().filter(|other| other != holder).collect();
                first.insert((index, resource.clone()), blockers);
                let leases = model.active_leases(now).filter(|lease| overlaps(&lease.resource, resource));
                held.insert(resource.clone(), leases.map(|lease| lease.holder.clone()).collect());
            }
        }
        let before = model.active_waiters(now).filter(|other| other.ticket < ticket);
        let before = before.map(|other| (other.holder.clone(), other.requests.clone())).collect();
        self.0.push(WaitNode {
            holder: holder.clone(),
            requests: requests.to_vec(),
            blockers: first,
            held,
            before,
        });
    }

    /// Those who never get on: whoever gets what it waits for from those who get on gets on too; these are the rest.
    ///
    /// Tried out one way after the other, with nothing clever.
    fn deadlocked(&self) -> BTreeSet<Holder> {
        let mut stuck: BTreeSet<Holder> = self.0.iter().map(|wait| wait.holder.clone()).collect();
        while let Some(free) = stuck.iter().find(|holder| self.can_proceed(holder, &stuck)).cloned() {
            stuck.remove(&free);
        }
        stuck
    }

    fn can_proceed(&self, holder: &Holder, stuck: &BTreeSet<Holder>) -> bool {
        let mut own = self.0.iter().filter(|wait| wait.holder == *holder);
        own.all(|wait| {
            wait.every_assignment().any(|way| way.iter().all(|place| wait.blockers[place].is_disjoint(stuck)))
                || wait.has_spare_alternative(stuck)
        })
    }

    /// Whether `one` waits for `other`, by a wait that never ends.
    fn is_waiting_for(&self, one: &Holder, other: &Holder) -> bool {
        let mut own = self.0.iter().filter(|wait| wait.holder == *one);
        own.any(|wait| wait.blockers.values().any(|first| first.contains(other)))
    }
}

impl WaitNode {
    /// Whether those who are stuck cannot take all of what will do: who waits for one thing takes one, and who waits for
    /// several is taken to keep all of them.
    fn has_spare_alternative(&self, stuck: &BTreeSet<Holder>) -> bool {
        let [request] = &self.requests[..] else { return false };
        // Who takes a folder takes more than one.
        if request.resources().any(|name| name.as_str().starts_with("FILE:")) {
            return false;
        }
        let stuck_before = || self.before.iter().filter(|(holder, _)| stuck.contains(holder));
        let is_kept = |resource: &Resource| {
            let mut several = stuck_before().filter(|(_, requests)| requests.len() > 1);
            several.any(|(_, requests)| requests.iter().any(|request| request_overlaps(request, resource)))
        };
        let spare = request.resources().filter(|name| self.held[*name].is_disjoint(stuck) && !is_kept(name));
        let spare: Vec<_> = spare.collect();
        let takes = |requests: &[LeaseRequest]| {
            requests.len() == 1 && spare.iter().any(|name| request_overlaps(&requests[0], name))
        };
        spare.len() > stuck_before().filter(|(_, requests)| takes(requests)).count()
    }

    /// Every way in which it could be served: for each want a resource, no resource twice.
    fn every_assignment(&self) -> impl Iterator<Item = Vec<(usize, Resource)>> {
        let mut ways: Vec<Vec<(usize, Resource)>> = vec![Vec::new()];
        for (index, request) in self.requests.iter().enumerate() {
            let longer = ways.into_iter().flat_map(|way| {
                let free =
                    request.resources().filter(|resource| way.iter().all(|(_, taken)| taken != *resource));
                free.map(|resource| [way.clone(), vec![(index, resource.clone())]].concat())
                    .collect::<Vec<_>>()
            });
            ways = longer.collect();
        }
        ways.into_iter()
    }
}

/// Nobody waits for ever.
pub fn check_no_cycle(model: &LeaseModel, now: Tick) {
    let graph = WaitGraph::from_model(model, now);
    let stuck = graph.deadlocked();
    assert!(stuck.is_empty(), "{stuck:?} wait for each other: {graph:?}");
}

/// Each waits for the next, and the last for the first, who is `asking`; and none of them ever gets on.
pub fn check_cycle(cycle: &[Holder], asking: &Holder, graph: &WaitGraph) {
    let mut around = cycle.iter().zip(cycle.iter().cycle().skip(1));
    let real = around.all(|(one, next)| graph.is_waiting_for(one, next));
    assert!(real && cycle.len() > 1 && cycle[0] == *asking, "no such circle: {cycle:?} in {graph:?}");
    let stuck = graph.deadlocked();
    assert!(cycle.iter().all(|holder| stuck.contains(holder)), "not stuck: {cycle:?} in {graph:?}");
}
