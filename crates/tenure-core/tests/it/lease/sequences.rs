//! Any sequence of events: what stays true, and that it is the same every time.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tenure_core::lease::{HtfTick, LeaseReducer, LeaseState};
use tenure_core::reducer::{Reducer, ReducerContext};

use crate::lease::strategies::{config, records, replay};

proptest! {
    #![proptest_config(config())]

    // S2-1, S2-46, S2-47, S2-94
    #[test]
    fn event_sequences_keep_invariants_and_rejections_change_nothing(records in records()) {
        let mut reducer = LeaseReducer::new();
        for record in &records {
            let before = reducer.clone();
            if reducer.apply(record, &ReducerContext::new(1)).is_err() {
                prop_assert_eq!(&reducer, &before, "refused {:?}", record);
            }
            prop_assert_eq!(reducer.state().check_invariants(), Ok(()), "after {:?}", record);

            // Without the help of the index: nobody holds what another holds.
            let mut holders = BTreeMap::new();
            for lease in reducer.state().active_leases() {
                prop_assert_eq!(holders.insert(&lease.work_id, &lease.lease_id), None);
            }
        }
    }

    // S2-9, S2-51: and what has ended is never touched again
    #[test]
    fn ended_leases_never_change_again(records in records()) {
        let mut reducer = LeaseReducer::new();
        for record in &records {
            let before = reducer.state().clone();
            let _ = reducer.apply(record, &ReducerContext::new(1));
            for (lease_id, old) in &before.leases {
                let new = reducer.state().get(lease_id);
                prop_assert!(new.is_some(), "{} is gone", lease_id);
                if old.state != LeaseState::Active {
                    prop_assert_eq!(new, Some(old));
                }
            }
        }
    }

    // S2-2, S2-3, S2-52
    #[test]
    fn replay_is_deterministic(records in records()) {
        prop_assert_eq!(replay(&records), replay(&records));
    }

    // S2-3, S2-5, S2-52: a ledger without what was refused tells the same story
    #[test]
    fn rejected_events_leave_no_trace(records in records()) {
        let (reducer, answers) = replay(&records);
        let accepted: Vec<_> =
            records.into_iter().zip(answers).filter(|(_, answer)| answer.is_ok()).map(|(record, _)| record).collect();
        let (again, answers) = replay(&accepted);
        prop_assert!(answers.iter().all(Result::is_ok));
        prop_assert_eq!(again, reducer);
    }

    // S2-52: where in the ledger an event stands decides nothing
    #[test]
    fn sequence_number_does_not_affect_the_state(records in records(), seq in any::<u64>()) {
        let mut reducer = LeaseReducer::new();
        for record in &records {
            let _ = reducer.apply(record, &ReducerContext::new(seq));
        }
        prop_assert_eq!(reducer, replay(&records).0);
    }

    // S2-30, S2-39, S2-40, S2-86, S2-97: query, lease and remaining time say the same
    #[test]
    fn expired_leases_are_found_and_have_no_remaining_ticks(
        records in records(), value in 0_u64..25, rate in prop_oneof![Just(1_000_000_u64), Just(1)],
    ) {
        let (reducer, _) = replay(&records);
        let now = HtfTick::new(value, rate);
        let due: BTreeSet<_> =
            reducer.state().get_expired_but_active_at_tick(&now).iter().map(|lease| &lease.lease_id).collect();
        for lease in reducer.state().active_leases() {
            let is_due = due.contains(&lease.lease_id);
            prop_assert_eq!(is_due, lease.is_expired_at_tick(&now));
            prop_assert_eq!(is_due, lease.ticks_remaining(&now) == 0);
        }
        prop_assert!(due.iter().all(|lease_id| reducer.state().get(lease_id).is_some_and(|lease| lease.is_active())));
    }

    // S2-49, S2-50, S2-93, S2-102
    #[test]
    fn prune_before_removes_all_older_ended_leases_and_no_active_ones(records in records(), before in 0_u64..25) {
        let (mut reducer, _) = replay(&records);
        let active = reducer.state().active_count();
        let old = |ended: Option<u64>| ended.is_some_and(|ended| ended < before);
        let due = reducer.state().leases.values().filter(|lease| old(lease.terminated_at)).count();
        prop_assert_eq!(reducer.state_mut().prune_terminal_leases_before(before), due);
        prop_assert!(!reducer.state().leases.values().any(|lease| old(lease.terminated_at)));

        // No lease outlives its own expiry, so a prune after it leaves nothing that has ended.
        let latest = reducer.state().leases.values().map(|lease| lease.expires_at).max().unwrap_or(0);
        prop_assume!(latest < u64::MAX);
        reducer.state_mut().prune_terminal_leases_before(latest + 1);
        prop_assert_eq!(reducer.state().terminal_count(), 0);
        prop_assert_eq!(reducer.state().len(), active);
        prop_assert_eq!(reducer.state().check_invariants(), Ok(()));
    }

    // S2-88 to S2-92
    #[test]
    fn counts_match_lease_states(records in records()) {
        let (reducer, _) = replay(&records);
        let state = reducer.state();
        prop_assert_eq!(state.released_count() + state.expired_count(), state.terminal_count());
        prop_assert_eq!(state.active_count() + state.terminal_count(), state.len());
        prop_assert_eq!(state.active_count(), state.active_leases_by_work.len());
        prop_assert_eq!(state.is_empty(), state.leases.is_empty());
    }
}

/// The properties above would hold of a reducer that refuses everything, so the events must reach far.
#[test]
fn generated_events_reach_every_state() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let (mut active, mut released, mut expired, mut renewed, mut refused) = (0, 0, 0, 0, 0);
    for _ in 0..100 {
        let records = records().new_tree(&mut runner).unwrap().current();
        let (reducer, answers) = replay(&records);
        active += reducer.state().active_count();
        released += reducer.state().released_count();
        expired += reducer.state().expired_count();
        renewed += reducer.state().leases.values().filter(|lease| lease.renewal_count > 0).count();
        refused += answers.iter().filter(|answer| answer.is_err()).count();
    }
    for (what, count) in [
        ("active", active),
        ("released", released),
        ("expired", expired),
        ("renewed", renewed),
        ("refused", refused),
    ] {
        assert!(count >= 10, "only {count} were {what}");
    }
}
