//! Sessions as bytes: what was saved comes back, what was damaged is refused or in good order.

use tenure_core::kernel::{Event, HashSeed, KernelState, LedgerTag, Limits, decode, encode};

use crate::checkpoint::damage::restore_and_check;
use crate::checkpoint::round_trip::{restore, save};
use crate::intents::fixture::{
    IntentSessionFixture, WAIT_60_SECONDS, accept_channel, accept_recording, plain_acquire, with_target_lease,
};
use crate::kernel::codec::{STAMP, TAG};

/// Sessions in every state, and with everything that they can have.
pub fn sample() -> IntentSessionFixture {
    let mut fixture = IntentSessionFixture::default();
    let guard = fixture.acquire_leader_lock(1, "w");
    fixture.accept(2, accept_recording("old", "film", 1_000, 1)).expect("accepted");
    fixture.stop(3, "old").expect("stopped");
    fixture.start_running(4, "run", "a", 2, guard);
    fixture.accept(5, accept_recording("start", "film", 2_000, 3)).expect("accepted");
    fixture.take(5, "start", guard).expect("taken");
    fixture.start_running(6, "stop", "b", 4, guard);
    fixture.stop(7, "stop").expect("stopping");
    fixture.accept(8, with_target_lease(accept_channel("new", "c", 5))).expect("accepted");
    fixture.accept(9, accept_channel("late", "a", 6)).expect("accepted");
    fixture.take(9, "late", guard).expect("it is busy");
    let mut full = accept_recording("full", "g", 7, 7);
    full.intent.params = "{}".into();
    full.intent.correlation = "c".into();
    fixture.accept(10, full).expect("accepted");
    fixture
}

#[test]
fn sessions_revision_round_trips() {
    let fixture = sample();
    let restored = restore(&fixture.state);
    assert_eq!(restored.intent_sessions_revision(), fixture.state.intent_sessions_revision());
}

#[test]
fn minimal_intent_session_round_trips() {
    let mut fixture = IntentSessionFixture::default();
    let mut small = accept_channel("s", "a", 1);
    small.intent.profile = "p".into();
    small.principal = crate::intents::fixture::principal("t");
    small.wait_timeout = tenure_core::kernel::TickDuration(1);
    fixture.accept(0, small).expect("accepted");
    restore(&fixture.state);
}

#[test]
fn checkpoint_with_sessions_and_a_waiter_round_trips() {
    let mut fixture = sample();
    fixture.run(11, &plain_acquire("bob", "tuner:0", WAIT_60_SECONDS));
    restore(&fixture.state);
}

#[test]
fn truncated_session_checkpoint_is_rejected() {
    let bytes = save(&sample().state);
    let read = |bytes: &[u8]| {
        KernelState::restore(bytes, LedgerTag(0), Limits::default(), HashSeed(5, 6)).map(|_| ())
    };
    for length in 0..bytes.len() {
        assert!(read(&bytes[..length]).is_err(), "{length} bytes of {}", bytes.len());
    }
}

#[test]
fn session_checkpoint_with_one_changed_byte_is_rejected_or_valid() {
    let bytes = save(&sample().state);
    assert!(restore_and_check(&bytes));
    let (mut believed, mut refused) = (0, 0);
    for place in 1..bytes.len() {
        let mut changed = bytes.clone();
        for value in (0..=u8::MAX).filter(|value| *value != bytes[place]) {
            changed[place] = value;
            *(if restore_and_check(&changed) { &mut believed } else { &mut refused }) += 1;
        }
    }
    assert!(believed > 0 && refused > 0, "{believed} and {refused}");
}

#[test]
fn replay_of_encoded_events_gives_the_same_state() {
    let fixture = sample();
    let mut replayed = KernelState::default();
    for event in &fixture.events {
        let read = decode(&encode(event, STAMP), TAG).expect("it is read").expect("it is the kernel's");
        assert_eq!(read, *event);
        replayed.apply(&read).expect("it follows");
    }
    assert_eq!(replayed.to_comparable(), fixture.state.to_comparable());
    let count = fixture.events.iter().filter(|event| matches!(event, Event::Intent(_))).count();
    assert_eq!(count as u64, fixture.state.intent_sessions_revision());
}
