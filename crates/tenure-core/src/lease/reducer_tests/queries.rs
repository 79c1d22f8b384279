//! What one can ask, and what pruning forgets.

use super::*;

/// alice holds a and b, released c; bob holds d, e expired. All from 1,000; until 2,000, 3,000, … 6,000.
fn with_five_leases() -> CheckedReducer {
    let mut watched = CheckedReducer::default();
    let leases = [("a", "alice"), ("b", "alice"), ("c", "alice"), ("d", "bob"), ("e", "bob")];
    for ((lease, actor), until) in leases.into_iter().zip((2_000..).step_by(1_000)) {
        watched.issue(lease, &format!("work-{lease}"), actor, 1_000, until).unwrap();
    }
    watched.release("c", "alice").unwrap();
    watched.expire("e", 6_000).unwrap();
    watched
}

fn ids(leases: Vec<&Lease>) -> String {
    leases.into_iter().map(|lease| lease.lease_id.as_str()).collect()
}

// S2-81 to S2-85, S2-48
#[test]
fn leases_are_found_by_id_work_and_actor() {
    let watched = with_five_leases();
    let state = watched.state();
    // S2-81
    assert_eq!(state.get("c").map(|lease| lease.work_id.as_str()), Some("work-c"));
    assert_eq!(state.get("z"), None);
    // S2-48, S2-82, S2-83: only while it is active
    for (work, holder) in
        [("work-a", Some("a")), ("work-c", None), ("work-e", None), ("work-z", None), ("a", None)]
    {
        assert_eq!(state.get_active_lease_for_work(work).map(|lease| lease.lease_id.as_str()), holder);
        assert_eq!(state.has_active_lease(work), holder.is_some());
    }
    // S2-84
    assert_eq!(ids(state.active_leases()), "abd");
    // S2-85: also those that have ended
    assert_eq!(ids(state.leases_by_actor("alice")), "abc");
    assert_eq!(ids(state.leases_by_actor("bob")), "de");
    assert_eq!(ids(state.leases_by_actor("Bob")), "");
}

// S2-48: an index that somebody has spoiled is not believed
#[test]
fn ended_lease_is_not_active_despite_a_corrupt_index() {
    let mut watched = with_five_leases();
    watched.0.state_mut().active_leases_by_work.insert("work-c".into(), "c".into());
    assert_eq!(watched.state().get_active_lease_for_work("work-c"), None);
    assert!(!watched.state().has_active_lease("work-c"));
}

// S2-88 to S2-92
#[test]
fn counts_match_lease_states() {
    let watched = with_five_leases();
    let state = watched.state();
    assert_eq!(state.len(), 5); // S2-88
    assert_eq!(state.active_count(), 3); // S2-89
    assert_eq!(state.released_count(), 1); // S2-90
    assert_eq!(state.expired_count(), 1); // S2-91
    assert_eq!(state.terminal_count(), 2); // S2-92
    assert!(!state.is_empty());
    assert!(LeaseReducerState::new().is_empty());
}

// S2-87, S2-97
#[test]
#[expect(deprecated, reason = "leases without ticks are found this way")]
fn expired_active_leases_are_found_by_wall_time() {
    let watched = with_five_leases();
    let expired = |now| ids(watched.state().get_expired_but_active(now));
    assert_eq!([expired(1_999), expired(2_000), expired(3_000), expired(u64::MAX)], ["", "a", "ab", "abd"]);
}

// S2-86, S2-97
#[test]
fn expired_active_leases_are_found_by_tick() {
    let watched = CheckedReducer::with_ticks();
    let expired = |tick, rate| ids(watched.state().get_expired_but_active_at_tick(&HtfTick::new(tick, rate)));
    assert_eq!([expired(0, RATE), expired(199, RATE), expired(200, RATE)], ["", "", "lease-1"]);
    assert_eq!(expired(0, RATE * 2), "lease-1", "another clock: not shown to live");
    // S2-33: without ticks, active ones are always due and ended ones never
    let due = with_five_leases();
    assert_eq!(ids(due.state().get_expired_but_active_at_tick(&HtfTick::new(0, RATE))), "abd");
}

// S2-106
#[test]
fn leases_found_as_expired_can_be_expired() {
    let mut watched = CheckedReducer::with_ticks();
    let now = HtfTick::new(250, RATE);
    assert_eq!(ids(watched.state().get_expired_but_active_at_tick(&now)), "lease-1");
    watched.apply_as_registrar(expired_at_tick(now.value(), now.tick_rate_hz())).unwrap();
    assert_eq!(ids(watched.state().get_expired_but_active_at_tick(&now)), "");
}

// S2-49, S2-93, S2-105
#[test]
fn prune_removes_only_ended_leases() {
    let mut watched = with_five_leases();
    assert_eq!(watched.0.state_mut().prune_terminal_leases(), 2);
    assert_eq!(ids(watched.state().active_leases()), "abd");
    assert_eq!((watched.state().len(), watched.state().terminal_count()), (3, 0));
    assert_eq!(watched.state().check_invariants(), Ok(()));
    assert_eq!(watched.0.state_mut().prune_terminal_leases(), 0);
}

// S2-50, S2-93, S2-105: c ended at 4,000, e at 6,000
#[test]
fn prune_before_compares_with_the_termination_time() {
    let pruned = |before| {
        let mut watched = with_five_leases();
        let pruned = watched.0.state_mut().prune_terminal_leases_before(before);
        assert_eq!(watched.state().check_invariants(), Ok(()));
        assert_eq!(watched.state().active_count(), 3);
        (pruned, watched.state().get("c").is_some(), watched.state().get("e").is_some())
    };
    assert_eq!(pruned(4_000), (0, true, true));
    assert_eq!(pruned(4_001), (1, false, true));
    assert_eq!(pruned(6_000), (1, false, true));
    assert_eq!(pruned(u64::MAX), (2, false, false));
}
