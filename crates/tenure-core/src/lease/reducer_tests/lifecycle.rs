//! What happens to a lease between its issue and its end.

use super::*;
use crate::lease::{LeaseState, ReleaseReason};
use crate::proto::{LeaseConflict, LeaseIssueDenied};

// S2-16 to S2-28: every field after an issue; S2-6, S2-19, S2-51
#[test]
fn issued_lease_has_the_fields_of_its_event() {
    let watched = CheckedReducer::with_ticks();
    let expected = Lease {
        lease_id: "lease-1".into(),
        work_id: "work-1".into(),
        actor_id: "alice".into(),
        state: LeaseState::Active,
        issued_at: 1_000_000,
        expires_at: 1_100_000,
        issued_at_tick: Some(HtfTick::new(100, RATE)),
        expires_at_tick: Some(HtfTick::new(200, RATE)),
        registrar_signature: vec![1, 2, 3],
        renewal_count: 0,
        last_renewed_at: None,
        release_reason: None,
        terminated_at: None,
    };
    assert_eq!(*watched.lease(), expected);
    // S2-44, S2-45
    assert_eq!(watched.state().leases.get("lease-1"), Some(&expected));
    assert_eq!(watched.state().active_leases_by_work.get("work-1").map(String::as_str), Some("lease-1"));
}

// S2-6, S2-104
#[test]
fn renewal_changes_only_the_expiry() {
    let mut watched = CheckedReducer::with_lease();
    let before = watched.lease().clone();
    watched.renew("lease-1", 3_000).unwrap();
    let expected = Lease {
        expires_at: 3_000,
        registrar_signature: vec![4, 5, 6],
        renewal_count: 1,
        last_renewed_at: Some(2_000),
        ..before
    };
    assert_eq!(*watched.lease(), expected);
}

// S2-6, S2-51, S2-104
#[test]
fn released_work_item_can_be_leased_again() {
    let mut watched = CheckedReducer::with_lease();
    watched.release("lease-1", "alice").unwrap();
    assert_eq!(watched.lease().state, LeaseState::Released);
    assert_eq!(watched.lease().release_reason, Some(ReleaseReason::Completed));
    assert!(!watched.state().has_active_lease("work-1"));
    watched.issue("lease-2", "work-1", "bob", 1_500, 2_500).unwrap();
    assert_eq!(watched.state().get_active_lease_for_work("work-1").unwrap().actor_id, "bob");
}

// S2-6, S2-51
#[test]
fn expired_work_item_can_be_leased_after_the_expiry_event() {
    let mut watched = CheckedReducer::with_lease();
    // Time alone frees nothing here: the event does.
    let held = watched.issue("lease-2", "work-1", "bob", 5_000, 6_000);
    assert!(matches!(held, Err(LeaseError::WorkAlreadyLeased { .. })));
    watched.expire("lease-1", 5_000).unwrap();
    assert_eq!(watched.lease().state, LeaseState::Expired);
    assert_eq!(watched.lease().release_reason, None);
    watched.issue("lease-2", "work-1", "bob", 5_000, 6_000).unwrap();
}

// S2-13, S2-15: three reasons, one effect
#[test]
fn release_reason_is_recorded_and_has_no_effect() {
    for (input, kept) in [
        ("completed", ReleaseReason::Completed),
        ("Aborted", ReleaseReason::Aborted),
        ("VOLUNTARY", ReleaseReason::Voluntary),
    ] {
        let mut watched = CheckedReducer::with_lease();
        watched.apply("lease.released", "alice", helpers::lease_released_payload("lease-1", input)).unwrap();
        assert_eq!(watched.lease().release_reason, Some(kept));
        assert_eq!(
            (watched.lease().state, watched.lease().terminated_at),
            (LeaseState::Released, Some(2_000))
        );
        assert!(!watched.state().has_active_lease("work-1"));
    }
}

// S2-9, S2-10, S2-51, S2-57, S2-61
#[test]
fn events_on_an_ended_lease_are_rejected() {
    let mut released = CheckedReducer::with_lease();
    released.release("lease-1", "alice").unwrap();
    let mut expired = CheckedReducer::with_lease();
    expired.expire("lease-1", 2_000).unwrap();
    for (mut watched, state) in [(released, "RELEASED"), (expired, "EXPIRED")] {
        assert_eq!(watched.renew("lease-1", 9_000), terminal("lease-1", state));
        assert_eq!(watched.release("lease-1", "alice"), terminal("lease-1", state));
        assert_eq!(watched.expire("lease-1", 9_000), terminal("lease-1", state));
        assert_eq!(watched.apply_as_registrar(revoked(1, 0)), terminal("lease-1", state));
        let again = watched.issue("lease-1", "work-1", "alice", 3_000, 4_000);
        assert_eq!(again, Err(LeaseError::LeaseAlreadyExists { lease_id: "lease-1".into() }));
    }
}

