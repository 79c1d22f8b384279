//! The four examples of the lease module, from outside, with what they only print.

use tenure_core::lease::{LeaseError, LeaseReducer, LeaseState, ReleaseReason, helpers};
use tenure_core::ledger::EventRecord;
use tenure_core::reducer::{Reducer, ReducerContext};

fn apply(
    reducer: &mut LeaseReducer,
    event_type: &str,
    actor: &str,
    payload: Vec<u8>,
) -> Result<(), LeaseError> {
    reducer.apply(&EventRecord::new(event_type, "session-1", actor, payload), &ReducerContext::new(1))
}

fn with_lease() -> LeaseReducer {
    let mut reducer = LeaseReducer::new();
    let signature = vec![1, 2, 3, 4];
    let payload = helpers::lease_issued_payload(
        "lease-001",
        "work-001",
        "agent-001",
        1_000_000_000,
        2_000_000_000,
        signature,
    );
    apply(&mut reducer, "lease.issued", "registrar", payload).unwrap();
    reducer
}

// S2-103
#[test]
fn issued_lease_is_active() {
    let reducer = with_lease();
    let lease = reducer.state().get("lease-001").unwrap();
    assert_eq!(lease.state, LeaseState::Active);
    assert!(reducer.state().has_active_lease("work-001"));
}

// S2-104
#[test]
fn lease_can_be_renewed_released_and_issued_again() {
    let mut reducer = with_lease();
    let payload = helpers::lease_renewed_payload("lease-001", 3_000_000_000, vec![5, 6, 7, 8]);
    apply(&mut reducer, "lease.renewed", "registrar", payload).unwrap();
    let lease = reducer.state().get("lease-001").unwrap();
    assert_eq!((lease.expires_at, lease.renewal_count), (3_000_000_000, 1));
    assert_eq!(lease.registrar_signature, [5, 6, 7, 8]);

    let payload = helpers::lease_released_payload("lease-001", "COMPLETED");
    apply(&mut reducer, "lease.released", "agent-001", payload).unwrap();
    let lease = reducer.state().get("lease-001").unwrap();
    assert_eq!((lease.state, lease.release_reason), (LeaseState::Released, Some(ReleaseReason::Completed)));
    assert!(!reducer.state().has_active_lease("work-001"));

    let payload = helpers::lease_issued_payload(
        "lease-002",
        "work-001",
        "agent-002",
        3_000_000_000,
        4_000_000_000,
        vec![1],
    );
    apply(&mut reducer, "lease.issued", "registrar", payload).unwrap();
    assert_eq!(reducer.state().get_active_lease_for_work("work-001").unwrap().actor_id, "agent-002");
}

// S2-105
#[test]
fn ended_lease_can_be_pruned() {
    let mut reducer = with_lease();
    let payload = helpers::lease_released_payload("lease-001", "COMPLETED");
    apply(&mut reducer, "lease.released", "agent-001", payload).unwrap();
    assert_eq!(reducer.state_mut().prune_terminal_leases_before(1_500_000_000), 0, "its time was until 2 s");
    assert_eq!(reducer.state_mut().prune_terminal_leases(), 1);
    assert!(reducer.state().is_empty());
}

// S2-106, S2-97
#[test]
#[expect(deprecated, reason = "the example has no ticks")]
fn expired_active_lease_is_detected_and_expired() {
    let mut reducer = with_lease();
    let now = 2_500_000_000;
    let expired: Vec<String> =
        reducer.state().get_expired_but_active(now).iter().map(|lease| lease.lease_id.clone()).collect();
    assert_eq!(expired, ["lease-001"]);
    for lease_id in expired {
        let payload = helpers::lease_expired_payload(&lease_id, now);
        apply(&mut reducer, "lease.expired", "registrar", payload).unwrap();
    }
    let lease = reducer.state().get("lease-001").unwrap();
    assert_eq!((lease.state, lease.terminated_at), (LeaseState::Expired, Some(2_000_000_000)));
    assert!(reducer.state().get_expired_but_active(now).is_empty());
}
