//! Stop means stop, in whatever state a keeper is, and leaves nobody waiting for what is not needed.

use tenure_client::{Call, Effect, Input, Outcome};
use tenure_core::kernel::{Fence, Span};

use crate::story::{FENCE, Story, replied, send, valid, valid_as};

const TTL: Span = Span::from_secs(30);

#[test]
fn stop_before_start_sends_nothing() {
    let mut story = Story::new(TTL);
    assert_eq!(story.at(0, Input::Stop), []);
    assert_eq!(story.at(0, Input::Start), []);
    assert_eq!(story.keeper.wake_at(), None);
}

#[test]
fn grant_after_stop_is_released_once() {
    let mut story = Story::new(TTL);
    story.at(0, Input::Start);
    story.at(200, Input::Woken);
    assert_eq!(story.at(300, Input::Stop), [send(3, Call::Withdraw)]);
    assert_eq!(story.at(400, valid(2, 30_000)), [send(4, Call::Release(FENCE))]);
    assert_eq!(story.at(500, valid(1, 30_000)), [], "it is on its way back already");
    assert!(!story.believes_at(500));
}

#[test]
fn two_grants_after_stop_are_both_released() {
    let mut story = Story::new(TTL);
    story.at(0, Input::Start);
    story.at(200, Input::Woken);
    assert_eq!(story.at(300, Input::Stop), [send(3, Call::Withdraw)]);
    assert_eq!(story.at(400, valid_as(Fence(7), 1, 30_000)), [send(4, Call::Release(Fence(7)))]);
    assert_eq!(story.at(500, valid_as(Fence(8), 2, 30_000)), [send(5, Call::Release(Fence(8)))]);
}

#[test]
fn stopped_waiter_withdraws_and_releases_a_later_grant() {
    let mut story = Story::new(TTL);
    story.at(0, Input::Start);
    story.at(10, replied(1, Outcome::Queued));
    assert_eq!(story.at(5_000, Input::Stop), [send(2, Call::Withdraw)]);
    assert_eq!(story.at(5_010, replied(2, Outcome::Over)), []);
    assert!(story.keeper.is_done());
    assert_eq!(story.at(9_000, valid(1, 39_000)), [send(3, Call::Release(FENCE))]);
    assert!(!story.keeper.is_done());
}

#[test]
fn grant_in_reply_to_a_withdrawal_is_released() {
    let mut story = Story::new(TTL);
    story.at(0, Input::Start);
    assert_eq!(story.at(5_000, Input::Stop), [send(2, Call::Withdraw)]);
    assert_eq!(story.at(5_010, valid(2, 30_000)), [send(3, Call::Release(FENCE))]);
    assert_eq!(story.at(5_020, replied(3, Outcome::Over)), []);
    assert!(story.keeper.is_done() && !story.believes_at(5_020));
}

#[test]
fn release_is_retried_a_limited_number_of_times() {
    let mut story = Story::held(TTL);
    assert_eq!(story.at(100, Input::Stop), [send(2, Call::Release(FENCE))]);
    let again = story.unanswered_until(60_000);
    assert!((4..=10).contains(&again.len()), "{again:?}");
    assert!(again.iter().all(|(_, call)| *call == Call::Release(FENCE)), "{again:?}");
    assert!(again.last().is_some_and(|(at, _)| *at <= 30_000), "it is over by then: {again:?}");
    assert!(story.keeper.is_done());
}

#[test]
fn reply_to_any_release_attempt_finishes_it() {
    let mut story = Story::held(TTL);
    story.at(100, Input::Stop);
    assert_eq!(story.unanswered_until(250).len(), 1);
    assert_eq!(story.at(260, replied(2, Outcome::Over)), []);
    assert!(story.keeper.is_done());
    assert_eq!(story.keeper.wake_at(), None);
}

#[test]
fn failed_release_is_retried_soon() {
    let mut story = Story::held(TTL);
    story.at(100, Input::Stop);
    assert_eq!(story.at(110, replied(2, Outcome::Failed)), []);
    assert_eq!(story.at(110, Input::Woken), [send(3, Call::Release(FENCE))]);
}

#[test]
fn stale_grant_is_released_on_stop() {
    let mut story = Story::new(TTL);
    story.at(0, Input::Start);
    story.at(40_000, valid(1, 30_000));
    assert_eq!(story.at(40_100, Input::Stop), [send(3, Call::Release(FENCE))]);
    assert_eq!(story.at(40_200, valid(2, 30_000)), []);
    assert!(!story.believes_at(40_200));
}

#[test]
fn stop_of_an_expired_lease_reports_lost_and_releases_once() {
    let mut story = Story::held(TTL);
    assert_eq!(story.at(31_000, Input::Stop), [Effect::Lost, send(2, Call::Release(FENCE))]);
    assert_eq!(story.at(31_001, Input::Stop), []);
}

#[test]
fn renewal_reply_after_release_sends_no_second_release() {
    let mut story = Story::held(TTL);
    story.at(10_000, Input::Woken);
    assert_eq!(story.at(10_010, Input::Stop), [send(3, Call::Release(FENCE))]);
    assert_eq!(story.at(10_020, valid(2, 30_000)), []);
}
