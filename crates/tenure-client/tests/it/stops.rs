//! Stop means stop, in whatever state a keeper is, and leaves nobody waiting for what is not needed.

use tenure_client::{Call, Effect, Input, Outcome};
use tenure_core::kernel::{Fence, Span};

use crate::story::{FENCE, Story, replied, send, valid, valid_as};

const TTL: Span = Span::from_secs(30);

#[test]
fn a_keeper_stopped_before_it_was_started_never_asks() {
    let mut story = Story::new(TTL);
    assert_eq!(story.at(0, Input::Stop), []);
    assert_eq!(story.at(0, Input::Start), []);
    assert_eq!(story.keeper.wake_at(), None);
}

#[test]
fn a_grant_that_comes_after_the_stop_is_given_back_once() {
    let mut story = Story::new(TTL);
    story.at(0, Input::Start);
    story.at(200, Input::Woken);
    assert_eq!(story.at(300, Input::Stop), []);
    assert_eq!(story.at(400, valid(2, 30_000)), [send(3, Call::Release(FENCE))]);
    assert_eq!(story.at(500, valid(1, 30_000)), [], "it is on its way back already");
    assert!(!story.believes_at(500));
}

#[test]
fn each_of_two_grants_that_come_after_the_stop_is_given_back() {
    let mut story = Story::new(TTL);
    story.at(0, Input::Start);
    story.at(200, Input::Woken);
    story.at(300, Input::Stop);
    assert_eq!(story.at(400, valid_as(Fence(7), 1, 30_000)), [send(3, Call::Release(Fence(7)))]);
    assert_eq!(story.at(500, valid_as(Fence(8), 2, 30_000)), [send(4, Call::Release(Fence(8)))]);
}

#[test]
fn a_waiter_that_stops_gives_back_what_it_is_served_later() {
    let mut story = Story::new(TTL);
    story.at(0, Input::Start);
    story.at(10, replied(1, Outcome::Queued));
    assert_eq!(story.at(5_000, Input::Stop), []);
    assert_eq!(story.keeper.wake_at(), None);
    assert_eq!(story.at(9_000, valid(1, 39_000)), [send(2, Call::Release(FENCE))]);
}

#[test]
fn a_grant_that_was_not_believed_yet_is_given_back() {
    let mut story = Story::new(TTL);
    story.at(0, Input::Start);
    story.at(40_000, valid(1, 30_000));
    assert_eq!(story.at(40_100, Input::Stop), [send(3, Call::Release(FENCE))]);
    assert_eq!(story.at(40_200, valid(2, 30_000)), []);
    assert!(!story.believes_at(40_200));
}

#[test]
fn stopping_what_is_over_already_says_lost_and_gives_back_once() {
    let mut story = Story::held(TTL);
    assert_eq!(story.at(31_000, Input::Stop), [Effect::Lost, send(2, Call::Release(FENCE))]);
    assert_eq!(story.at(31_001, Input::Stop), []);
}

#[test]
fn a_renewal_that_crosses_the_release_is_not_answered_with_another_release() {
    let mut story = Story::held(TTL);
    story.at(10_000, Input::Woken);
    assert_eq!(story.at(10_010, Input::Stop), [send(3, Call::Release(FENCE))]);
    assert_eq!(story.at(10_020, valid(2, 30_000)), []);
}
