//! Checkpoints that must not be believed, with digests that do match.

use super::*;

fn lease(lease_id: &str, work_id: &str) -> StoredLease {
    StoredLease {
        lease_id: lease_id.into(),
        work_id: work_id.into(),
        actor_id: "alice".into(),
        state: "ACTIVE".into(),
        issued_at: 10,
        expires_at: 20,
        issued_at_tick: Some(StoredTick { value: 1, tick_rate_hz: 1_000 }),
        expires_at_tick: Some(StoredTick { value: 2, tick_rate_hz: 1_000 }),
        registrar_signature: vec![1],
        ..StoredLease::default()
    }
}

fn read_version(version: u32, leases: Vec<StoredLease>) -> Result<LeaseReducerState, LeaseError> {
    let body = CheckpointBody { leases }.encode_to_vec();
    let mut bytes = version.to_be_bytes().to_vec();
    bytes.extend_from_slice(digest(version, &body).as_bytes());
    bytes.extend_from_slice(&body);
    LeaseReducerState::from_checkpoint(&bytes)
}

fn read(leases: Vec<StoredLease>) -> Result<LeaseReducerState, LeaseError> {
    read_version(VERSION, leases)
}

#[track_caller]
fn check_rejected_with(reason: &str, leases: Vec<StoredLease>) {
    let error = read(leases).unwrap_err().to_string();
    assert!(error.contains(reason), "{error:?} does not say {reason:?}");
}

// S2-4
#[test]
fn index_is_rebuilt_from_the_leases() {
    let state = read(vec![lease("l1", "w1"), lease("l2", "w2")]).unwrap();
    assert_eq!(state.get_active_lease_for_work("w2").map(|lease| lease.lease_id.as_str()), Some("l2"));
    assert_eq!(state.check_invariants(), Ok(()));
}

// S2-4: the first version's bytes, which every later program still has to read
#[test]
fn version_1_bytes_are_stable() {
    let mut released = lease("l1", "w1");
    released.state = "RELEASED".into();
    released.release_reason = Some("COMPLETED".into());
    released.terminated_at = Some(15);
    released.renewal_count = 3;
    released.last_renewed_at = Some(12);
    let body = CheckpointBody { leases: vec![released.clone()] }.encode_to_vec();
    let expected: &[u8] = b"\x0A\x3F\x0A\x02l1\x12\x02w1\x1A\x05alice\x22\x08RELEASED\x28\x0A\x30\x14\
        \x3A\x05\x08\x01\x10\xE8\x07\x42\x05\x08\x02\x10\xE8\x07\x4A\x01\x01\x50\x03\x58\x0C\x62\x09COMPLETED\x68\x0F";
    assert_eq!(body, expected);
    let bytes = read(vec![released]).unwrap().to_checkpoint();
    assert_eq!(bytes[..4], [0, 0, 0, 1]);
    assert_eq!(bytes[36..], *expected);
}

// S2-4
#[test]
fn unknown_version_is_rejected() {
    for version in [0, 2, u32::MAX] {
        let error = read_version(version, vec![]).unwrap_err().to_string();
        assert!(error.contains(&format!("has version {version}")), "{error}");
    }
}

// S2-46, S2-47
#[test]
fn two_active_leases_on_one_work_item_are_rejected() {
    assert_eq!(
        read(vec![lease("l1", "w"), lease("l2", "w")]),
        Err(LeaseError::WorkAlreadyLeased { work_id: "w".into(), existing_lease_id: "l1".into() })
    );
}

// S2-34
#[test]
fn duplicate_lease_id_is_rejected() {
    let mut ended = lease("l1", "w2");
    ended.state = "EXPIRED".into();
    ended.terminated_at = Some(20);
    assert_eq!(
        read(vec![lease("l1", "w1"), ended]),
        Err(LeaseError::LeaseAlreadyExists { lease_id: "l1".into() })
    );
}

// S2-94: a lease that no sequence of events leads to
#[test]
fn unreachable_lease_is_rejected() {
    let changed = |change: fn(&mut StoredLease)| {
        let mut stored = lease("l", "w");
        change(&mut stored);
        vec![stored]
    };
    check_rejected_with("lease_id: is empty", changed(|lease| lease.lease_id.clear()));
    check_rejected_with("work_id: is empty", changed(|lease| lease.work_id.clear()));
    check_rejected_with("actor_id: has 129 bytes", changed(|lease| lease.actor_id = "a".repeat(129)));
    check_rejected_with("is no lease state", changed(|lease| lease.state = "SLEEPING".into()));
    check_rejected_with("has 513 bytes", changed(|lease| lease.registrar_signature = vec![1; 513]));
    check_rejected_with("is not signed", changed(|lease| lease.registrar_signature.clear()));
    check_rejected_with("expires before it is issued", changed(|lease| lease.expires_at = lease.issued_at));
    check_rejected_with("its ticks", changed(|lease| lease.issued_at_tick = None));
    check_rejected_with("its ticks", changed(|lease| lease.expires_at_tick = lease.issued_at_tick));
    check_rejected_with(
        "its ticks",
        changed(|lease| lease.expires_at_tick = Some(StoredTick { value: 2, tick_rate_hz: 1_001 })),
    );
    check_rejected_with(
        "its ticks",
        changed(|lease| {
            lease.issued_at_tick = Some(StoredTick { value: 1, tick_rate_hz: 0 });
            lease.expires_at_tick = Some(StoredTick { value: 2, tick_rate_hz: 0 });
        }),
    );
    check_rejected_with("its count of renewals", changed(|lease| lease.renewal_count = 1));
    check_rejected_with("its count of renewals", changed(|lease| lease.last_renewed_at = Some(11)));
    check_rejected_with("a reason belongs", changed(|lease| lease.release_reason = Some("ABORTED".into())));
    check_rejected_with("is no release reason", changed(|lease| lease.release_reason = Some("BORED".into())));
    check_rejected_with("an end belongs", changed(|lease| lease.terminated_at = Some(15)));
    check_rejected_with("an end belongs", changed(|lease| lease.state = "EXPIRED".into()));
    check_rejected_with(
        "within its own time",
        changed(|lease| {
            lease.state = "EXPIRED".into();
            lease.terminated_at = Some(21);
        }),
    );
}

// S2-46, S2-47: the check sees what was done by hand to the public fields
#[test]
fn check_invariants_detects_a_broken_index() {
    let whole = || read(vec![lease("l1", "w1"), lease("l2", "w2")]).unwrap();
    let broken = |change: fn(&mut LeaseReducerState)| {
        let mut state = whole();
        change(&mut state);
        state.check_invariants().unwrap_err()
    };
    assert!(
        broken(|state| drop(state.active_leases_by_work.insert("w3".into(), "l3".into())))
            .contains("not there")
    );
    assert!(
        broken(|state| drop(state.active_leases_by_work.insert("w3".into(), "l1".into())))
            .contains("ACTIVE on")
    );
    assert!(broken(|state| drop(state.active_leases_by_work.remove("w1"))).contains("the index names None"));
    assert!(
        broken(|state| {
            let lease = state.leases.remove("l1").unwrap();
            state.leases.insert("l9".into(), lease);
        })
        .contains("is kept under")
    );
    assert!(
        broken(|state| {
            let lease = state.leases.get_mut("l1").unwrap();
            lease.state = LeaseState::Expired;
            lease.terminated_at = Some(20);
        })
        .contains("EXPIRED on")
    );
}
