//! The oracle: the kernel and the reducer of the work API read the same ledger, and must agree.

use super::codec::stored_work_id;
use super::outcome::LeaseEnd;
use super::state::{KernelState, LeaseView, ensure};
use crate::lease::{Lease, LeaseReducerState, LeaseState, ReleaseReason};
use crate::rules::is_stored_as;

impl KernelState {
    /// Compares every lease with what `reducer` made of the same events. The error names the difference.
    pub fn check_against_reducer(&self, reducer: &LeaseReducerState) -> Result<(), String> {
        let counts = (self.lease_count(), reducer.active_count());
        ensure(counts.0 == counts.1, || format!("live leases: {counts:?}"))?;
        for view in self.leases_from(super::Fence(0)) {
            let id = self.ledger_tag().lease_id(view.fence);
            let lease = reducer.get(&id).ok_or_else(|| format!("{id}: only the kernel knows it"))?;
            let wrong = |what: &str| format!("{id}: {what}: kernel {view:?}, reducer {lease:?}");
            compare_lease(&view, lease).map_err(wrong)?;
            let work = stored_work_id(view.resource, view.terms.mode, &id);
            let active = reducer.get_active_lease_for_work(&work).map(|lease| lease.lease_id.as_str());
            ensure(lease.work_id == work && active == Some(&id), || wrong("resource"))?;
        }
        for ended in self.ended_leases() {
            let id = self.ledger_tag().lease_id(ended.fence);
            // The reducer may have been pruned; the kernel remembers by its own rule.
            let Some(lease) = reducer.get(&id) else { continue };
            let expected = match ended.end {
                LeaseEnd::Released(reason) => (LeaseState::Released, Some(reason)),
                LeaseEnd::Revoked(_) => (LeaseState::Released, Some(ReleaseReason::Aborted)),
                LeaseEnd::Expired => (LeaseState::Expired, None),
            };
            let found = (lease.state, lease.release_reason);
            ensure(found == expected, || format!("{id}: ended as {expected:?}, reducer {found:?}"))?;
        }
        Ok(())
    }
}

fn compare_lease(view: &LeaseView<'_>, lease: &Lease) -> Result<(), &'static str> {
    let tick = |tick: Option<crate::lease::HtfTick>| tick.map(|tick| tick.value());
    let checks = [
        (lease.state == LeaseState::Active, "state"),
        (is_stored_as(view.holder.as_str(), &lease.actor_id), "holder"),
        (tick(lease.issued_at_tick) == Some(view.terms.issued_at.0), "beginning"),
        (tick(lease.expires_at_tick) == Some(view.terms.expires_at.0), "end"),
        (lease.renewal_count == view.terms.renewals, "renewals"),
    ];
    checks.into_iter().try_for_each(|(holds, what)| if holds { Ok(()) } else { Err(what) })
}
