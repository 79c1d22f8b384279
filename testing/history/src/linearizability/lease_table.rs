//! The leases of one resource, as far as clients can know them.

use crate::operation::LeaseMode;

use super::resource_operation::NameId;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum FenceBounds {
    Exact(u64),
    /// Nobody was told. Its fence is above and below these, and becomes known if a reader sees it.
    Between {
        above: u64,
        below: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ModelLease {
    pub(super) fence: FenceBounds,
    pub(super) holder: NameId,
    pub(super) mode: LeaseMode,
    /// Its length, between these: a renewal that does not extend does not change it either.
    pub(super) ttl: (u64, u64),
    pub(super) key: Option<NameId>,
    /// It ends at one of these moments, both included, unless something ends it before.
    pub(super) end: (u64, u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum EndKind {
    Expired,
    Released,
}

/// Everything that decides what can come next.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct LeaseTable {
    pub(super) leases: Vec<ModelLease>,
    /// The largest fence that was given out.
    pub(super) last_fence: u64,
    /// The server's decisions have come at least this far.
    pub(super) now: u64,
    /// Keys whose leases nobody was told of, and which are over.
    pub(super) spent_keys: Vec<NameId>,
    /// How leases ended for which somebody will still ask.
    pub(super) ended: Vec<(u64, EndKind)>,
}

impl LeaseTable {
    /// Where the lease with this fence is.
    pub(super) fn find(&self, fence: u64) -> Option<usize> {
        self.leases.iter().position(|lease| lease.fence == FenceBounds::Exact(fence))
    }

    /// Where the lease is that this may be, though nobody was told its fence so far.
    pub(super) fn find_unknown(&self, fence: u64, is_it: impl Fn(&ModelLease) -> bool) -> Option<usize> {
        let fits =
            |name| matches!(name, FenceBounds::Between { above, below } if above < fence && fence < below);
        self.leases.iter().position(|lease| fits(lease.fence) && is_it(lease))
    }

    /// Gives the lease at this place its fence.
    pub(super) fn set_fence(&mut self, place: usize, fence: u64) {
        self.leases[place].fence = FenceBounds::Exact(fence);
        // They stand in the order in which they began.
        for (index, lease) in self.leases.iter_mut().enumerate() {
            match &mut lease.fence {
                FenceBounds::Between { below, .. } if index < place => *below = fence.min(*below),
                FenceBounds::Between { above, .. } => *above = fence.max(*above),
                FenceBounds::Exact(_) => {}
            }
        }
        self.last_fence = self.last_fence.max(fence);
    }

    /// A lease begins. `fence` is nothing where nobody was told.
    pub(super) fn add(&mut self, fence: Option<u64>, lease: ModelLease) {
        let name = match fence {
            Some(fence) => {
                for lease in &mut self.leases {
                    if let FenceBounds::Between { below, .. } = &mut lease.fence {
                        *below = fence.min(*below);
                    }
                }
                self.last_fence = fence;
                FenceBounds::Exact(fence)
            }
            None => FenceBounds::Between { above: self.last_fence, below: u64::MAX },
        };
        self.leases.push(ModelLease { fence: name, ..lease });
    }

    /// How a lease ended that is over, as far as it matters.
    pub(super) fn end_of(&self, fence: u64) -> Option<EndKind> {
        self.ended.iter().find(|(other, _)| *other == fence).map(|(_, ended)| *ended)
    }

    pub(super) fn remove(&mut self, place: usize, ended: EndKind) {
        let lease = self.leases.remove(place);
        match lease.fence {
            FenceBounds::Exact(fence) => {
                self.ended.push((fence, ended));
                self.ended.sort_unstable_by_key(|(fence, _)| *fence);
            }
            FenceBounds::Between { .. } => {
                self.spent_keys.extend(lease.key);
                self.spent_keys.sort_unstable();
            }
        }
    }

    /// Drops what nobody can find alive from `horizon` on, unless somebody will still ask for it by its number.
    pub(super) fn drop_ended(&mut self, horizon: u64, is_requested: impl Fn(u64) -> bool) {
        let is_forgotten = |lease: &ModelLease| {
            let by_number = matches!(lease.fence, FenceBounds::Exact(fence) if is_requested(fence));
            lease.end.1 <= horizon && !by_number
        };
        while let Some(place) = self.leases.iter().position(is_forgotten) {
            self.remove(place, EndKind::Expired);
        }
        self.ended.retain(|(fence, _)| is_requested(*fence));
    }
}
