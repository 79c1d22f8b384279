//! The leases of one resource, as far as clients can know them.

use crate::operation::Mode;

use super::part::Number;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Name {
    Fence(u64),
    /// Nobody was told. Its fence is above and below these, and becomes known if a reader sees it.
    Untold {
        above: u64,
        below: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Lease {
    pub(super) name: Name,
    pub(super) holder: Number,
    pub(super) mode: Mode,
    /// Its length, between these: a renewal that does not extend does not change it either.
    pub(super) ttl: (u64, u64),
    pub(super) key: Option<Number>,
    /// It ends at one of these moments, both included, unless something ends it before.
    pub(super) end: (u64, u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Ended {
    RanOut,
    Released,
}

/// Everything that decides what can come next.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Table {
    pub(super) leases: Vec<Lease>,
    /// The largest fence that was given out.
    pub(super) last_fence: u64,
    /// The server's decisions have come at least this far.
    pub(super) now: u64,
    /// Keys whose leases nobody was told of, and which are over.
    pub(super) spent: Vec<Number>,
    /// How leases ended for which somebody will still ask.
    pub(super) ended: Vec<(u64, Ended)>,
}

impl Table {
    /// Where the lease with this fence is.
    pub(super) fn find(&self, fence: u64) -> Option<usize> {
        self.leases.iter().position(|lease| lease.name == Name::Fence(fence))
    }

    /// Where the lease is that this may be, though nobody was told its fence so far.
    pub(super) fn find_untold(&self, fence: u64, is_it: impl Fn(&Lease) -> bool) -> Option<usize> {
        let fits = |name| matches!(name, Name::Untold { above, below } if above < fence && fence < below);
        self.leases.iter().position(|lease| fits(lease.name) && is_it(lease))
    }

    /// Gives the lease at this place its fence.
    pub(super) fn tell(&mut self, place: usize, fence: u64) {
        self.leases[place].name = Name::Fence(fence);
        // They stand in the order in which they began.
        for (index, lease) in self.leases.iter_mut().enumerate() {
            match &mut lease.name {
                Name::Untold { below, .. } if index < place => *below = fence.min(*below),
                Name::Untold { above, .. } => *above = fence.max(*above),
                Name::Fence(_) => {}
            }
        }
        self.last_fence = self.last_fence.max(fence);
    }

    /// A lease begins. `fence` is nothing where nobody was told.
    pub(super) fn add(&mut self, fence: Option<u64>, lease: Lease) {
        let name = match fence {
            Some(fence) => {
                for lease in &mut self.leases {
                    if let Name::Untold { below, .. } = &mut lease.name {
                        *below = fence.min(*below);
                    }
                }
                self.last_fence = fence;
                Name::Fence(fence)
            }
            None => Name::Untold { above: self.last_fence, below: u64::MAX },
        };
        self.leases.push(Lease { name, ..lease });
    }

    /// How a lease ended that is over, as far as it matters.
    pub(super) fn end_of(&self, fence: u64) -> Option<Ended> {
        self.ended.iter().find(|(other, _)| *other == fence).map(|(_, ended)| *ended)
    }

    pub(super) fn remove(&mut self, place: usize, ended: Ended) {
        let lease = self.leases.remove(place);
        match lease.name {
            Name::Fence(fence) => {
                self.ended.push((fence, ended));
                self.ended.sort_unstable_by_key(|(fence, _)| *fence);
            }
            Name::Untold { .. } => {
                self.spent.extend(lease.key);
                self.spent.sort_unstable();
            }
        }
    }

    /// Drops what nobody can find alive from `horizon` on, unless somebody will still ask for it by its number.
    pub(super) fn forget(&mut self, horizon: u64, is_asked_for: impl Fn(u64) -> bool) {
        let is_forgotten = |lease: &Lease| {
            let by_number = matches!(lease.name, Name::Fence(fence) if is_asked_for(fence));
            lease.end.1 <= horizon && !by_number
        };
        while let Some(place) = self.leases.iter().position(is_forgotten) {
            self.remove(place, Ended::RanOut);
        }
        self.ended.retain(|(fence, _)| is_asked_for(*fence));
    }
}
