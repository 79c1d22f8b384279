//! Events that are well-formed but not permitted.

use super::*;
use crate::lease::{LeaseState, ReleaseReason};
use crate::proto::RevocationCause;

// S2-1, S2-54, S2-59
#[test]
fn two_actors_cannot_hold_one_work_item() {
    let mut watched = CheckedReducer::with_lease();
    for actor in ["bob", "alice"] {
        let refused = watched.issue("lease-2", "work-1", actor, 1_500, 2_500).unwrap_err();
        assert_eq!(
            refused,
            LeaseError::WorkAlreadyLeased { work_id: "work-1".into(), existing_lease_id: "lease-1".into() }
        );
    }
    assert_eq!(watched.state().get_active_lease_for_work("work-1").unwrap().actor_id, "alice");
    watched.issue("lease-2", "work-2", "bob", 1_500, 2_500).unwrap();
}

// S2-34, S2-55, S2-69: even for other work, and with the same content
#[test]
fn reused_lease_id_is_rejected() {
    let mut watched = CheckedReducer::with_lease();
    for work in ["work-1", "work-2"] {
        let refused = watched.issue("lease-1", work, "alice", 1_000, 2_000).unwrap_err();
        assert_eq!(refused, LeaseError::LeaseAlreadyExists { lease_id: "lease-1".into() });
    }
}

// S2-58, S2-70, S2-101: not even the registrar, which has an event of its own
#[test]
fn release_by_another_actor_is_rejected() {
    let mut watched = CheckedReducer::with_lease();
    for actor in ["mallory", "Alice", "alice ", "", REGISTRAR] {
        assert_eq!(watched.release("lease-1", actor), unauthorized(actor), "{actor:?}");
    }
    assert!(watched.state().has_active_lease("work-1"));
    watched.release("lease-1", "alice").unwrap();
}

// S2-63, S2-94: a right actor with a wrong reason; a foreign one does not learn that the reason is wrong too
#[test]
fn release_with_an_unknown_reason_is_rejected() {
    let mut watched = CheckedReducer::with_lease();
    let payload = helpers::lease_released_payload("lease-1", "BECAUSE");
    assert_eq!(
        watched.apply("lease.released", "alice", payload.clone()),
        Err(LeaseError::InvalidReleaseReason { value: "BECAUSE".into() })
    );
    assert_eq!(watched.apply("lease.released", "mallory", payload), unauthorized("mallory"));
    assert!(watched.lease().is_active());
}

// S2-71, S2-100
#[test]
fn expire_before_the_expiry_is_rejected() {
    let mut watched = CheckedReducer::with_lease();
    for at in [0, 1, 1_999] {
        assert_eq!(watched.expire("lease-1", at), too_early(at, 2_000));
        assert_eq!(watched.lease().state, LeaseState::Active);
    }
    watched.expire("lease-1", 2_000).unwrap();
}

// S2-100: the end that counts is the one after the renewal
#[test]
fn expire_at_the_expiry_before_renewal_is_rejected() {
    let mut watched = CheckedReducer::with_lease();
    watched.renew("lease-1", 3_000).unwrap();
    assert_eq!(watched.expire("lease-1", 2_999), too_early(2_999, 3_000));
    watched.expire("lease-1", 3_000).unwrap();
}

// S2-37, S2-50, S2-102
#[test]
fn late_expiry_does_not_delay_pruning() {
    let mut watched = CheckedReducer::with_lease();
    watched.expire("lease-1", u64::MAX).unwrap();
    assert_eq!(watched.lease().terminated_at, Some(2_000));
    assert_eq!(watched.0.state_mut().prune_terminal_leases_before(2_000), 0);
    assert_eq!(watched.0.state_mut().prune_terminal_leases_before(2_001), 1);
}

// S2-102: nor by a release or a revocation with a tick of its own choosing
#[test]
fn late_release_or_revocation_does_not_delay_pruning() {
    for tick in [0, 99, 200, u64::MAX] {
        let mut released = CheckedReducer::with_ticks();
        released.release_at_tick(tick).unwrap();
        let mut taken = CheckedReducer::with_ticks();
        taken.apply_as_registrar(revoked(RevocationCause::Wiped.into(), tick)).unwrap();
        for mut watched in [released, taken] {
            assert_eq!(watched.lease().terminated_at, Some(1_100_000), "tick {tick}");
            assert_eq!(watched.0.state_mut().prune_terminal_leases_before(1_100_001), 1);
        }
    }
}

#[test]
fn termination_time_is_computed_from_the_release_tick() {
    for (tick, wall) in [(100, 1_000_000), (101, 1_001_000), (199, 1_099_000)] {
        let mut watched = CheckedReducer::with_ticks();
        watched.release_at_tick(tick).unwrap();
        assert_eq!(watched.lease().terminated_at, Some(wall));
    }
}

// S2-7, S2-56, S2-66, S2-95
#[test]
fn unsigned_lease_or_renewal_is_rejected() {
    let missing = Err(LeaseError::MissingSignature { lease_id: "lease-1".into() });
    let unsigned = helpers::lease_issued_payload("lease-1", "work-1", "alice", 1_000, 2_000, vec![]);
    assert_eq!(CheckedReducer::default().apply("lease.issued", REGISTRAR, unsigned), missing);

    let mut watched = CheckedReducer::with_lease();
    let unsigned = helpers::lease_renewed_payload("lease-1", 3_000, vec![]);
    assert_eq!(watched.apply("lease.renewed", REGISTRAR, unsigned), missing);
    assert_eq!(watched.lease().expires_at, 2_000);
}

