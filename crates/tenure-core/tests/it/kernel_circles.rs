//! Who waits for whom, worked out from the model: a second opinion on circles of waits.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::kernel::{Holder, Tick};

use crate::kernel_model::Model;

/// For each that waits, those for whom it waits.
pub type Edges = BTreeMap<Holder, BTreeSet<Holder>>;

/// Who waits for whom: holders of leases in the way, and of older tickets.
pub fn waits_for(model: &Model, now: Tick) -> Edges {
    let mut edges: Edges = BTreeMap::new();
    for wait in model.waiting(now) {
        let first =
            wait.wants.iter().flat_map(|want| model.in_the_way(&want.resource, want.mode, wait.ticket, now));
        edges.entry(wait.holder.clone()).or_default().extend(first.filter(|other| *other != wait.holder));
    }
    edges
}

/// Nobody waits, over others, for itself.
pub fn check_no_circle(model: &Model, now: Tick) {
    let mut edges = waits_for(model, now);
    // Whoever waits for nobody that waits is in no circle; what remains in the end is in one, or behind one.
    while let Some(free) =
        edges.iter().find(|(_, first)| !first.iter().any(|holder| edges.contains_key(holder)))
    {
        let free = free.0.clone();
        edges.remove(&free);
    }
    assert!(edges.is_empty(), "a circle of waits: {edges:?}");
}

/// Whether each waits for the next, and the last for the first, who is `asking`.
pub fn is_circle(cycle: &[Holder], asking: &Holder, edges: &Edges) -> bool {
    let mut around = cycle.iter().zip(cycle.iter().cycle().skip(1));
    let real = around.all(|(one, next)| edges.get(one).is_some_and(|waits| waits.contains(next)));
    real && cycle.len() > 1 && cycle[0] == *asking
}
