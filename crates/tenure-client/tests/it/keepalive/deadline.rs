//! A keeper never believes for longer than somebody promised, and what is lost stays lost.

use tenure_client::{Effect, FenceGate, Input, KeepAliveRequest, ReplyOutcome};
use tenure_core::kernel::{Fence, TickDuration};

use crate::keepalive::harness::{FENCE, KeepAliveHarness, reply, send_effect, valid_reply, valid_reply_for};

const TTL: TickDuration = TickDuration::from_secs(30);

#[test]
fn reply_about_another_lease_does_not_extend_the_deadline() {
    // Only when ours is over can there be another one under our key, so that ours is lost; and what nobody
    // asked for any more is given back.
    let mut story = KeepAliveHarness::held(TTL);
    story.step_at(10_000, Input::Woken);
    let effects = story.step_at(10_100, valid_reply_for(Fence(8), 2, 1_000));
    assert_eq!(effects, [Effect::Lost, send_effect(3, KeepAliveRequest::Release(Fence(8)))]);
    assert!(!story.is_held_at(10_100));
}

#[test]
fn shorter_renewal_does_not_shorten_the_deadline() {
    // A registrar never shortens a lease: what it promised first still stands.
    let mut story = KeepAliveHarness::held(TTL);
    story.step_at(10_000, Input::Woken);
    assert_eq!(story.step_at(10_100, valid_reply(2, 5_000)), []);
    assert!(story.is_held_at(29_799) && !story.is_held_at(29_800));
}

#[test]
fn duplicate_reply_does_not_extend_the_deadline() {
    let mut story = KeepAliveHarness::held(TTL);
    assert_eq!(story.step_at(9_000, valid_reply(1, 30_000)), []);
    assert!(!story.is_held_at(29_800));
}

#[test]
fn reply_to_an_unsent_request_is_ignored() {
    let mut story = KeepAliveHarness::new(TTL);
    assert_eq!(story.step_at(0, valid_reply(1, 30_000)), []);
    story.step_at(0, Input::Start);
    assert_eq!(story.step_at(10, valid_reply(2, 30_000)), []);
    assert!(!story.is_held_at(10));
}

#[test]
fn reply_to_a_release_does_not_revive_the_lease() {
    let mut story = KeepAliveHarness::held(TTL);
    assert_eq!(story.step_at(100, Input::Stop), [send_effect(2, KeepAliveRequest::Release(FENCE))]);
    assert_eq!(story.step_at(200, valid_reply(2, 30_000)), []);
    assert_eq!(story.step_at(200, reply(2, ReplyOutcome::Failed)), []);
    assert!(!story.is_held_at(200) && story.keep_alive.has_ended());
    assert_eq!(story.keep_alive.wake_at(), None);
}

#[test]
fn starting_again_does_not_revive_a_lost_lease() {
    let mut story = KeepAliveHarness::held(TTL);
    assert_eq!(
        story.step_at(40_000, Input::Woken),
        [Effect::Lost, send_effect(2, KeepAliveRequest::Release(FENCE))]
    );
    assert_eq!(story.step_at(40_001, Input::Start), []);
    assert_eq!(story.step_at(40_002, Input::Woken), []);
    assert!(story.keep_alive.has_ended());
}

#[test]
fn older_reply_does_not_revive_an_ended_lease() {
    let mut story = KeepAliveHarness::held(TTL);
    story.step_at(10_000, Input::Woken);
    story.step_at(10_100, Input::Woken);
    assert_eq!(story.step_at(10_200, reply(3, ReplyOutcome::Ended)), [Effect::Lost]);
    assert_eq!(
        story.step_at(10_300, valid_reply(2, 30_000)),
        [send_effect(4, KeepAliveRequest::Release(FENCE))]
    );
    assert!(!story.is_held_at(10_300));
}

#[test]
fn deadline_near_the_maximum_does_not_overflow() {
    let mut story = KeepAliveHarness::new(TTL);
    let now = u64::MAX - 1_000;
    story.keep_alive.step(Input::Start, now, u64::MAX);
    story.keep_alive.step(valid_reply(1, u64::MAX), now + 1, u64::MAX);
    assert_eq!(story.keep_alive.held_fence(now + 2), Some(FENCE));
    assert_eq!(story.keep_alive.held_fence(now - 1), Some(FENCE));
    assert!(story.keep_alive.wake_at().is_some());
}

#[test]
fn fence_gate_rejects_an_older_fence_after_a_restart() {
    let mut gate = FenceGate::with_highest(Fence(8));
    let stale = gate.admit(Fence(7)).expect_err("a holder that was paused");
    assert_eq!((stale.presented, stale.highest), (Fence(7), Fence(8)));
    assert!(gate.admit(Fence(8)).is_ok());
}
