//! Events that are nearly right: few ids and few times, so that they meet.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use prost::Message;
use tenure_core::lease::{LeaseError, LeaseReducer};
use tenure_core::ledger::EventRecord;
use tenure_core::proto::lease_event::Event;
use tenure_core::proto::{
    LeaseConflict, LeaseEvent, LeaseExpired, LeaseIssueDenied, LeaseIssued, LeaseReleased, LeaseRenewed,
    LeaseRevoked,
};
use tenure_core::reducer::{Reducer, ReducerContext};

/// What was found is tried again on the next run; the file is not part of the repository.
pub fn config() -> ProptestConfig {
    let file = FileFailurePersistence::Direct("proptest-regressions/lease.txt");
    ProptestConfig { failure_persistence: Some(Box::new(file)), ..ProptestConfig::default() }
}

pub fn record(event: Event, actor_id: &str) -> EventRecord {
    let event_type = match event {
        Event::Issued(_) => "lease.issued",
        Event::Renewed(_) => "lease.renewed",
        Event::Released(_) => "lease.released",
        Event::Expired(_) => "lease.expired",
        Event::Conflict(_) => "lease.conflict",
        Event::IssueDenied(_) => "lease.issue_denied",
        Event::Revoked(_) => "lease.revoked",
    };
    EventRecord::new(event_type, "session", actor_id, LeaseEvent { event: Some(event) }.encode_to_vec())
}

/// A reducer after `records`, and what it said to each.
pub fn replay(records: &[EventRecord]) -> (LeaseReducer, Vec<Result<(), LeaseError>>) {
    let mut reducer = LeaseReducer::new();
    let answers =
        (1..).zip(records).map(|(seq, record)| reducer.apply(record, &ReducerContext::new(seq))).collect();
    (reducer, answers)
}

/// A few dozen events, some of which are refused.
pub fn records() -> impl Strategy<Value = Vec<EventRecord>> {
    prop::collection::vec(any_record(), 0..60)
}

fn any_record() -> impl Strategy<Value = EventRecord> {
    let event = prop_oneof![
        8 => issued(),
        8 => renewed(),
        4 => released(),
        4 => expired(),
        2 => revoked(),
        1 => Just(Event::Conflict(LeaseConflict::default())),
        1 => Just(Event::IssueDenied(LeaseIssueDenied::default())),
    ];
    (event, actor()).prop_map(|(event, actor)| record(event, &actor))
}

fn lease() -> impl Strategy<Value = String> {
    prop_oneof![40 => "lease-[0-5]", 1 => "[ -~]{0,3}", 1 => Just("x".repeat(129))]
}

fn work() -> impl Strategy<Value = String> {
    prop_oneof![40 => "work-[0-2]", 1 => Just("work\n".to_owned())]
}

fn actor() -> impl Strategy<Value = String> {
    prop_oneof![4 => "(alice|bob)", 4 => Just("registrar".to_owned()), 1 => Just(String::new())]
}

fn moment() -> impl Strategy<Value = u64> {
    prop_oneof![20 => 0_u64..20, 1 => Just(u64::MAX), 1 => any::<u64>()]
}

/// Later than most, so that a renewal has a chance to extend.
fn late() -> impl Strategy<Value = u64> {
    prop_oneof![20 => 5_u64..40, 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn rate() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(0), 8 => Just(1_000_000), 1 => Just(1), 1 => any::<u64>()]
}

fn signature() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![20 => prop::collection::vec(any::<u8>(), 1..4), 1 => Just(vec![]), 1 => Just(vec![1; 513])]
}

fn issued() -> impl Strategy<Value = Event> {
    let names = (lease(), work(), "(alice|bob)");
    (names, signature(), [moment(), moment(), moment(), moment()], rate()).prop_map(
        |((lease_id, work_id, actor_id), registrar_signature, mut times, tick_rate_hz)| {
            times[..2].sort_unstable();
            times[2..].sort_unstable();
            let [issued_at, expires_at, issued_at_tick, expires_at_tick] = times;
            Event::Issued(LeaseIssued {
                lease_id,
                work_id,
                actor_id,
                issued_at,
                expires_at,
                registrar_signature,
                issued_at_tick,
                expires_at_tick,
                tick_rate_hz,
                ..LeaseIssued::default()
            })
        },
    )
}

fn renewed() -> impl Strategy<Value = Event> {
    (lease(), signature(), [late(), late()], moment(), rate()).prop_map(
        |(lease_id, registrar_signature, [new_expires_at, new_expires_at_tick], tick, tick_rate_hz)| {
            Event::Renewed(LeaseRenewed {
                lease_id,
                new_expires_at,
                registrar_signature,
                new_expires_at_tick,
                tick_rate_hz,
                tick,
                ..LeaseRenewed::default()
            })
        },
    )
}

fn released() -> impl Strategy<Value = Event> {
    (lease(), "(COMPLETED|aborted|Voluntary|never)", moment()).prop_map(|(lease_id, release_reason, tick)| {
        Event::Released(LeaseReleased { lease_id, release_reason, tick, ..LeaseReleased::default() })
    })
}

fn expired() -> impl Strategy<Value = Event> {
    (lease(), moment(), moment(), rate()).prop_map(|(lease_id, expired_at, tick, tick_rate_hz)| {
        Event::Expired(LeaseExpired { lease_id, expired_at, tick, tick_rate_hz })
    })
}

fn revoked() -> impl Strategy<Value = Event> {
    (lease(), -1..8_i32, moment()).prop_map(|(lease_id, cause, tick)| {
        Event::Revoked(LeaseRevoked { lease_id, cause, tick, ..LeaseRevoked::default() })
    })
}
