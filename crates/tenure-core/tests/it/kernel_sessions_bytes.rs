//! Sessions as bytes: what was saved comes back, what was damaged is refused or in good order.

use tenure_core::kernel::{Event, HashKey, LedgerTag, Limits, RestoreError, State, decode, encode};

use crate::kernel_bytes::{restore, save};
use crate::kernel_bytes_damaged::{check, hex};
use crate::kernel_codec::{STAMP, TAG};
use crate::session_desk::{Desk, SECONDS_60, channel, leased, plain, recording};

/// Sessions in every state, and with everything that they can have.
fn sample() -> Desk {
    let mut desk = Desk::default();
    let guard = desk.guard(1, "w");
    desk.accept(2, recording("old", "film", 1_000, 1)).expect("accepted");
    desk.stop(3, "old").expect("stopped");
    desk.running(4, "run", "a", 2, guard);
    desk.accept(5, recording("start", "film", 2_000, 3)).expect("accepted");
    desk.take(5, "start", guard).expect("taken");
    desk.running(6, "stop", "b", 4, guard);
    desk.stop(7, "stop").expect("stopping");
    desk.accept(8, leased(channel("new", "c", 5))).expect("accepted");
    desk.accept(9, channel("late", "a", 6)).expect("accepted");
    desk.take(9, "late", guard).expect("it is busy");
    let mut full = recording("full", "g", 7, 7);
    full.intent.params = "{}".into();
    full.intent.correlation = "c".into();
    desk.accept(10, full).expect("accepted");
    desk
}

/// What is stored already: these bytes are a promise. A change here is a new version.
const GOLDEN: &str = concat!(
    "0380ade20400070000011373797374656d3a6f7263686573747261746f72070100017700001e73797374656d3a6f7263",
    "686573747261746f723a67756172645f6c6f636b00c0a8a5048087a70e8087a70e000707070707070707070707070707",
    "07070001000372756e000009736572766963653a6100809bee028087a70e8087a70e0001010101010101010101010101",
    "010101000102000774756e65723a3000809bee028087a70e8087a70e0002020202020202020202020202020202000100",
    "0573746172740000107265636f7264696e673a66696c6d3a3200c096b1028087a70e8087a70e00010101010101010101",
    "010101010101010001000473746f70000009736572766963653a62008092f4018087a70e8087a70e0001010101010101",
    "010101010101010101000104000774756e65723a31008092f4018087a70e8087a70e0002020202020202020202020202",
    "020202000100036e6577000009736572766963653a630080897a8087a70e8087a70e0009090909090909090909090909",
    "09090900000000000f050466756c6c01016707026864027b7d0163070707070707070707070707070707070707070707",
    "070707070707070707070707746f6b656e3a61000f0080c6868f0100000000036e657700016302686400000505050505",
    "05050505050505050505050505050505050505050505050505050507746f6b656e3a61000c80897a80c6868f0180897a",
    "0000000372756e0001610268640000020202020202020202020202020202020202020202020202020202020202020207",
    "746f6b656e3a610205809bee0280c6868f01809bee020101770101057069642031057374617274010466696c6dd00f02",
    "68640000030303030303030303030303030303030303030303030303030303030303030307746f6b656e3a610107c096",
    "b10280c6868f01c096b1020101770100000473746f700001620268640000040404040404040404040404040404040404",
    "040404040404040404040404040407746f6b656e3a61030b8092f40180c6868f01c08db7010101770102057069642031",
    "02036f6c64010466696c6de8070268640000010101010101010101010101010101010101010101010101010101010101",
    "010107746f6b656e3a61040280a4e80380c6868f01c09fab0300000003176265666f7265206120776f726b657220746f",
    "6f6b206974046c6174650001610268640000060606060606060606060606060606060606060606060606060606060606",
    "060607746f6b656e3a61040ec0843d80c6868f01c0843d0000000018736572766963653a612069732068656c64206279",
    "2072756e",
);

#[test]
fn sessions_are_saved_in_a_form_of_their_own_and_that_form_stays() {
    let desk = sample();
    let bytes = save(&desk.state);
    assert_eq!(bytes[0], 3);
    assert_eq!(hex(&bytes), GOLDEN);
    let restored = restore(&desk.state);
    assert_eq!(restored.sessions_revision(), desk.state.sessions_revision());
}

#[test]
fn the_smallest_session_comes_back() {
    let mut desk = Desk::default();
    let mut small = channel("s", "a", 1);
    small.intent.profile = "p".into();
    small.principal = crate::session_desk::principal("t");
    small.patience = tenure_core::kernel::Span(1);
    desk.accept(0, small).expect("accepted");
    restore(&desk.state);
}

#[test]
fn whoever_waits_for_any_one_of_several_is_saved_beside_sessions() {
    let mut desk = sample();
    desk.run(11, &plain("bob", "tuner:0", SECONDS_60));
    restore(&desk.state);
}

#[test]
fn a_state_with_sessions_that_breaks_off_anywhere_is_refused() {
    let bytes = save(&sample().state);
    let read =
        |bytes: &[u8]| State::restore(bytes, LedgerTag(0), Limits::default(), HashKey(5, 6)).map(|_| ());
    for length in 0..bytes.len() {
        assert!(read(&bytes[..length]).is_err(), "{length} bytes of {}", bytes.len());
    }
    let mut older = bytes.clone();
    for form in [1, 2] {
        older[0] = form;
        assert!(read(&older).is_err(), "what an older form cannot say is not read in it");
    }
    // One state has one form: without sessions there is no need for this one.
    let mut newer = save(&State::default());
    newer[0] = 3;
    newer.extend([0, 0, 0]);
    let reason = "it needs no such form";
    assert_eq!(read(&newer), Err(RestoreError::Damaged { at: newer.len(), reason }));
}

#[test]
fn no_changed_byte_of_a_session_is_believed_against_the_rest() {
    let bytes = save(&sample().state);
    assert!(check(&bytes));
    let (mut believed, mut refused) = (0, 0);
    for place in 1..bytes.len() {
        let mut changed = bytes.clone();
        for value in (0..=u8::MAX).filter(|value| *value != bytes[place]) {
            changed[place] = value;
            *(if check(&changed) { &mut believed } else { &mut refused }) += 1;
        }
    }
    assert!(believed > 0 && refused > 0, "{believed} and {refused}");
}

#[test]
fn a_replay_of_what_was_stored_is_the_same_state() {
    let desk = sample();
    let mut replayed = State::default();
    for event in &desk.events {
        let read = decode(&encode(event, STAMP), TAG).expect("it is read").expect("it is the kernel's");
        assert_eq!(read, *event);
        replayed.apply(&read).expect("it follows");
    }
    assert_eq!(replayed.snapshot(), desk.state.snapshot());
    let told = desk.events.iter().filter(|event| matches!(event, Event::Intent(_))).count();
    assert_eq!(told as u64, desk.state.sessions_revision());
}
