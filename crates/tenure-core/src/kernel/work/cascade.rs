//! What hangs together within a decision: whoever ends takes along what was derived from it.

use crate::kernel::decision_builder::DecisionBuilder;
use crate::kernel::event::{Event, RevocationCause};
use crate::kernel::newtypes::{Fence, Tick};
use crate::kernel::state::LeaseEntry;
use crate::rules::time::is_expired;

/// What people read of a lease whose parent ended.
const PARENT_ENDED: &str = "the lease that it was derived from ended";

impl DecisionBuilder<'_> {
    /// Ends everybody below a lease that ends, the youngest first, so that nobody is ever without its parent.
    pub(in crate::kernel) fn end_derived_leases(&mut self, lease: Fence) {
        let state = self.state;
        for fence in state.derived_leases(lease).into_iter().rev() {
            let Some(child) = state.find_lease(fence).filter(|_| !self.has_ended(fence)) else { continue };
            let at = self.now;
            self.push_without_cascade(if is_expired(at.0, child.terms.expires_at.0) {
                Event::Expired { lease: fence, at }
            } else {
                let by = state.principal_of(child.holder).1.clone();
                Event::Revoked {
                    lease: fence,
                    at,
                    cause: RevocationCause::Revoked,
                    by,
                    detail: PARENT_ENDED.into(),
                }
            });
            self.mark_ended(child);
        }
    }

    /// When the lease is over that this one was derived from: it cannot be renewed beyond that.
    pub(in crate::kernel) fn parent_expires_at(&self, lease: &LeaseEntry) -> Option<Tick> {
        let parent: Fence = self.state.work_lease(lease.fence)?.authority.parent?;
        self.state.find_lease(parent).map(|parent| parent.terms.expires_at)
    }

    /// Whether a lease may last until then.
    pub(in crate::kernel) fn can_last_until(&self, lease: &LeaseEntry, expires_at: Tick) -> bool {
        self.parent_expires_at(lease).is_none_or(|end| expires_at <= end)
    }
}
