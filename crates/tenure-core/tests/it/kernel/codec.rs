//! The stored form: everything comes back as it was, and nothing else is believed.

use proptest::prelude::*;
use prost::Message;
use tenure_core::kernel::{
    ClockAnchor, DecodeError, EncodeContext, Event, IssuedLease, KernelState, LeaseMode, LeaseTerms,
    LedgerTag, Tick, decode, encode, encode_to,
};
use tenure_core::ledger::EventRecord;
use tenure_core::proto::{
    self, IntentEvent, LeaseEvent, WaitEvent, clock_event, intent_event, lease_event, wait_event,
};
use tenure_core::protobuf_writer::ProtobufWriter;

use crate::kernel::apply::apply_and_check;
use crate::kernel::strategies::config;
use crate::kernel_event_golden::one_event_of_each_kind;
use crate::kernel_event_strategies::{any_event, plausible_event};

pub const TAG: LedgerTag = LedgerTag(0xabcd);

pub const STAMP: EncodeContext<'_> = EncodeContext {
    tag: TAG,
    anchor: ClockAnchor { tick: Tick(0), wall: 1_700_000_000_000_000_000 },
    signature: b"signed",
};

pub fn encode_record(event: &Event) -> EventRecord {
    encode(event, STAMP)
}

pub const TYPES: [&str; 16] = [
    "lease.issued",
    "lease.renewed",
    "lease.released",
    "lease.expired",
    "lease.revoked",
    "wait.queued",
    "wait.left",
    "clock.mark",
    "clock.resumed",
    "writer.restored",
    "intent.accepted",
    "intent.starting",
    "intent.running",
    "intent.stopping",
    "intent.ended",
    "work.spent",
];

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn events_round_trip_through_the_codec(event in any_event()) {
        let record = encode_record(&event);
        prop_assert!(Event::TYPE_NAMES.contains(&record.event_type.as_str()));
        prop_assert_eq!(decode(&record, TAG), Ok(Some(event)));
    }

    #[test]
    fn encode_to_matches_encode(event in any_event()) {
        let mut bytes = Vec::new();
        encode_to(&event, STAMP, &mut ProtobufWriter::append_to(&mut bytes));
        let EventRecord { event_type, session_id, actor_id, payload, .. } = encode_record(&event);
        prop_assert_eq!(bytes, proto::Record { event_type, session_id, actor_id, payload }.encode_to_vec());
    }

    // S2-94: the reducer, and whoever indexes the ledger, counts on the bound
    #[test]
    fn stored_ids_are_limited_to_128_bytes(event in any_event()) {
        let record = encode_record(&event);
        prop_assert!(record.actor_id.len() <= 128);
        if let Event::Issued(issued) = &event {
            let message = issued_message(&record);
            prop_assert!(message.work_id.len() <= 128 && message.actor_id.len() <= 128 && message.lease_id.len() <= 128);
            let kept = [&message.resource, &message.work_id].map(|name| name == issued.resource.as_str());
            prop_assert!(kept.contains(&true), "the full name is lost");
        }
    }

    #[test]
    fn decode_of_arbitrary_bytes_never_panics_or_changes_the_type(
        event_type in prop::sample::select(&TYPES[..]), actor in any::<String>(), payload in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let record = EventRecord::new(event_type, "", actor, payload);
        if let Ok(Some(event)) = decode(&record, TAG) {
            prop_assert_eq!(encode_record(&event).event_type, event_type);
        }
    }

    // One bit away from an event, where the decoder gets furthest. Whatever is still read is judged by apply.
    #[test]
    fn damaged_record_is_rejected_or_applied_safely(
        events in prop::collection::vec(plausible_event(), 1..12), which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(), bit in 0..8_u32,
    ) {
        let original = encode_record(which.get(&events));
        prop_assume!(!original.payload.is_empty());
        let at = at.index(original.payload.len());
        let mut flipped = original.clone();
        flipped.payload[at] ^= 1_u8 << bit;
        let mut cut = original;
        cut.payload.truncate(at);
        for record in [flipped, cut] {
            let mut state = KernelState::default();
            events.iter().for_each(|event| { let _ = state.apply(event); });
            if let Ok(Some(event)) = decode(&record, TAG) {
                prop_assert_eq!(&encode_record(&event).event_type, &record.event_type);
                apply_and_check(&mut state, &event)?;
            }
        }
    }
}

fn issued_message(record: &EventRecord) -> tenure_core::proto::LeaseIssued {
    match LeaseEvent::decode(record.payload.as_slice()).expect("a lease event").event {
        Some(lease_event::Event::Issued(issued)) => issued,
        other => panic!("{other:?}"),
    }
}

/// The field that the record is refused for.
#[track_caller]
fn rejected_field(record: &EventRecord) -> &'static str {
    match decode(record, TAG) {
        Err(DecodeError::Malformed { event_type, input }) => {
            assert_eq!(event_type, record.event_type);
            input.field
        }
        other => panic!("{other:?}"),
    }
}

