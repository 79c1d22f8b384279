//! The wait graph: which holder waits for which, over all APIs.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::kernel::{Holder, KernelState, LeaseMode, Resource, Tick};
use tenure_core::rules::is_expired;
use tenure_core::rules::overlap::ResourcePattern;

use super::view::conflicting_leases;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edge<'a> {
    pub(super) from: &'a Holder,
    pub(super) to: &'a Holder,
    pub(super) resource: &'a Resource,
    pub(super) mode: LeaseMode,
    /// Whether the other has it; else it waits in front.
    pub(super) is_held: bool,
    /// Whether one of several resources is enough, and this is one of them.
    pub(super) one_of_several: bool,
    pub(super) until: Tick,
}

/// Somebody who waits for one resource.
struct WaitingRequest<'a> {
    holder: &'a Holder,
    resource: &'a Resource,
    mode: LeaseMode,
    one_of_several: bool,
    until: Tick,
    /// The wait that it is part of: who has a smaller number is in front.
    wait: usize,
}

/// Who waits for whom, as [`Graph::edges`] tells it.
pub(super) struct Graph<'a> {
    state: &'a KernelState,
    now: Tick,
    /// In the order in which they are served: agents by their age, then the others as they came.
    waiting_requests: Vec<WaitingRequest<'a>>,
    index: Index<'a>,
}

impl<'a> Graph<'a> {
    /// Of everybody who waits at `now`.
    pub(super) fn new(state: &'a KernelState, now: Tick) -> Self {
        let waiting_requests = waiting_requests(state, now);
        let index = Index::new(&waiting_requests);
        Self { state, now, waiting_requests, index }
    }

    /// Everybody who waits, each with who is in the way: who has something that does not go with what it wants, and who waits
    /// for such a thing in front of it. One after the other, for there may be many.
    pub(super) fn edges(&self) -> impl Iterator<Item = Edge<'a>> {
        self.waiting_requests.iter().flat_map(|waiting| self.edges_of(waiting)).chain(self.edges_of_files())
    }

    /// Who wants a file that another session has. Nothing is kept for it, so it is in nobody's way.
    fn edges_of_files(&self) -> impl Iterator<Item = Edge<'a>> {
        let (state, now) = (self.state, self.now);
        state.retry_tickets().flat_map(move |ticket| {
            let holders = conflicting_leases(state, &ticket.request.resource, ticket.request.mode, now);
            let other_holders = holders.map(|lease| lease.holder).filter(|holder| **holder != ticket.session);
            let edge = |to: &'a Holder| Edge {
                from: &ticket.session,
                to,
                resource: &ticket.request.resource,
                mode: ticket.request.mode,
                is_held: true,
                one_of_several: false,
                until: ticket.retry_at,
            };
            other_holders.map(edge).collect::<Vec<_>>()
        })
    }

    fn edges_of(&self, request: &WaitingRequest<'a>) -> Vec<Edge<'a>> {
        let held = conflicting_leases(self.state, request.resource, request.mode, self.now)
            .map(|lease| lease.holder);
        let first = self.index.overlapping(request.resource).map(|place| &self.waiting_requests[place]);
        let first =
            first.filter(|other| other.wait < request.wait && !other.mode.is_compatible(request.mode));
        let ahead = held.map(|holder| (true, holder)).chain(first.map(|other| (false, other.holder)));
        let ahead: BTreeSet<_> = ahead.filter(|(_, holder)| *holder != request.holder).collect();
        // Who has it comes first.
        let edge = |(is_held, to): (bool, &'a Holder)| Edge {
            from: request.holder,
            to,
            resource: request.resource,
            mode: request.mode,
            is_held,
            one_of_several: request.one_of_several,
            until: request.until,
        };
        ahead.into_iter().rev().map(edge).collect()
    }
}

fn waiting_requests(state: &KernelState, now: Tick) -> Vec<WaitingRequest<'_>> {
    let mut all = Vec::new();
    let pending = state.waiting_agents().filter(|pending| !is_expired(now.0, pending.until.0));
    let mut wait = 0;
    for pending in pending {
        wait += 1;
        all.extend(pending.requests.iter().map(|request| WaitingRequest {
            holder: &pending.rank.agent,
            resource: &request.resource,
            mode: request.mode,
            one_of_several: false,
            until: pending.until,
            wait,
        }));
    }
    for ticket in state.queue_tickets().filter(|ticket| !is_expired(now.0, ticket.until.0)) {
        wait += 1;
        for request in ticket.requests {
            all.extend(request.resources().map(|resource| WaitingRequest {
                holder: ticket.holder,
                resource,
                mode: request.mode,
                one_of_several: !request.alternatives.is_empty(),
                until: ticket.until,
                wait,
            }));
        }
    }
    all
}

/// Finds who waits for something that has something in common with a resource, without asking everybody.
struct Index<'a> {
    by_literal_prefix: BTreeMap<&'a str, Vec<(usize, bool)>>,
    /// How long the beginnings of folders and patterns are.
    prefix_sizes: BTreeSet<usize>,
}

impl<'a> Index<'a> {
    fn new(requests: &[WaitingRequest<'a>]) -> Self {
        let mut index = Self { by_literal_prefix: BTreeMap::new(), prefix_sizes: BTreeSet::new() };
        for (place, request) in requests.iter().enumerate() {
            let reach = ResourcePattern::from_name(request.resource.as_str());
            let is_below = matches!(reach, ResourcePattern::Prefix(_));
            if is_below {
                index.prefix_sizes.insert(reach.literal().len());
            }
            index.by_literal_prefix.entry(reach.literal()).or_default().push((place, is_below));
        }
        index
    }

    fn overlapping<'b>(&'b self, resource: &'b Resource) -> impl Iterator<Item = usize> + 'b {
        let reach = ResourcePattern::from_name(resource.as_str());
        let literal = reach.literal();
        let is_below = matches!(reach, ResourcePattern::Prefix(_));
        let above = self.prefix_sizes.range(..literal.len()).filter_map(move |length| literal.get(..*length));
        let above = above.filter_map(|beginning| self.by_literal_prefix.get(beginning)).flatten();
        let above = above.filter(|(_, is_below)| *is_below);
        let from = self.by_literal_prefix.range(literal..);
        let inside =
            from.take_while(
                move |(beginning, _)| {
                    if is_below { beginning.starts_with(literal) } else { **beginning == literal }
                },
            );
        above.chain(inside.flat_map(|(_, places)| places)).map(|(place, _)| *place)
    }
}

#[cfg(test)]
mod tests;
