//! Stop means stop, in whatever state a keeper is, and leaves nobody waiting for what is not needed.

use tenure_client::{Effect, Input, KeepAliveRequest, ReplyOutcome};
use tenure_core::kernel::{Fence, TickDuration};

use crate::keepalive::harness::{FENCE, KeepAliveHarness, reply, send_effect, valid_reply, valid_reply_for};

const TTL: TickDuration = TickDuration::from_secs(30);

#[test]
fn stop_before_start_sends_nothing() {
    let mut harness = KeepAliveHarness::new(TTL);
    assert_eq!(harness.step_at(0, Input::Stop), []);
    assert_eq!(harness.step_at(0, Input::Start), []);
    assert_eq!(harness.keep_alive.wake_at(), None);
}

#[test]
fn grant_after_stop_is_released_once() {
    let mut story = KeepAliveHarness::new(TTL);
    story.step_at(0, Input::Start);
    story.step_at(200, Input::Woken);
    assert_eq!(story.step_at(300, Input::Stop), [send_effect(3, KeepAliveRequest::Withdraw)]);
    assert_eq!(
        story.step_at(400, valid_reply(2, 30_000)),
        [send_effect(4, KeepAliveRequest::Release(FENCE))]
    );
    assert_eq!(story.step_at(500, valid_reply(1, 30_000)), [], "it is on its way back already");
    assert!(!story.is_held_at(500));
}

#[test]
fn two_grants_after_stop_are_both_released() {
    let mut story = KeepAliveHarness::new(TTL);
    story.step_at(0, Input::Start);
    story.step_at(200, Input::Woken);
    assert_eq!(story.step_at(300, Input::Stop), [send_effect(3, KeepAliveRequest::Withdraw)]);
    assert_eq!(
        story.step_at(400, valid_reply_for(Fence(7), 1, 30_000)),
        [send_effect(4, KeepAliveRequest::Release(Fence(7)))]
    );
    assert_eq!(
        story.step_at(500, valid_reply_for(Fence(8), 2, 30_000)),
        [send_effect(5, KeepAliveRequest::Release(Fence(8)))]
    );
}

#[test]
fn stopped_waiter_withdraws_and_releases_a_later_grant() {
    let mut story = KeepAliveHarness::new(TTL);
    story.step_at(0, Input::Start);
    story.step_at(10, reply(1, ReplyOutcome::Queued));
    assert_eq!(story.step_at(5_000, Input::Stop), [send_effect(2, KeepAliveRequest::Withdraw)]);
    assert_eq!(story.step_at(5_010, reply(2, ReplyOutcome::Ended)), []);
    assert!(story.keep_alive.is_done());
    assert_eq!(
        story.step_at(9_000, valid_reply(1, 39_000)),
        [send_effect(3, KeepAliveRequest::Release(FENCE))]
    );
    assert!(!story.keep_alive.is_done());
}

#[test]
fn grant_in_reply_to_a_withdrawal_is_released() {
    let mut story = KeepAliveHarness::new(TTL);
    story.step_at(0, Input::Start);
    assert_eq!(story.step_at(5_000, Input::Stop), [send_effect(2, KeepAliveRequest::Withdraw)]);
    assert_eq!(
        story.step_at(5_010, valid_reply(2, 30_000)),
        [send_effect(3, KeepAliveRequest::Release(FENCE))]
    );
    assert_eq!(story.step_at(5_020, reply(3, ReplyOutcome::Ended)), []);
    assert!(story.keep_alive.is_done() && !story.is_held_at(5_020));
}

#[test]
fn release_is_retried_a_limited_number_of_times() {
    let mut story = KeepAliveHarness::held(TTL);
    assert_eq!(story.step_at(100, Input::Stop), [send_effect(2, KeepAliveRequest::Release(FENCE))]);
    let again = story.run_unanswered_until(60_000);
    assert!((4..=10).contains(&again.len()), "{again:?}");
    assert!(again.iter().all(|(_, call)| *call == KeepAliveRequest::Release(FENCE)), "{again:?}");
    assert!(again.last().is_some_and(|(at, _)| *at <= 30_000), "it is over by then: {again:?}");
    assert!(story.keep_alive.is_done());
}

#[test]
fn reply_to_any_release_attempt_finishes_it() {
    let mut story = KeepAliveHarness::held(TTL);
    story.step_at(100, Input::Stop);
    assert_eq!(story.run_unanswered_until(250).len(), 1);
    assert_eq!(story.step_at(260, reply(2, ReplyOutcome::Ended)), []);
    assert!(story.keep_alive.is_done());
    assert_eq!(story.keep_alive.wake_at(), None);
}

#[test]
fn failed_release_is_retried_soon() {
    let mut story = KeepAliveHarness::held(TTL);
    story.step_at(100, Input::Stop);
    assert_eq!(story.step_at(110, reply(2, ReplyOutcome::Failed)), []);
    assert_eq!(story.step_at(110, Input::Woken), [send_effect(3, KeepAliveRequest::Release(FENCE))]);
}

#[test]
fn stale_grant_is_released_on_stop() {
    let mut story = KeepAliveHarness::new(TTL);
    story.step_at(0, Input::Start);
    story.step_at(40_000, valid_reply(1, 30_000));
    assert_eq!(story.step_at(40_100, Input::Stop), [send_effect(3, KeepAliveRequest::Release(FENCE))]);
    assert_eq!(story.step_at(40_200, valid_reply(2, 30_000)), []);
    assert!(!story.is_held_at(40_200));
}

#[test]
fn stop_of_an_expired_lease_reports_lost_and_releases_once() {
    let mut story = KeepAliveHarness::held(TTL);
    assert_eq!(
        story.step_at(31_000, Input::Stop),
        [Effect::Lost, send_effect(2, KeepAliveRequest::Release(FENCE))]
    );
    assert_eq!(story.step_at(31_001, Input::Stop), []);
}

#[test]
fn renewal_reply_after_release_sends_no_second_release() {
    let mut story = KeepAliveHarness::held(TTL);
    story.step_at(10_000, Input::Woken);
    assert_eq!(story.step_at(10_010, Input::Stop), [send_effect(3, KeepAliveRequest::Release(FENCE))]);
    assert_eq!(story.step_at(10_020, valid_reply(2, 30_000)), []);
}
