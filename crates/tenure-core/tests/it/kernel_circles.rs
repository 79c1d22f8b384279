//! Who waits for whom, worked out from the model: a second opinion on circles of waits.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::kernel::{Holder, Resource, Tick, Ticket, Want};

use crate::kernel_model::{Model, meet, touches};

/// What each waiter waits for, and who is in its way there.
#[derive(Debug, Default)]
pub struct Waits(Vec<Wait>);

#[derive(Debug)]
struct Wait {
    holder: Holder,
    wants: Vec<Want>,
    /// Who else is in the way of each want on each resource.
    first: BTreeMap<(usize, Resource), BTreeSet<Holder>>,
    /// Who has each resource, in whatever mode.
    held: BTreeMap<Resource, BTreeSet<Holder>>,
    /// Who waits before it, and for what.
    before: Vec<(Holder, Vec<Want>)>,
}

impl Waits {
    /// Everybody's.
    pub fn of(model: &Model, now: Tick) -> Waits {
        let mut waits = Waits::default();
        for wait in model.waiting(now) {
            waits.add(model, &wait.holder, &wait.wants, wait.ticket, now);
        }
        waits
    }

    /// One more.
    pub fn add(&mut self, model: &Model, holder: &Holder, wants: &[Want], ticket: Ticket, now: Tick) {
        let (mut first, mut held) = (BTreeMap::new(), BTreeMap::new());
        for (index, want) in wants.iter().enumerate() {
            for resource in want.resources() {
                let others = model.in_the_way(resource, want.mode, ticket, now);
                let others = others.into_iter().filter(|other| other != holder).collect();
                first.insert((index, resource.clone()), others);
                let leases = model.live(now).filter(|lease| meet(&lease.resource, resource));
                held.insert(resource.clone(), leases.map(|lease| lease.holder.clone()).collect());
            }
        }
        let before = model.waiting(now).filter(|other| other.ticket < ticket);
        let before = before.map(|other| (other.holder.clone(), other.wants.clone())).collect();
        self.0.push(Wait { holder: holder.clone(), wants: wants.to_vec(), first, held, before });
    }

    /// Those who never get on: whoever gets what it waits for from those who get on gets on too; these are the rest.
    ///
    /// Tried out one way after the other, with nothing clever.
    fn stuck(&self) -> BTreeSet<Holder> {
        let mut stuck: BTreeSet<Holder> = self.0.iter().map(|wait| wait.holder.clone()).collect();
        while let Some(free) = stuck.iter().find(|holder| self.gets_on(holder, &stuck)).cloned() {
            stuck.remove(&free);
        }
        stuck
    }

    fn gets_on(&self, holder: &Holder, stuck: &BTreeSet<Holder>) -> bool {
        let mut own = self.0.iter().filter(|wait| wait.holder == *holder);
        own.all(|wait| {
            wait.every_way().any(|way| way.iter().all(|place| wait.first[place].is_disjoint(stuck)))
                || wait.is_left_one(stuck)
        })
    }

    /// Whether `one` waits for `other`, by a wait that never ends.
    fn waits_for(&self, one: &Holder, other: &Holder) -> bool {
        let mut own = self.0.iter().filter(|wait| wait.holder == *one);
        own.any(|wait| wait.first.values().any(|first| first.contains(other)))
    }
}

impl Wait {
    /// Whether those who are stuck cannot take all of what will do: who waits for one thing takes one, and who waits for
    /// several is taken to keep all of them.
    fn is_left_one(&self, stuck: &BTreeSet<Holder>) -> bool {
        let [want] = &self.wants[..] else { return false };
        // Who takes a folder takes more than one.
        if want.resources().any(|name| name.as_str().starts_with("FILE:")) {
            return false;
        }
        let stuck_before = || self.before.iter().filter(|(holder, _)| stuck.contains(holder));
        let is_kept = |resource: &Resource| {
            let mut several = stuck_before().filter(|(_, wants)| wants.len() > 1);
            several.any(|(_, wants)| wants.iter().any(|want| touches(want, resource)))
        };
        let left = want.resources().filter(|name| self.held[*name].is_disjoint(stuck) && !is_kept(name));
        let left: Vec<_> = left.collect();
        let takes = |wants: &[Want]| wants.len() == 1 && left.iter().any(|name| touches(&wants[0], name));
        left.len() > stuck_before().filter(|(_, wants)| takes(wants)).count()
    }

    /// Every way in which it could be served: for each want a resource, no resource twice.
    fn every_way(&self) -> impl Iterator<Item = Vec<(usize, Resource)>> {
        let mut ways: Vec<Vec<(usize, Resource)>> = vec![Vec::new()];
        for (index, want) in self.wants.iter().enumerate() {
            let longer = ways.into_iter().flat_map(|way| {
                let free =
                    want.resources().filter(|resource| way.iter().all(|(_, taken)| taken != *resource));
                free.map(|resource| [way.clone(), vec![(index, resource.clone())]].concat())
                    .collect::<Vec<_>>()
            });
            ways = longer.collect();
        }
        ways.into_iter()
    }
}

/// Nobody waits for ever.
pub fn check_no_circle(model: &Model, now: Tick) {
    let waits = Waits::of(model, now);
    let stuck = waits.stuck();
    assert!(stuck.is_empty(), "{stuck:?} wait for each other: {waits:?}");
}

/// Each waits for the next, and the last for the first, who is `asking`; and none of them ever gets on.
pub fn judge_circle(cycle: &[Holder], asking: &Holder, waits: &Waits) {
    let mut around = cycle.iter().zip(cycle.iter().cycle().skip(1));
    let real = around.all(|(one, next)| waits.waits_for(one, next));
    assert!(real && cycle.len() > 1 && cycle[0] == *asking, "no such circle: {cycle:?} in {waits:?}");
    let stuck = waits.stuck();
    assert!(cycle.iter().all(|holder| stuck.contains(holder)), "not stuck: {cycle:?} in {waits:?}");
}
