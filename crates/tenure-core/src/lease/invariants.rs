//! What is true of every projection, whatever was applied to it.

use crate::rules::names::{check_id, check_signature_length};
use crate::rules::time::has_duration;

use super::{Lease, LeaseReducerState, LeaseState};

impl LeaseReducerState {
    /// Says which invariant is broken, if one is.
    ///
    /// Events cannot break one. A checkpoint is checked with this before it is believed, because its bytes
    /// come from outside; so can a program that changes the public fields by hand.
    pub fn check_invariants(&self) -> Result<(), String> {
        for (lease_id, lease) in &self.leases {
            if *lease_id != lease.lease_id {
                return Err(format!("lease {:?} is kept under {lease_id:?}", lease.lease_id));
            }
            invariant_one_lease(lease).map_err(|broken| format!("lease {lease_id:?}: {broken}"))?;
            self.invariant_active_leases_are_indexed(lease)?;
        }
        self.invariant_index_names_active_leases()
    }

    /// INV-0401.
    fn invariant_index_names_active_leases(&self) -> Result<(), String> {
        for (work_id, lease_id) in &self.active_leases_by_work {
            match self.leases.get(lease_id) {
                Some(lease) if lease.is_active() && lease.work_id == *work_id => {}
                Some(lease) => {
                    let (state, held) = (lease.state, &lease.work_id);
                    return Err(format!("work {work_id:?} names lease {lease_id:?}, {state} on {held:?}"));
                }
                None => return Err(format!("work {work_id:?} names lease {lease_id:?}, which is not there")),
            }
        }
        Ok(())
    }

    /// INV-0402: an active lease that the index does not name could be held beside another.
    fn invariant_active_leases_are_indexed(&self, lease: &Lease) -> Result<(), String> {
        let indexed = self.active_leases_by_work.get(&lease.work_id);
        if lease.is_active() && indexed != Some(&lease.lease_id) {
            return Err(format!(
                "work {:?} is held by {:?}, but the index names {indexed:?}",
                lease.work_id, lease.lease_id
            ));
        }
        Ok(())
    }
}

fn invariant_one_lease(lease: &Lease) -> Result<(), String> {
    let valid = check_id("lease_id", &lease.lease_id)
        .and_then(|()| check_id("work_id", &lease.work_id))
        .and_then(|()| check_id("actor_id", &lease.actor_id))
        .and_then(|()| check_signature_length("registrar_signature", &lease.registrar_signature));
    valid.map_err(|error| error.to_string())?;
    let ensure = |holds: bool, law: &str| if holds { Ok(()) } else { Err(law.to_owned()) };

    ensure(!lease.registrar_signature.is_empty(), "is not signed")?;
    ensure(has_duration(lease.issued_at, lease.expires_at), "expires before it is issued")?;
    ensure(
        match (lease.issued_at_tick, lease.expires_at_tick) {
            (None, None) => true,
            (Some(issued), Some(end)) => {
                issued.tick_rate_hz() != 0
                    && issued.same_clock(end)
                    && has_duration(issued.value(), end.value())
            }
            _ => false,
        },
        "its ticks do not belong together",
    )?;
    ensure(
        (lease.renewal_count > 0) == lease.last_renewed_at.is_some(),
        "its count of renewals and the date of the last one disagree",
    )?;
    ensure(
        lease.release_reason.is_some() == (lease.state == LeaseState::Released),
        "a reason belongs to a released lease and to no other",
    )?;
    ensure(
        lease.terminated_at.is_some() == lease.state.is_terminal(),
        "an end belongs to a lease that has ended",
    )?;
    ensure(
        lease.terminated_at.is_none_or(|ended| (lease.issued_at..=lease.expires_at).contains(&ended)),
        "it did not end within its own time",
    )
}
