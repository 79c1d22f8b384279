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
    assert_eq!(story.at(300, Input::Stop), [send(3, Call::Withdraw)]);
    assert_eq!(story.at(400, valid(2, 30_000)), [send(4, Call::Release(FENCE))]);
    assert_eq!(story.at(500, valid(1, 30_000)), [], "it is on its way back already");
    assert!(!story.believes_at(500));
}

#[test]
fn each_of_two_grants_that_come_after_the_stop_is_given_back() {
    let mut story = Story::new(TTL);
    story.at(0, Input::Start);
    story.at(200, Input::Woken);
    assert_eq!(story.at(300, Input::Stop), [send(3, Call::Withdraw)]);
    assert_eq!(story.at(400, valid_as(Fence(7), 1, 30_000)), [send(4, Call::Release(Fence(7)))]);
    assert_eq!(story.at(500, valid_as(Fence(8), 2, 30_000)), [send(5, Call::Release(Fence(8)))]);
}

#[test]
fn a_waiter_that_stops_leaves_the_queue_and_gives_back_what_it_is_served_all_the_same() {
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
fn a_waiter_that_was_served_before_it_could_leave_gives_that_back() {
    let mut story = Story::new(TTL);
    story.at(0, Input::Start);
    assert_eq!(story.at(5_000, Input::Stop), [send(2, Call::Withdraw)]);
    assert_eq!(story.at(5_010, valid(2, 30_000)), [send(3, Call::Release(FENCE))]);
    assert_eq!(story.at(5_020, replied(3, Outcome::Over)), []);
    assert!(story.keeper.is_done() && !story.believes_at(5_020));
}

#[test]
fn what_is_given_back_is_said_until_somebody_answers_but_not_for_ever() {
    let mut story = Story::held(TTL);
    assert_eq!(story.at(100, Input::Stop), [send(2, Call::Release(FENCE))]);
    let again = story.unanswered_until(60_000);
    assert!((4..=10).contains(&again.len()), "{again:?}");
    assert!(again.iter().all(|(_, call)| *call == Call::Release(FENCE)), "{again:?}");
    assert!(again.last().is_some_and(|(at, _)| *at <= 30_000), "it is over by then: {again:?}");
    assert!(story.keeper.is_done());
}

#[test]
fn an_answer_to_any_of_the_times_that_it_was_said_is_enough() {
    let mut story = Story::held(TTL);
    story.at(100, Input::Stop);
    assert_eq!(story.unanswered_until(250).len(), 1);
    assert_eq!(story.at(260, replied(2, Outcome::Over)), []);
    assert!(story.keeper.is_done());
    assert_eq!(story.keeper.wake_at(), None);
}

#[test]
fn a_release_that_failed_is_soon_tried_again() {
    let mut story = Story::held(TTL);
    story.at(100, Input::Stop);
    assert_eq!(story.at(110, replied(2, Outcome::Failed)), []);
    assert_eq!(story.at(110, Input::Woken), [send(3, Call::Release(FENCE))]);
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
