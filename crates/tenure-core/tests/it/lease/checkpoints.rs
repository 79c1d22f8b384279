//! Checkpoints of any state, whole and damaged.

use proptest::prelude::*;
use tenure_core::lease::{LeaseReducer, LeaseReducerState};
use tenure_core::reducer::{Reducer, ReducerContext};

use crate::lease::strategies::{config, records, replay};

proptest! {
    #![proptest_config(config())]

    // S2-4
    #[test]
    fn reducer_checkpoint_round_trips(records in records()) {
        let (reducer, _) = replay(&records);
        let bytes = reducer.state().to_checkpoint();
        let restored = LeaseReducerState::from_checkpoint(&bytes);
        prop_assert_eq!(restored.as_ref(), Ok(reducer.state()));
    }

    // S2-3, S2-4: in whatever order the map keeps its leases
    #[test]
    fn equal_states_have_equal_checkpoint_bytes(records in records()) {
        let bytes = replay(&records).0.state().to_checkpoint();
        prop_assert_eq!(&replay(&records).0.state().to_checkpoint(), &bytes);
        prop_assert_eq!(LeaseReducerState::from_checkpoint(&bytes).unwrap().to_checkpoint(), bytes);
    }

    // S2-3, S2-4
    #[test]
    fn resuming_from_a_checkpoint_gives_the_same_state(records in records(), middle in any::<prop::sample::Index>()) {
        let (first, second) = records.split_at(middle.index(records.len() + 1));
        let bytes = replay(first).0.state().to_checkpoint();
        let mut reducer = LeaseReducer::with_state(LeaseReducerState::from_checkpoint(&bytes).unwrap());
        for record in second {
            let _ = reducer.apply(record, &ReducerContext::new(1));
        }
        prop_assert_eq!(reducer, replay(&records).0);
    }

    // S2-4, S2-94
    #[test]
    fn damaged_checkpoint_is_rejected(
        records in records(), at in any::<prop::sample::Index>(), bit in 0..8_u32, more in 0_u8..,
    ) {
        let bytes = replay(&records).0.state().to_checkpoint();
        let at = at.index(bytes.len());

        let mut flipped = bytes.clone();
        flipped[at] ^= 1_u8 << bit;
        prop_assert!(LeaseReducerState::from_checkpoint(&flipped).is_err());
        prop_assert!(LeaseReducerState::from_checkpoint(&bytes[..at]).is_err());

        let mut longer = bytes;
        longer.push(more);
        prop_assert!(LeaseReducerState::from_checkpoint(&longer).is_err());
    }

    // S2-94
    #[test]
    fn from_checkpoint_never_panics_on_arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = LeaseReducerState::from_checkpoint(&bytes);
    }
}
