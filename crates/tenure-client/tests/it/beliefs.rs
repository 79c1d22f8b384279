//! A keeper never believes for longer than somebody promised, and what is lost stays lost.

use tenure_client::{Call, Effect, FenceGate, Input, Outcome};
use tenure_core::kernel::{Fence, Span};

use crate::story::{FENCE, Story, replied, send, valid, valid_as};

const TTL: Span = Span::from_secs(30);

#[test]
fn reply_about_another_lease_does_not_extend_the_deadline() {
    // Only when ours is over can there be another one under our key, so that ours is lost; and what nobody
    // asked for any more is given back.
    let mut story = Story::held(TTL);
    story.at(10_000, Input::Woken);
    let effects = story.at(10_100, valid_as(Fence(8), 2, 1_000));
    assert_eq!(effects, [Effect::Lost, send(3, Call::Release(Fence(8)))]);
    assert!(!story.believes_at(10_100));
}

#[test]
fn shorter_renewal_does_not_shorten_the_deadline() {
    // A registrar never shortens a lease: what it promised first still stands.
    let mut story = Story::held(TTL);
    story.at(10_000, Input::Woken);
    assert_eq!(story.at(10_100, valid(2, 5_000)), []);
    assert!(story.believes_at(29_799) && !story.believes_at(29_800));
}

#[test]
fn duplicate_reply_does_not_extend_the_deadline() {
    let mut story = Story::held(TTL);
    assert_eq!(story.at(9_000, valid(1, 30_000)), []);
    assert!(!story.believes_at(29_800));
}

#[test]
fn reply_to_an_unsent_request_is_ignored() {
    let mut story = Story::new(TTL);
    assert_eq!(story.at(0, valid(1, 30_000)), []);
    story.at(0, Input::Start);
    assert_eq!(story.at(10, valid(2, 30_000)), []);
    assert!(!story.believes_at(10));
}

#[test]
fn reply_to_a_release_does_not_revive_the_lease() {
    let mut story = Story::held(TTL);
    assert_eq!(story.at(100, Input::Stop), [send(2, Call::Release(FENCE))]);
    assert_eq!(story.at(200, valid(2, 30_000)), []);
    assert_eq!(story.at(200, replied(2, Outcome::Failed)), []);
    assert!(!story.believes_at(200) && story.keeper.is_over());
    assert_eq!(story.keeper.wake_at(), None);
}

#[test]
fn starting_again_does_not_revive_a_lost_lease() {
    let mut story = Story::held(TTL);
    assert_eq!(story.at(40_000, Input::Woken), [Effect::Lost, send(2, Call::Release(FENCE))]);
    assert_eq!(story.at(40_001, Input::Start), []);
    assert_eq!(story.at(40_002, Input::Woken), []);
    assert!(story.keeper.is_over());
}

#[test]
fn older_reply_does_not_revive_an_ended_lease() {
    let mut story = Story::held(TTL);
    story.at(10_000, Input::Woken);
    story.at(10_100, Input::Woken);
    assert_eq!(story.at(10_200, replied(3, Outcome::Over)), [Effect::Lost]);
    assert_eq!(story.at(10_300, valid(2, 30_000)), [send(4, Call::Release(FENCE))]);
    assert!(!story.believes_at(10_300));
}

#[test]
fn deadline_near_the_maximum_does_not_overflow() {
    let mut story = Story::new(TTL);
    let now = u64::MAX - 1_000;
    story.keeper.step(Input::Start, now, u64::MAX);
    story.keeper.step(valid(1, u64::MAX), now + 1, u64::MAX);
    assert_eq!(story.keeper.believes(now + 2), Some(FENCE));
    assert_eq!(story.keeper.believes(now - 1), Some(FENCE));
    assert!(story.keeper.wake_at().is_some());
}

#[test]
fn fence_gate_rejects_an_older_fence_after_a_restart() {
    let mut gate = FenceGate::after(Fence(8));
    let stale = gate.admit(Fence(7)).expect_err("a holder that was paused");
    assert_eq!((stale.presented, stale.highest), (Fence(7), Fence(8)));
    assert!(gate.admit(Fence(8)).is_ok());
}
