//! Reads a record of the ledger as a lease event, or says why it is none.

use prost::Message;

use crate::ledger::EventRecord;
use crate::proto::LeaseEvent;
use crate::proto::lease_event::Event;

use super::LeaseError;

/// What the types of lease events begin with.
const PREFIX: &str = "lease.";

/// The event in `record`, or nothing when the record is another reducer's.
///
/// Type and payload must agree. A type after `lease.` that is not known here could end a lease that this
/// version goes on believing in, so it is an error, not something to skip.
pub(super) fn read(record: &EventRecord) -> Result<Option<Event>, LeaseError> {
    // INV-0503
    if !record.event_type.starts_with(PREFIX) {
        return Ok(None);
    }
    if !TYPES.contains(&record.event_type.as_str()) {
        let reason = format!("{:?} is no lease event that this version knows", record.event_type);
        return Err(LeaseError::invalid("event_type", reason));
    }
    let Some(event) = LeaseEvent::decode(record.payload.as_slice())?.event else {
        return Err(LeaseError::invalid(
            "payload",
            "holds no lease event; expected one of those in tenure.proto",
        ));
    };
    if type_of(&event) != record.event_type {
        let reason = format!("is {:?}, but the payload is a {:?}", record.event_type, type_of(&event));
        return Err(LeaseError::invalid("event_type", reason));
    }
    Ok(Some(event))
}

const TYPES: [&str; 7] = [
    "lease.issued",
    "lease.renewed",
    "lease.released",
    "lease.expired",
    "lease.conflict",
    "lease.issue_denied",
    "lease.revoked",
];

fn type_of(event: &Event) -> &'static str {
    match event {
        Event::Issued(_) => "lease.issued",
        Event::Renewed(_) => "lease.renewed",
        Event::Released(_) => "lease.released",
        Event::Expired(_) => "lease.expired",
        Event::Conflict(_) => "lease.conflict",
        Event::IssueDenied(_) => "lease.issue_denied",
        Event::Revoked(_) => "lease.revoked",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::helpers;

    fn field_of(error: LeaseError) -> String {
        match error {
            LeaseError::InvalidInput { field, .. } => field,
            other => panic!("{other:?}"),
        }
    }

    // S2-53: whatever is in it, damaged or not
    #[test]
    fn records_of_other_reducers_are_ignored() {
        for event_type in
            ["", "lease", "leases.issued", "LEASE.issued", " lease.issued", "wait.queued", "x.lease.issued"]
        {
            let record = EventRecord::new(event_type, "s", "a", [0xFF; 9]);
            assert_eq!(read(&record), Ok(None), "{event_type:?}");
        }
    }

    // S2-94: whatever its payload is, and it is the type that is blamed
    #[test]
    fn unknown_lease_event_type_is_rejected() {
        let payloads =
            [helpers::lease_expired_payload("l", 1), vec![0xBA, 0x06, 0x00], vec![0xFF; 9], vec![]];
        for event_type in ["lease.", "lease.sublet", "lease.Issued", "lease.issued ", "lease.issued.v2"] {
            for payload in &payloads {
                let error = read(&EventRecord::new(event_type, "s", "a", payload.clone())).unwrap_err();
                assert_eq!(field_of(error), "event_type", "{event_type:?} {payload:?}");
            }
        }
    }

    // S2-94: an auditor who reads types and a reducer that reads payloads must see the same thing
    #[test]
    fn payload_of_another_event_type_is_rejected() {
        let payload = helpers::lease_renewed_payload("l", 1, vec![1]);
        for event_type in TYPES.into_iter().filter(|event_type| *event_type != "lease.renewed") {
            let error = read(&EventRecord::new(event_type, "s", "a", payload.clone())).unwrap_err();
            assert_eq!(field_of(error), "event_type", "{event_type}");
        }
        assert!(matches!(
            read(&EventRecord::new("lease.renewed", "s", "a", payload)),
            Ok(Some(Event::Renewed(_)))
        ));
    }

    // S2-68, S2-94
    #[test]
    fn invalid_payload_is_rejected() {
        let unknown_variant = [0xBA, 0x06, 0x00];
        for payload in [&[] as &[u8], &unknown_variant] {
            let error = read(&EventRecord::new("lease.issued", "s", "a", payload)).unwrap_err();
            assert_eq!(field_of(error), "payload");
        }
        // O-14: audit-only events are decoded too
        for event_type in TYPES {
            let error = read(&EventRecord::new(event_type, "s", "a", [0xFF; 9])).unwrap_err();
            assert!(matches!(error, LeaseError::DecodeError(_)), "{event_type}: {error:?}");
        }
    }
}
