//! How long and of what an id or a signature may be.

use super::*;

/// Ids of every length around the limit, in characters of one, two and four bytes.
fn ids_of(bytes: usize) -> Vec<String> {
    let wide = |character: char| {
        let count = bytes / character.len_utf8();
        let padding = "x".repeat(bytes - count * character.len_utf8());
        format!("{}{padding}", character.to_string().repeat(count))
    };
    ['x', 'é', '🦀'].map(wide).to_vec()
}

// S2-98
#[test]
fn ids_longer_than_128_bytes_are_rejected() {
    for id in [1, 127, 128].into_iter().flat_map(ids_of).filter(|id| !id.is_empty()) {
        let mut watched = CheckedReducer::default();
        watched.issue(&id, &id, &id, 1_000, 2_000).unwrap();
        watched.renew(&id, 3_000).unwrap();
        watched.release(&id, &id).unwrap();
    }
    for id in [129, 4_096].into_iter().flat_map(ids_of) {
        check_rejected_everywhere(&id);
    }
}

// S2-72, S2-98: what a log or a terminal would take for something else
#[test]
fn empty_ids_and_control_characters_are_rejected() {
    for id in ["", "a\0", "a\nb", "\r", "\u{1B}[2J", "\u{7F}", "\u{85}"] {
        check_rejected_everywhere(id);
    }
}

#[track_caller]
fn check_rejected_everywhere(id: &str) {
    let mut watched = CheckedReducer::with_lease();
    assert_eq!(field_of(watched.issue(id, "work-2", "bob", 1_000, 2_000)), "lease_id");
    assert_eq!(field_of(watched.issue("lease-2", id, "bob", 1_000, 2_000)), "work_id");
    assert_eq!(field_of(watched.issue("lease-2", "work-2", id, 1_000, 2_000)), "actor_id");
    assert_eq!(field_of(watched.renew(id, 3_000)), "lease_id");
    assert_eq!(field_of(watched.release(id, "alice")), "lease_id");
    assert_eq!(field_of(watched.expire(id, 3_000)), "lease_id");
    let revoked = LeaseRevoked { lease_id: id.into(), cause: 1, ..LeaseRevoked::default() };
    assert_eq!(field_of(watched.apply_as_registrar(Event::Revoked(revoked))), "lease_id");
}

// S2-47: readers who share a resource hold it under ids that no plain name can have
#[test]
fn shared_leases_coexist_under_joined_ids() {
    let mut watched = CheckedReducer::default();
    for lease in ["lease-1", "lease-2"] {
        watched.issue(lease, &format!("file:a\u{1F}{lease}"), "alice", 1_000, 2_000).unwrap();
    }
    assert_eq!(watched.state().active_count(), 2);
}

// S2-99
#[test]
fn signatures_longer_than_512_bytes_are_rejected() {
    let issued = |bytes| {
        let payload = helpers::lease_issued_payload("lease-2", "work-2", "bob", 1_000, 2_000, vec![7; bytes]);
        CheckedReducer::with_lease().apply("lease.issued", REGISTRAR, payload)
    };
    let renewed = |bytes| {
        let payload = helpers::lease_renewed_payload("lease-1", 3_000, vec![7; bytes]);
        CheckedReducer::with_lease().apply("lease.renewed", REGISTRAR, payload)
    };
    for bytes in [1, 511, 512] {
        assert_eq!((issued(bytes), renewed(bytes)), (Ok(()), Ok(())), "{bytes}");
    }
    for bytes in [513, 65_536] {
        assert_eq!(field_of(issued(bytes)), "registrar_signature");
        assert_eq!(field_of(renewed(bytes)), "registrar_signature");
    }
}
