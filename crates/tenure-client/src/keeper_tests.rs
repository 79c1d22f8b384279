//! Stories of a keeper, with its clock in milliseconds.

use tenure_core::kernel::{Fence, Span};

use crate::{Attempt, Call, Effect, Input, Keeper, Outcome};

const TTL: Span = Span::from_secs(30);

struct Story {
    keeper: Keeper,
}

impl Story {
    fn new() -> Self {
        Self { keeper: Keeper::new(TTL) }
    }

    fn at(&mut self, milliseconds: u64, input: Input) -> Vec<Effect> {
        self.keeper.step(input, milliseconds * 1_000, 0)
    }

    fn believes_at(&self, milliseconds: u64) -> bool {
        self.keeper.believes(milliseconds * 1_000).is_some()
    }

    fn held_since(milliseconds: u64) -> Self {
        let mut story = Self::new();
        story.at(milliseconds, Input::Start);
        assert_eq!(story.at(milliseconds, valid(1, 30_000)), [Effect::Held(Fence(7))]);
        story
    }
}

fn valid(attempt: u64, milliseconds: u64) -> Input {
    let outcome = Outcome::Valid { fence: Fence(7), valid_for: Span::from_millis(milliseconds) };
    Input::Replied { attempt: Attempt(attempt), outcome }
}

fn replied(attempt: u64, outcome: Outcome) -> Input {
    Input::Replied { attempt: Attempt(attempt), outcome }
}

fn send(attempt: u64, call: Call) -> Effect {
    Effect::Send { attempt: Attempt(attempt), call }
}

#[test]
fn belief_counts_from_when_the_request_was_sent() {
    let mut story = Story::new();
    assert_eq!(story.at(0, Input::Start), [send(1, Call::Acquire)]);
    assert_eq!(story.at(5_000, valid(1, 30_000)), [Effect::Held(Fence(7))]);
    assert!(story.believes_at(29_799));
    assert!(!story.believes_at(29_800), "30 s less 0.5 % and 50 ms, from the sending");
}

#[test]
fn a_lease_is_renewed_after_a_third_of_its_time() {
    let mut story = Story::held_since(0);
    assert_eq!(story.keeper.wake_at(), Some(10_000_000));
    assert_eq!(story.at(9_999, Input::Woken), []);
    assert_eq!(story.at(10_000, Input::Woken), [send(2, Call::Renew(Fence(7)))]);
    assert_eq!(story.at(10_100, valid(2, 30_000)), []);
    assert!(story.believes_at(39_799) && !story.believes_at(39_800));
}

#[test]
fn a_renewal_that_is_not_answered_is_tried_again_until_the_lease_is_lost() {
    let mut story = Story::held_since(0);
    let mut renewals = 0;
    loop {
        let now = story.keeper.wake_at().expect("a held lease always has something to wait for");
        let effects = story.keeper.step(Input::Woken, now, 0);
        if effects.contains(&Effect::Lost) {
            assert_eq!(now, 29_800_000);
            break;
        }
        renewals += effects.len();
    }
    assert!(renewals >= 5, "only {renewals} tries");
    assert!(story.keeper.is_over());
}

#[test]
fn a_lost_lease_does_not_come_back_with_a_late_reply() {
    let mut story = Story::held_since(0);
    story.at(10_000, Input::Woken);
    let effects = story.at(29_800, valid(2, 30_000));
    assert_eq!(effects, [Effect::Lost, send(3, Call::Release(Fence(7)))]);
    assert!(!story.believes_at(29_801));
}

#[test]
fn a_paused_process_finds_its_lease_lost_before_it_does_anything_else() {
    let mut story = Story::held_since(0);
    assert!(!story.believes_at(60_000), "asked on waking, before any timer ran");
    assert_eq!(story.at(60_000, Input::Woken)[0], Effect::Lost);
}

#[test]
fn a_grant_that_comes_too_late_is_renewed_before_it_is_believed() {
    let mut story = Story::new();
    story.at(0, Input::Start);
    assert_eq!(story.at(29_900, valid(1, 30_000)), [send(2, Call::Renew(Fence(7)))]);
    assert!(!story.believes_at(29_900));
    assert_eq!(story.at(30_000, valid(2, 30_000)), [Effect::Held(Fence(7))]);
    assert!(story.believes_at(30_000));
}

#[test]
fn an_older_reply_never_shortens_what_a_newer_one_gave() {
    let mut story = Story::held_since(0);
    story.at(10_000, Input::Woken);
    story.at(15_500, Input::Woken);
    story.at(16_000, valid(3, 30_000));
    story.at(16_100, valid(2, 30_000));
    assert!(story.believes_at(44_000));
}

#[test]
fn the_registrars_word_that_it_is_over_ends_belief_at_once() {
    let mut story = Story::held_since(0);
    story.at(10_000, Input::Woken);
    assert_eq!(story.at(10_100, replied(2, Outcome::Over)), [Effect::Lost]);
    assert!(!story.believes_at(10_100));
}

#[test]
fn a_refusal_is_told_once_and_a_failure_is_tried_again() {
    let mut story = Story::new();
    story.at(0, Input::Start);
    assert_eq!(story.at(10, replied(1, Outcome::Failed)), []);
    assert_eq!(story.at(10, Input::Woken), [send(2, Call::Acquire)]);
    assert_eq!(story.at(20, replied(2, Outcome::Refused)), [Effect::Refused]);
    assert_eq!(story.at(30, replied(2, Outcome::Refused)), []);
}

#[test]
fn stopping_gives_back_what_is_held_and_what_still_comes() {
    let mut story = Story::held_since(0);
    assert_eq!(story.at(100, Input::Stop), [send(2, Call::Release(Fence(7)))]);
    assert!(!story.believes_at(100));

    let mut story = Story::new();
    story.at(0, Input::Start);
    assert_eq!(story.at(100, Input::Stop), [send(2, Call::Withdraw)]);
    assert_eq!(story.at(200, valid(1, 30_000)), [send(3, Call::Release(Fence(7)))]);
}

#[test]
fn who_waits_in_the_queue_asks_again_only_now_and_then() {
    let mut story = Story::new();
    story.at(0, Input::Start);
    assert_eq!(story.at(10, replied(1, Outcome::Queued)), []);
    assert_eq!(story.keeper.wake_at(), Some(10_010_000));
    assert_eq!(story.at(9_000, valid(1, 39_000)), [Effect::Held(Fence(7))]);
    assert!(story.believes_at(38_754) && !story.believes_at(38_755));
}