/// The record of `event_type` out of one of each, with its lease message changed.
fn changed(event_type: &str, change: impl Fn(&mut lease_event::Event)) -> EventRecord {
    let mut record = record_of(event_type);
    let mut message = LeaseEvent::decode(record.payload.as_slice()).expect("a lease event");
    change(message.event.as_mut().expect("not empty"));
    record.payload = message.encode_to_vec();
    record
}

fn record_of(event_type: &str) -> EventRecord {
    one_event_of_each_kind()
        .iter()
        .map(encode_record)
        .find(|record| record.event_type == event_type)
        .expect("one of each")
}

fn with_event_type(event_type: &str, record: EventRecord) -> EventRecord {
    EventRecord::new(event_type, record.session_id, record.actor_id, record.payload)
}

#[test]
fn lease_id_of_another_ledger_is_rejected() {
    for event_type in &TYPES[..5] {
        let record = record_of(event_type);
        let Err(DecodeError::Malformed { input, .. }) = decode(&record, LedgerTag(0xabce)) else {
            panic!("{event_type} of another ledger was read");
        };
        assert_eq!(input.field, "lease_id");
    }
}

#[test]
fn unexpected_tick_rate_is_rejected() {
    for rate in [0, 1, 1_000, 999_999, u64::MAX] {
        for event_type in ["lease.issued", "lease.renewed", "lease.expired"] {
            let record = changed(event_type, |event| match event {
                lease_event::Event::Issued(issued) => issued.tick_rate_hz = rate,
                lease_event::Event::Renewed(renewed) => renewed.tick_rate_hz = rate,
                lease_event::Event::Expired(expired) => expired.tick_rate_hz = rate,
                _ => {}
            });
            assert_eq!(rejected_field(&record), "tick_rate_hz");
        }
    }
}

#[test]
fn payload_of_another_event_type_is_rejected() {
    for payload_type in TYPES {
        for event_type in TYPES.into_iter().filter(|event_type| *event_type != payload_type) {
            let record = with_event_type(event_type, record_of(payload_type));
            assert!(decode(&record, TAG).is_err(), "{payload_type} passed as {event_type}");
        }
    }
    let unknown = with_event_type("lease.sublet", record_of("lease.issued"));
    assert_eq!(rejected_field(&unknown), "event_type");
}

#[test]
fn audit_records_are_ignored_and_cannot_carry_another_type() {
    let audit = [
        ("lease.conflict", lease_event::Event::Conflict(Default::default())),
        ("lease.issue_denied", lease_event::Event::IssueDenied(Default::default())),
    ];
    for (own_type, event) in audit {
        let payload = LeaseEvent { event: Some(event) }.encode_to_vec();
        assert_eq!(decode(&EventRecord::new(own_type, "", "registrar", payload.clone()), TAG), Ok(None));
        for event_type in ["lease.issued", "lease.revoked", "lease.sublet"] {
            let record = EventRecord::new(event_type, "", "registrar", payload.clone());
            assert_eq!(rejected_field(&record), "event_type", "{own_type} passed as {event_type}");
        }
    }
}

#[test]
fn records_of_other_reducers_are_ignored() {
    for event_type in ["files.claimed", "control.frame", "key.added", "", "x"] {
        assert_eq!(decode(&EventRecord::new(event_type, "", "", [0xFF; 9]), TAG), Ok(None), "{event_type}");
    }
}

#[test]
fn only_shareable_leases_have_a_joined_work_id() {
    let Some(Event::Issued(issued)) = one_event_of_each_kind().into_iter().next() else {
        panic!("a lease comes first")
    };
    for mode in LeaseMode::ALL {
        let terms = LeaseTerms { mode, ..issued.terms.clone() };
        let message = issued_message(&encode_record(&Event::Issued(IssuedLease { terms, ..issued.clone() })));
        let shares = matches!(mode, LeaseMode::Shared | LeaseMode::Consumes | LeaseMode::DependsOn);
        let expected = if shares { "deploy:prod\u{1F}0000abcd-17" } else { "deploy:prod" };
        assert_eq!(message.work_id, expected, "{mode:?}");
    }
}

#[test]
fn empty_payload_is_rejected() {
    for event_type in TYPES {
        assert_eq!(rejected_field(&EventRecord::new(event_type, "", "registrar", [])), "payload");
    }
}

#[test]
fn unknown_enum_numbers_are_rejected() {
    for code in [-1, 0, 9, i32::MAX] {
        let record = changed("lease.issued", |event| {
            if let lease_event::Event::Issued(issued) = event {
                issued.mode = code;
            }
        });
        assert_eq!(rejected_field(&record), "mode");
        let record = changed("lease.revoked", |event| {
            if let lease_event::Event::Revoked(revoked) = event {
                revoked.cause = code;
            }
        });
        assert_eq!(rejected_field(&record), "cause");
        for (event_type, field) in [("wait.left", "end"), ("wait.queued", "mode")] {
            let mut record = record_of(event_type);
            let mut message = WaitEvent::decode(record.payload.as_slice()).expect("a wait event");
            match message.event.as_mut().expect("not empty") {
                wait_event::Event::Left(ended) => ended.end = code,
                wait_event::Event::Queued(queued) => queued.wants[0].mode = code,
            }
            record.payload = message.encode_to_vec();
            assert_eq!(rejected_field(&record), field);
        }
    }
}

