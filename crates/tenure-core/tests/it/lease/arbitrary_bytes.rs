//! Bytes that nobody meant as an event.

use proptest::prelude::*;
use tenure_core::lease::LeaseReducer;
use tenure_core::ledger::EventRecord;
use tenure_core::reducer::{Reducer, ReducerContext};

use crate::lease::strategies::{config, records, replay};

fn event_type() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "lease\\.(issued|renewed|released|expired|conflict|issue_denied|revoked)",
        1 => "lease\\.[a-z_]{0,9}",
        1 => any::<String>(),
    ]
}

/// Applies `record` to `reducer`, which must be whole afterwards, and unchanged if it refused.
fn apply_and_check(mut reducer: LeaseReducer, record: &EventRecord) -> Result<(), TestCaseError> {
    let before = reducer.clone();
    if reducer.apply(record, &ReducerContext::new(1)).is_err() {
        prop_assert_eq!(&reducer, &before);
    }
    prop_assert_eq!(reducer.state().check_invariants(), Ok(()));
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    // S2-68, S2-94
    #[test]
    fn reducer_never_panics_on_arbitrary_bytes(
        records in records(),
        event_type in event_type(),
        actor in any::<String>(),
        payload in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        apply_and_check(replay(&records).0, &EventRecord::new(event_type, "session", actor, payload))?;
    }

    // S2-68, S2-94: one bit away from an event, where the decoder gets furthest
    #[test]
    fn reducer_survives_damaged_records(
        records in records(), which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), bit in 0..8_u32,
    ) {
        prop_assume!(!records.is_empty());
        let original = which.get(&records);
        prop_assume!(!original.payload.is_empty());
        let at = at.index(original.payload.len());

        let mut flipped = original.clone();
        flipped.payload[at] ^= 1_u8 << bit;
        apply_and_check(replay(&records).0, &flipped)?;
        apply_and_check(LeaseReducer::new(), &flipped)?;

        let mut cut = original.clone();
        cut.payload.truncate(at);
        apply_and_check(replay(&records).0, &cut)?;
        apply_and_check(LeaseReducer::new(), &cut)?;
    }
}
