//! What the events add up to, and what one can ask of it.

use std::collections::HashMap;

use super::{HtfTick, Lease, LeaseState};
use crate::rules::{check_id, check_signature_length, has_duration, is_expired};

/// Every lease that the reducer has seen and nobody has pruned, and who holds what now.
///
/// Lists come in the order of lease ids, so that the same state always gives the same answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaseReducerState {
    /// Lease id to lease.
    pub leases: HashMap<String, Lease>,
    /// Work id to the id of the lease that holds it. INV-0401: that lease is there, and active.
    /// INV-0402: a work id stands here once at most, so two can never hold it.
    pub active_leases_by_work: HashMap<String, String>,
}

impl LeaseReducerState {
    /// Nothing was ever issued.
    pub fn new() -> Self {
        Self::default()
    }

    /// The lease with this id, in whatever state.
    pub fn get(&self, lease_id: &str) -> Option<&Lease> {
        self.leases.get(lease_id)
    }

    /// CTR-0401: the active lease on this work item, if there is one.
    ///
    /// Active is what the events say. Whether its time is up is asked with [`Lease::is_expired_at_tick`].
    pub fn get_active_lease_for_work(&self, work_id: &str) -> Option<&Lease> {
        self.get(self.active_leases_by_work.get(work_id)?).filter(|lease| lease.is_active())
    }

    /// Whether this work item has an active lease.
    pub fn has_active_lease(&self, work_id: &str) -> bool {
        self.get_active_lease_for_work(work_id).is_some()
    }

    /// Every active lease.
    pub fn active_leases(&self) -> Vec<&Lease> {
        self.leases_where(Lease::is_active)
    }

    /// Every lease that this actor holds or held.
    pub fn leases_by_actor(&self, actor_id: &str) -> Vec<&Lease> {
        self.leases_where(|lease| lease.actor_id == actor_id)
    }

    /// Active leases that are over at `current_tick`: those for which `lease.expired` is due.
    ///
    /// A lease without ticks, or with another rate, is always among them, because it cannot be shown to
    /// live. One without ticks can still only be expired by wall time; see [`super::LeaseReducer`].
    pub fn get_expired_but_active_at_tick(&self, current_tick: &HtfTick) -> Vec<&Lease> {
        self.leases_where(|lease| lease.is_active() && lease.is_expired_at_tick(current_tick))
    }

    /// Active leases that by wall time are over at the Unix nanosecond `current_time`.
    #[deprecated(note = "a wall clock can be set; ask get_expired_but_active_at_tick")]
    pub fn get_expired_but_active(&self, current_time: u64) -> Vec<&Lease> {
        self.leases_where(|lease| lease.is_expired_by_wall_clock(current_time))
    }

    /// How many leases there are, in whatever state.
    pub fn len(&self) -> usize {
        self.leases.len()
    }

    /// Whether there is no lease, in whatever state.
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// How many are active.
    pub fn active_count(&self) -> usize {
        self.count(LeaseState::Active)
    }

    /// How many were released or revoked.
    pub fn released_count(&self) -> usize {
        self.count(LeaseState::Released)
    }

    /// How many ran out.
    pub fn expired_count(&self) -> usize {
        self.count(LeaseState::Expired)
    }

    /// How many have ended, either way.
    pub fn terminal_count(&self) -> usize {
        self.leases.values().filter(|lease| lease.state.is_terminal()).count()
    }

    /// CTR-0402: forgets every lease that has ended, and says how many those were.
    ///
    /// With a lease its id is forgotten: from then on it is the ledger that must see to it that an old
    /// `lease.issued` is not appended again.
    pub fn prune_terminal_leases(&mut self) -> usize {
        self.prune(|_| true)
    }

    /// CTR-0403: forgets every lease that ended before the Unix nanosecond `before_timestamp`, going by
    /// its `terminated_at`, and says how many those were.
    pub fn prune_terminal_leases_before(&mut self, before_timestamp: u64) -> usize {
        self.prune(|lease| lease.terminated_at.is_some_and(|ended| !is_expired(ended, before_timestamp)))
    }

    fn leases_where(&self, predicate: impl Fn(&Lease) -> bool) -> Vec<&Lease> {
        let mut found: Vec<&Lease> = self.leases.values().filter(|lease| predicate(lease)).collect();
        found.sort_unstable_by(|one, other| one.lease_id.cmp(&other.lease_id));
        found
    }

    fn count(&self, state: LeaseState) -> usize {
        self.leases.values().filter(|lease| lease.state == state).count()
    }

    // The index names active leases only, so nothing in it can be left dangling.
    fn prune(&mut self, old: impl Fn(&Lease) -> bool) -> usize {
        let before = self.leases.len();
        self.leases.retain(|_, lease| !(lease.state.is_terminal() && old(lease)));
        before - self.leases.len()
    }
}

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