// S2-60
#[test]
fn events_on_an_unknown_lease_are_rejected() {
    let mut watched = CheckedReducer::with_lease();
    assert_eq!(watched.renew("lease-9", 9_000), not_found("lease-9"));
    assert_eq!(watched.release("lease-9", "alice"), not_found("lease-9"));
    assert_eq!(watched.expire("lease-9", 9_000), not_found("lease-9"));
    let revoked = LeaseRevoked { lease_id: "lease-9".into(), cause: 1, ..LeaseRevoked::default() };
    assert_eq!(watched.apply_as_registrar(Event::Revoked(revoked)), not_found("lease-9"));
}

// S2-36
#[test]
fn renewal_count_saturates() {
    let mut watched = CheckedReducer::with_lease();
    let lease = watched.0.state_mut().leases.get_mut("lease-1").unwrap();
    lease.renewal_count = u32::MAX - 1;
    lease.last_renewed_at = Some(1_500);
    for until in [3_000, 4_000, 5_000] {
        watched.renew("lease-1", until).unwrap();
        assert_eq!(watched.lease().renewal_count, u32::MAX);
    }
}

// S2-67: 1,999 and 2,000 give no more than 2,000 does
#[test]
fn renewal_that_does_not_extend_is_rejected() {
    for until in [0, 1_999, 2_000] {
        let mut watched = CheckedReducer::with_lease();
        let refused = LeaseError::RenewalDoesNotExtend {
            lease_id: "lease-1".into(),
            current_expires_at: 2_000,
            new_expires_at: until,
        };
        assert_eq!(watched.renew("lease-1", until), Err(refused));
    }
    assert_eq!(CheckedReducer::with_lease().renew("lease-1", 2_001), Ok(()));
}

// O-14
#[test]
fn audit_events_change_nothing() {
    let mut watched = CheckedReducer::with_lease();
    let before = watched.state().clone();
    let ids = vec!["lease-1".to_owned(), "lease-2".to_owned()];
    let conflict = helpers::lease_conflict_payload("work-1", ids, "lease-1 keeps it");
    watched.apply("lease.conflict", REGISTRAR, conflict).unwrap();
    watched.apply_as_registrar(Event::Conflict(LeaseConflict::default())).unwrap();
    watched
        .apply_as_registrar(Event::IssueDenied(LeaseIssueDenied {
            work_id: "work-1".into(),
            ..Default::default()
        }))
        .unwrap();
    assert_eq!(*watched.state(), before);
}

// S2-2, S2-53
#[test]
fn events_of_other_reducers_change_nothing() {
    let mut watched = CheckedReducer::with_lease();
    let before = watched.state().clone();
    let payload = helpers::lease_released_payload("lease-1", "COMPLETED");
    for event_type in ["wait.queued", "lease", "work.released", ""] {
        watched.apply(event_type, "alice", payload.clone()).unwrap();
    }
    assert_eq!(*watched.state(), before);
}

// S2-75
#[test]
fn reset_returns_to_the_empty_state() {
    let mut watched = CheckedReducer::with_lease();
    assert_eq!(watched.0.name(), "lease-registrar");
    watched.0.reset();
    assert_eq!(*watched.state(), LeaseReducerState::new());
    assert_eq!(watched.0, LeaseReducer::new());
    watched.issue("lease-1", "work-1", "alice", 1, 2).unwrap();
}

// S2-4
#[test]
fn reducer_restored_from_a_checkpoint_continues_identically() {
    let mut first = CheckedReducer::with_ticks();
    let bytes = first.state().to_checkpoint();
    let mut second =
        CheckedReducer(LeaseReducer::with_state(LeaseReducerState::from_checkpoint(&bytes).unwrap()));
    for watched in [&mut first, &mut second] {
        watched.apply_as_registrar(Event::Renewed(renewed_at_tick(150, 300))).unwrap();
        watched.release_at_tick(160).unwrap();
    }
    assert_eq!(first.0, second.0);
}
