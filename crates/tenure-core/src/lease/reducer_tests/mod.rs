//! Tests of the reducer, by risk.

mod attacks;
mod clocks;
mod lifecycle;
mod limits;
mod queries;

use prost::Message;

use crate::ledger::EventRecord;
use crate::proto::lease_event::Event;
use crate::proto::{LeaseEvent, LeaseExpired, LeaseIssued, LeaseReleased, LeaseRenewed, LeaseRevoked};
use crate::reducer::{Reducer, ReducerContext};

use super::{HtfTick, Lease, LeaseError, LeaseReducer, LeaseReducerState, REGISTRAR, helpers};

/// Microseconds, as the registrar counts.
const RATE: u64 = 1_000_000;

/// A reducer that is watched: whatever it refuses must leave its state alone, whatever it accepts must
/// leave it whole.
#[derive(Default)]
struct CheckedReducer(LeaseReducer);

impl CheckedReducer {
    /// With `lease-1` on `work-1`, held by alice from 1,000 to 2,000 of the wall clock, without ticks.
    fn with_lease() -> Self {
        let mut watched = Self::default();
        watched.issue("lease-1", "work-1", "alice", 1_000, 2_000).unwrap();
        watched
    }

    /// With `lease-1` on `work-1`, held by alice from tick 100 to tick 200, which is from 1,000,000 to
    /// 1,100,000 of the wall clock.
    fn with_ticks() -> Self {
        let mut watched = Self::default();
        watched.apply_as_registrar(issued_with_ticks(100, 200, RATE)).unwrap();
        watched
    }

    fn state(&self) -> &LeaseReducerState {
        self.0.state()
    }

    fn lease(&self) -> &Lease {
        self.state().get("lease-1").unwrap()
    }

    #[track_caller]
    fn apply(&mut self, event_type: &str, actor_id: &str, payload: Vec<u8>) -> Result<(), LeaseError> {
        let before = self.state().clone();
        let result = self
            .0
            .apply(&EventRecord::new(event_type, "session", actor_id, payload), &ReducerContext::new(1));
        if result.is_err() {
            assert_eq!(*self.state(), before, "a refused event changed the state");
        }
        assert_eq!(self.state().check_invariants(), Ok(()));
        result
    }

    /// What the registrar says.
    #[track_caller]
    fn apply_as_registrar(&mut self, event: Event) -> Result<(), LeaseError> {
        let event_type = match event {
            Event::Issued(_) => "lease.issued",
            Event::Renewed(_) => "lease.renewed",
            Event::Released(_) => panic!("a holder releases"),
            Event::Expired(_) => "lease.expired",
            Event::Conflict(_) => "lease.conflict",
            Event::IssueDenied(_) => "lease.issue_denied",
            Event::Revoked(_) => "lease.revoked",
        };
        self.apply(event_type, REGISTRAR, payload(event))
    }

    #[track_caller]
    fn issue(
        &mut self,
        lease: &str,
        work: &str,
        actor: &str,
        from: u64,
        until: u64,
    ) -> Result<(), LeaseError> {
        let payload = helpers::lease_issued_payload(lease, work, actor, from, until, vec![1, 2, 3]);
        self.apply("lease.issued", REGISTRAR, payload)
    }

    #[track_caller]
    fn renew(&mut self, lease: &str, until: u64) -> Result<(), LeaseError> {
        self.apply("lease.renewed", REGISTRAR, helpers::lease_renewed_payload(lease, until, vec![4, 5, 6]))
    }

    #[track_caller]
    fn release(&mut self, lease: &str, actor: &str) -> Result<(), LeaseError> {
        self.apply("lease.released", actor, helpers::lease_released_payload(lease, "COMPLETED"))
    }

    #[track_caller]
    fn expire(&mut self, lease: &str, at: u64) -> Result<(), LeaseError> {
        self.apply("lease.expired", REGISTRAR, helpers::lease_expired_payload(lease, at))
    }

    #[track_caller]
    fn release_at_tick(&mut self, tick: u64) -> Result<(), LeaseError> {
        let released = LeaseReleased {
            lease_id: "lease-1".into(),
            release_reason: "VOLUNTARY".into(),
            tick,
            ..LeaseReleased::default()
        };
        self.apply("lease.released", "alice", payload(Event::Released(released)))
    }
}

fn payload(event: Event) -> Vec<u8> {
    LeaseEvent { event: Some(event) }.encode_to_vec()
}

fn issued_with_ticks(issued_at_tick: u64, expires_at_tick: u64, tick_rate_hz: u64) -> Event {
    Event::Issued(LeaseIssued {
        lease_id: "lease-1".into(),
        work_id: "work-1".into(),
        actor_id: "alice".into(),
        issued_at: 1_000_000,
        expires_at: 1_100_000,
        registrar_signature: vec![1, 2, 3],
        issued_at_tick,
        expires_at_tick,
        tick_rate_hz,
        ..LeaseIssued::default()
    })
}

/// A renewal at `tick` until `until`, in the registrar's ticks.
fn renewed_at_tick(tick: u64, until: u64) -> LeaseRenewed {
    LeaseRenewed {
        lease_id: "lease-1".into(),
        new_expires_at: 1_200_000,
        registrar_signature: vec![4, 5, 6],
        new_expires_at_tick: until,
        tick_rate_hz: RATE,
        tick,
        ..LeaseRenewed::default()
    }
}

/// An expiry that the wall clock has no objection to.
fn expired_at_tick(tick: u64, tick_rate_hz: u64) -> Event {
    Event::Expired(LeaseExpired { lease_id: "lease-1".into(), expired_at: u64::MAX, tick, tick_rate_hz })
}

fn revoked(cause: i32, tick: u64) -> Event {
    Event::Revoked(LeaseRevoked { lease_id: "lease-1".into(), cause, tick, ..LeaseRevoked::default() })
}

fn not_found(lease_id: &str) -> Result<(), LeaseError> {
    Err(LeaseError::LeaseNotFound { lease_id: lease_id.into() })
}

fn terminal(lease_id: &str, current_state: &str) -> Result<(), LeaseError> {
    let (lease_id, current_state) = (lease_id.into(), current_state.into());
    Err(LeaseError::LeaseAlreadyTerminal { lease_id, current_state })
}

fn unauthorized(actor_id: &str) -> Result<(), LeaseError> {
    Err(LeaseError::Unauthorized { lease_id: "lease-1".into(), actor_id: actor_id.into() })
}

fn too_early(provided: u64, lease_expires_at: u64) -> Result<(), LeaseError> {
    Err(LeaseError::InvalidExpiration { lease_id: "lease-1".into(), provided, lease_expires_at })
}

/// Which field an event was refused for.
#[track_caller]
fn field_of(result: Result<(), LeaseError>) -> String {
    match result {
        Err(LeaseError::InvalidInput { field, .. }) => field,
        other => panic!("{other:?} blames no field"),
    }
}
