//! Who waits for whom, over all faces.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::kernel::{Holder, Mode, Resource, State, Tick};
use tenure_core::rules::overlap::Reach;
use tenure_core::rules::time::is_over;

use super::view::holders_apart;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edge<'a> {
    pub(super) from: &'a Holder,
    pub(super) to: &'a Holder,
    pub(super) resource: &'a Resource,
    pub(super) mode: Mode,
    /// Whether the other has it; else it waits in front.
    pub(super) is_held: bool,
    /// Whether one of several resources is enough, and this is one of them.
    pub(super) one_of_several: bool,
    pub(super) until: Tick,
}

/// Somebody who waits for one resource.
struct Wanting<'a> {
    holder: &'a Holder,
    resource: &'a Resource,
    mode: Mode,
    one_of_several: bool,
    until: Tick,
    /// The wait that it is part of: who has a smaller number is in front.
    wait: usize,
}

/// Who waits for whom, as [`Graph::edges`] tells it.
pub(super) struct Graph<'a> {
    state: &'a State,
    now: Tick,
    /// In the order in which they are served: agents by their age, then the others as they came.
    wanting: Vec<Wanting<'a>>,
    index: Index<'a>,
}

impl<'a> Graph<'a> {
    /// Of everybody who waits at `now`.
    pub(super) fn new(state: &'a State, now: Tick) -> Self {
        let wanting = wanting(state, now);
        let index = Index::new(&wanting);
        Self { state, now, wanting, index }
    }

    /// Everybody who waits, each with who is in the way: who has something that does not go with what it wants, and who waits
    /// for such a thing in front of it. One after the other, for there may be many.
    pub(super) fn edges(&self) -> impl Iterator<Item = Edge<'a>> {
        self.wanting.iter().flat_map(|want| self.edges_of(want)).chain(self.edges_of_files())
    }

    /// Who wants a file that another session has. Nothing is kept for it, so it is in nobody's way.
    fn edges_of_files(&self) -> impl Iterator<Item = Edge<'a>> {
        let (state, now) = (self.state, self.now);
        state.file_tickets().flat_map(move |ticket| {
            let holders = holders_apart(state, &ticket.want.resource, ticket.want.mode, now);
            let others = holders.map(|lease| lease.holder).filter(|holder| **holder != ticket.session);
            let edge = |to: &'a Holder| Edge {
                from: &ticket.session,
                to,
                resource: &ticket.want.resource,
                mode: ticket.want.mode,
                is_held: true,
                one_of_several: false,
                until: ticket.retry_at,
            };
            others.map(edge).collect::<Vec<_>>()
        })
    }

    fn edges_of(&self, want: &Wanting<'a>) -> Vec<Edge<'a>> {
        let held = holders_apart(self.state, want.resource, want.mode, self.now).map(|lease| lease.holder);
        let first = self.index.meeting(want.resource).map(|place| &self.wanting[place]);
        let first = first.filter(|other| other.wait < want.wait && !other.mode.goes_with(want.mode));
        let ahead = held.map(|holder| (true, holder)).chain(first.map(|other| (false, other.holder)));
        let ahead: BTreeSet<_> = ahead.filter(|(_, holder)| *holder != want.holder).collect();
        // Who has it comes first.
        let edge = |(is_held, to): (bool, &'a Holder)| Edge {
            from: want.holder,
            to,
            resource: want.resource,
            mode: want.mode,
            is_held,
            one_of_several: want.one_of_several,
            until: want.until,
        };
        ahead.into_iter().rev().map(edge).collect()
    }
}

fn wanting(state: &State, now: Tick) -> Vec<Wanting<'_>> {
    let mut all = Vec::new();
    let pending = state.pending().filter(|pending| !is_over(now.0, pending.until.0));
    let mut wait = 0;
    for pending in pending {
        wait += 1;
        all.extend(pending.wants.iter().map(|want| Wanting {
            holder: &pending.rank.agent,
            resource: &want.resource,
            mode: want.mode,
            one_of_several: false,
            until: pending.until,
            wait,
        }));
    }
    for ticket in state.tickets().filter(|ticket| !is_over(now.0, ticket.until.0)) {
        wait += 1;
        for want in ticket.wants {
            all.extend(want.resources().map(|resource| Wanting {
                holder: ticket.holder,
                resource,
                mode: want.mode,
                one_of_several: !want.others.is_empty(),
                until: ticket.until,
                wait,
            }));
        }
    }
    all
}

/// Finds who waits for something that has something in common with a resource, without asking everybody.
struct Index<'a> {
    by_beginning: BTreeMap<&'a str, Vec<(usize, bool)>>,
    /// How long the beginnings of folders and patterns are.
    lengths: BTreeSet<usize>,
}

impl<'a> Index<'a> {
    fn new(wanting: &[Wanting<'a>]) -> Self {
        let mut index = Self { by_beginning: BTreeMap::new(), lengths: BTreeSet::new() };
        for (place, want) in wanting.iter().enumerate() {
            let reach = Reach::of(want.resource.as_str());
            let is_below = matches!(reach, Reach::Below(_));
            if is_below {
                index.lengths.insert(reach.literal().len());
            }
            index.by_beginning.entry(reach.literal()).or_default().push((place, is_below));
        }
        index
    }

    fn meeting<'b>(&'b self, resource: &'b Resource) -> impl Iterator<Item = usize> + 'b {
        let reach = Reach::of(resource.as_str());
        let literal = reach.literal();
        let is_below = matches!(reach, Reach::Below(_));
        let above = self.lengths.range(..literal.len()).filter_map(move |length| literal.get(..*length));
        let above = above.filter_map(|beginning| self.by_beginning.get(beginning)).flatten();
        let above = above.filter(|(_, is_below)| *is_below);
        let from = self.by_beginning.range(literal..);
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
