//! Makes the payloads of lease events.
//!
//! These are the events without ticks: with a registrar's clock, fill in a
//! [`crate::proto::LeaseEvent`] instead.

use prost::Message;

use crate::proto::lease_event::Event;
use crate::proto::{LeaseConflict, LeaseEvent, LeaseExpired, LeaseIssued, LeaseReleased, LeaseRenewed};

/// The payload of `lease.issued`: `actor_id` gets `work_id` from `issued_at` until `expires_at`, both in
/// Unix nanoseconds.
pub fn lease_issued_payload(
    lease_id: &str,
    work_id: &str,
    actor_id: &str,
    issued_at: u64,
    expires_at: u64,
    registrar_signature: Vec<u8>,
) -> Vec<u8> {
    payload(Event::Issued(LeaseIssued {
        lease_id: lease_id.to_owned(),
        work_id: work_id.to_owned(),
        actor_id: actor_id.to_owned(),
        issued_at,
        expires_at,
        registrar_signature,
        ..LeaseIssued::default()
    }))
}

/// The payload of `lease.renewed`: the lease now lives until `new_expires_at`, in Unix nanoseconds.
pub fn lease_renewed_payload(lease_id: &str, new_expires_at: u64, registrar_signature: Vec<u8>) -> Vec<u8> {
    payload(Event::Renewed(LeaseRenewed {
        lease_id: lease_id.to_owned(),
        new_expires_at,
        registrar_signature,
        ..LeaseRenewed::default()
    }))
}

/// The payload of `lease.released`; the reason is one that [`super::ReleaseReason::parse`] reads.
pub fn lease_released_payload(lease_id: &str, release_reason: &str) -> Vec<u8> {
    payload(Event::Released(LeaseReleased {
        lease_id: lease_id.to_owned(),
        release_reason: release_reason.to_owned(),
        ..LeaseReleased::default()
    }))
}

/// The payload of `lease.expired`: the lease was found to be over at `expired_at`, in Unix nanoseconds.
///
/// Enough to end a lease without ticks. One with ticks needs its own clock's word for it.
pub fn lease_expired_payload(lease_id: &str, expired_at: u64) -> Vec<u8> {
    payload(Event::Expired(LeaseExpired {
        lease_id: lease_id.to_owned(),
        expired_at,
        ..LeaseExpired::default()
    }))
}

/// The payload of `lease.conflict`, for audit: who met on `work_id`, and what came of it.
///
/// The ids are sorted, so that the same conflict is always the same bytes.
pub fn lease_conflict_payload(
    work_id: &str,
    mut conflicting_lease_ids: Vec<String>,
    resolution: &str,
) -> Vec<u8> {
    conflicting_lease_ids.sort_unstable();
    payload(Event::Conflict(LeaseConflict {
        work_id: work_id.to_owned(),
        conflicting_lease_ids,
        resolution: resolution.to_owned(),
    }))
}

fn payload(event: Event) -> Vec<u8> {
    LeaseEvent { event: Some(event) }.encode_to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    // O-14: field numbers and wire types as bytes, so that a renumbered field cannot slip through
    #[test]
    fn event_payload_bytes_are_stable() {
        // S2-76
        assert_eq!(
            lease_issued_payload("l", "w", "a", 1, 2, vec![9]),
            b"\x0A\x10\x0A\x01l\x12\x01w\x1A\x01a\x20\x01\x28\x02\x32\x01\x09"
        );
        // S2-77
        assert_eq!(lease_renewed_payload("l", 3, vec![9]), b"\x12\x08\x0A\x01l\x10\x03\x1A\x01\x09");
        // S2-78
        assert_eq!(lease_released_payload("l", "X"), b"\x1A\x06\x0A\x01l\x12\x01X");
        // S2-79
        assert_eq!(lease_expired_payload("l", 4), b"\x22\x05\x0A\x01l\x10\x04");
        // S2-80
        assert_eq!(
            lease_conflict_payload("w", vec!["a".into()], "r"),
            b"\x2A\x09\x0A\x01w\x12\x01a\x1A\x01r"
        );
    }

    // O-14: the tick fields, and the variants that have no helper
    #[test]
    fn tick_field_numbers_are_stable() {
        let issued = LeaseIssued {
            time_envelope_ref: vec![1],
            issued_at_tick: 2,
            expires_at_tick: 3,
            tick_rate_hz: 4,
            ..LeaseIssued::default()
        };
        assert_eq!(issued.encode_to_vec(), b"\x3A\x01\x01\x40\x02\x48\x03\x50\x04");
        let renewed = LeaseRenewed {
            time_envelope_ref: vec![1],
            new_expires_at_tick: 2,
            tick_rate_hz: 3,
            ..LeaseRenewed::default()
        };
        assert_eq!(renewed.encode_to_vec(), b"\x22\x01\x01\x28\x02\x30\x03");
        let expired = LeaseExpired { tick: 1, tick_rate_hz: 2, ..LeaseExpired::default() };
        assert_eq!(expired.encode_to_vec(), b"\xA0\x06\x01\xA8\x06\x02");
        let denied = payload(Event::IssueDenied(crate::proto::LeaseIssueDenied::default()));
        assert_eq!(denied, b"\x32\x00");
        let revoked = payload(Event::Revoked(crate::proto::LeaseRevoked::default()));
        assert_eq!(revoked, b"\xA2\x06\x00");
    }

    // S2-80
    #[test]
    fn conflict_payload_does_not_depend_on_id_order() {
        let payload = |ids: [&str; 3]| lease_conflict_payload("w", ids.map(str::to_owned).to_vec(), "first");
        assert_eq!(payload(["b", "c", "a"]), payload(["a", "b", "c"]));
        assert_ne!(payload(["b", "c", "a"]), payload(["a", "b", "d"]));
    }
}