// S2-65, S2-95: a forged signature passes here, and has to be caught where the event is appended
#[test]
fn reducer_does_not_verify_signatures() {
    let forged = helpers::lease_issued_payload("lease-1", "work-1", "alice", 1_000, 2_000, vec![0]);
    assert_eq!(CheckedReducer::default().apply("lease.issued", REGISTRAR, forged), Ok(()));
}

// S2-35
#[test]
fn lease_without_duration_is_rejected() {
    for (from, until) in [(1_000, 1_000), (1_000, 999), (u64::MAX, 0), (0, 0)] {
        let refused = CheckedReducer::default().issue("lease-1", "work-1", "alice", from, until);
        assert_eq!(field_of(refused), "expires_at", "{from} to {until}");
    }
    assert_eq!(CheckedReducer::default().issue("lease-1", "work-1", "alice", 0, 1), Ok(()));
    assert_eq!(CheckedReducer::default().issue("lease-1", "work-1", "alice", u64::MAX - 1, u64::MAX), Ok(()));
}

// S2-96: who relies on the reducer alone after pruning is deceived
#[test]
fn pruned_lease_id_can_be_issued_again() {
    let mut watched = CheckedReducer::with_lease();
    watched.release("lease-1", "alice").unwrap();
    assert_eq!(watched.0.state_mut().prune_terminal_leases(), 1);
    assert_eq!(watched.release("lease-1", "alice"), not_found("lease-1"));
    assert_eq!(watched.issue("lease-1", "work-1", "mallory", 1_000, 2_000), Ok(()));
}

// S2-94
#[test]
fn revoke_by_another_actor_is_rejected() {
    let mut watched = CheckedReducer::with_ticks();
    let event = || payload(revoked(RevocationCause::Revoked.into(), 150));
    for actor in ["alice", "mallory", "Registrar", ""] {
        assert_eq!(watched.apply("lease.revoked", actor, event()), unauthorized(actor));
    }
    watched.apply("lease.revoked", REGISTRAR, event()).unwrap();
    let lease = watched.lease();
    assert_eq!((lease.state, lease.release_reason), (LeaseState::Released, Some(ReleaseReason::Aborted)));
    assert_eq!(lease.terminated_at, Some(1_050_000));
    assert!(!watched.state().has_active_lease("work-1"));
}

// S2-94
#[test]
fn revoke_without_a_cause_is_rejected() {
    for cause in [RevocationCause::Unspecified.into(), 7, -1, i32::MAX] {
        assert_eq!(
            field_of(CheckedReducer::with_lease().apply_as_registrar(revoked(cause, 0))),
            "cause",
            "{cause}"
        );
    }
    for cause in 1..=6 {
        assert_eq!(CheckedReducer::with_lease().apply_as_registrar(revoked(cause, 0)), Ok(()));
    }
}

// The order of checks is part of the promise: which error one gets must not depend on the version.
#[test]
fn first_failing_check_is_reported() {
    let issued = |lease: &str, work: &str, signature: Vec<u8>, until: u64| {
        let payload = helpers::lease_issued_payload(lease, work, "alice", 1_000, until, signature);
        CheckedReducer::with_lease().apply("lease.issued", REGISTRAR, payload).unwrap_err()
    };
    let (all, none) = (vec![1; 513], vec![]);
    assert!(matches!(issued("lease-1", "work-1", all, 0), LeaseError::InvalidInput { .. }));
    assert!(matches!(issued("lease-1", "work-1", none.clone(), 0), LeaseError::LeaseAlreadyExists { .. }));
    assert!(matches!(issued("lease-2", "work-1", none.clone(), 0), LeaseError::WorkAlreadyLeased { .. }));
    assert!(matches!(issued("lease-2", "work-2", none, 0), LeaseError::MissingSignature { .. }));
    assert!(matches!(issued("lease-2", "work-2", vec![1], 0), LeaseError::InvalidInput { .. }));
    let Event::Issued(mut neither) = issued_with_ticks(5, 5, RATE) else { unreachable!() };
    neither.expires_at = 0;
    assert_eq!(
        field_of(CheckedReducer::default().apply_as_registrar(Event::Issued(neither))),
        "expires_at",
        "before the ticks"
    );

    let unsigned = |until| helpers::lease_renewed_payload("lease-1", until, vec![]);
    let renewed = CheckedReducer::with_lease().apply("lease.renewed", REGISTRAR, unsigned(2_000));
    assert!(matches!(renewed, Err(LeaseError::RenewalDoesNotExtend { .. })));
    let mut ended = CheckedReducer::with_lease();
    ended.release("lease-1", "alice").unwrap();
    assert_eq!(ended.apply("lease.renewed", REGISTRAR, unsigned(2_000)), terminal("lease-1", "RELEASED"));
    assert_eq!(ended.release("lease-1", "mallory"), terminal("lease-1", "RELEASED"));
    assert_eq!(ended.expire("lease-1", 0), terminal("lease-1", "RELEASED"));
}