#[test]
fn inconsistent_ids_are_rejected() {
    let issued = |change: fn(&mut tenure_core::proto::LeaseIssued)| {
        changed("lease.issued", move |event| {
            if let lease_event::Event::Issued(issued) = event {
                change(issued);
            }
        })
    };
    assert_eq!(rejected_field(&issued(|issued| issued.fence += 1)), "lease_id");
    assert_eq!(rejected_field(&issued(|issued| issued.lease_id = "0000ABCD-17".into())), "lease_id");
    assert_eq!(rejected_field(&issued(|issued| issued.work_id = "x".into())), "work_id");
    assert_eq!(rejected_field(&issued(|issued| issued.holder = "x".into())), "actor_id");
    assert_eq!(rejected_field(&issued(|issued| issued.resource = "a\nb".into())), "resource");
    assert_eq!(rejected_field(&issued(|issued| issued.principal.clear())), "principal");
    assert_eq!(rejected_field(&issued(|issued| issued.nonce = vec![0; 15])), "nonce");
    assert_eq!(rejected_field(&issued(|issued| issued.labels.push(issued.labels[0].clone()))), "labels");
}

/// The record of `event_type` out of one of each, with its message changed.
fn changed_intent(event_type: &str, change: impl Fn(&mut intent_event::Event)) -> EventRecord {
    let mut record = record_of(event_type);
    let mut message = IntentEvent::decode(record.payload.as_slice()).expect("an event of a session");
    change(message.event.as_mut().expect("not empty"));
    record.payload = message.encode_to_vec();
    record
}

#[test]
fn invalid_intent_events_are_rejected() {
    let accepted = |change: fn(&mut proto::IntentAccepted)| {
        changed_intent("intent.accepted", move |event| {
            if let intent_event::Event::Accepted(accepted) = event {
                change(accepted);
            }
        })
    };
    assert_eq!(rejected_field(&accepted(|accepted| accepted.recording_id = "film".into())), "service_ref");
    assert_eq!(rejected_field(&accepted(|accepted| accepted.start_ms = 1)), "service_ref");
    assert_eq!(rejected_field(&accepted(|accepted| accepted.service_ref.clear())), "serviceRef");
    assert_eq!(rejected_field(&accepted(|accepted| accepted.profile_id = "a|b".into())), "profileID");
    assert_eq!(rejected_field(&accepted(|accepted| accepted.service_ref = "-x".into())), "serviceRef");
    assert_eq!(rejected_field(&accepted(|accepted| accepted.correlation_id = "\n".into())), "correlationId");
    assert_eq!(rejected_field(&accepted(|accepted| accepted.params = "x".repeat(65_537))), "params");
    assert_eq!(
        rejected_field(&accepted(|accepted| accepted.idempotency_key = vec![0; 31])),
        "idempotency_key"
    );
    assert_eq!(rejected_field(&accepted(|accepted| accepted.principal.clear())), "principal");
    assert_eq!(rejected_field(&accepted(|accepted| accepted.session_id.clear())), "holder");
    let other = |event_type: &str| {
        rejected_field(&changed_intent(event_type, |event| match event {
            intent_event::Event::Starting(starting) => starting.slot_and_one = 1 << 33,
            intent_event::Event::Running(running) => running.process = "two\nlines".into(),
            intent_event::Event::Stopping(stop) => stop.by.clear(),
            intent_event::Event::Ended(ended) => ended.detail = "x".repeat(4_097),
            intent_event::Event::Accepted(_) => {}
        }))
    };
    assert_eq!(other("intent.starting"), "slot");
    assert_eq!(other("intent.running"), "process");
    assert_eq!(other("intent.stopping"), "principal");
    assert_eq!(other("intent.ended"), "detail");
    for code in [-1, 0, 10, i32::MAX] {
        let record = changed_intent("intent.ended", |event| {
            if let intent_event::Event::Ended(ended) = event {
                ended.end = code;
            }
        });
        assert_eq!(rejected_field(&record), "end");
    }
}

#[test]
fn clock_event_without_a_reading_is_rejected() {
    for event in
        [clock_event::Event::Mark(Default::default()), clock_event::Event::Resumed(Default::default())]
    {
        let event_type =
            if matches!(event, clock_event::Event::Mark(_)) { "clock.mark" } else { "clock.resumed" };
        let payload = tenure_core::proto::ClockEvent { event: Some(event) }.encode_to_vec();
        assert_eq!(rejected_field(&EventRecord::new(event_type, "", "registrar", payload)), "reading");
    }
}
