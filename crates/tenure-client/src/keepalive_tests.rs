//! Tests of `KeepAlive`, with its clock in milliseconds.

use tenure_core::kernel::{Fence, TickDuration};

use crate::{AttemptId, Effect, Input, KeepAlive, KeepAliveRequest, ReplyOutcome};

const TTL: TickDuration = TickDuration::from_secs(30);

struct Harness {
    keep_alive: KeepAlive,
}

impl Harness {
    fn new() -> Self {
        Self { keep_alive: KeepAlive::new(TTL) }
    }

    fn at(&mut self, milliseconds: u64, input: Input) -> Vec<Effect> {
        self.keep_alive.step(input, milliseconds * 1_000, 0)
    }

    fn is_held_at(&self, milliseconds: u64) -> bool {
        self.keep_alive.held_fence(milliseconds * 1_000).is_some()
    }

    fn held(milliseconds: u64) -> Self {
        let mut harness = Self::new();
        harness.at(milliseconds, Input::Start);
        assert_eq!(harness.at(milliseconds, valid_reply(1, 30_000)), [Effect::Held(Fence(7))]);
        harness
    }
}

fn valid_reply(attempt: u64, milliseconds: u64) -> Input {
    let outcome = ReplyOutcome::Valid { fence: Fence(7), valid_for: TickDuration::from_millis(milliseconds) };
    Input::Replied { request_id: AttemptId(attempt), outcome }
}

fn reply(attempt: u64, outcome: ReplyOutcome) -> Input {
    Input::Replied { request_id: AttemptId(attempt), outcome }
}

fn send_effect(attempt: u64, call: KeepAliveRequest) -> Effect {
    Effect::Send { request_id: AttemptId(attempt), request: call }
}

#[test]
fn local_deadline_counts_from_sending_the_request() {
    let mut story = Harness::new();
    assert_eq!(story.at(0, Input::Start), [send_effect(1, KeepAliveRequest::Acquire)]);
    assert_eq!(story.at(5_000, valid_reply(1, 30_000)), [Effect::Held(Fence(7))]);
    assert!(story.is_held_at(29_799));
    assert!(!story.is_held_at(29_800), "30 s less 0.5 % and 50 ms, from the sending");
}

#[test]
fn lease_is_renewed_after_a_third_of_its_ttl() {
    let mut story = Harness::held(0);
    assert_eq!(story.keep_alive.wake_at(), Some(10_000_000));
    assert_eq!(story.at(9_999, Input::Woken), []);
    assert_eq!(story.at(10_000, Input::Woken), [send_effect(2, KeepAliveRequest::Renew(Fence(7)))]);
    assert_eq!(story.at(10_100, valid_reply(2, 30_000)), []);
    assert!(story.is_held_at(39_799) && !story.is_held_at(39_800));
}

#[test]
fn unanswered_renewal_is_retried_until_the_lease_is_lost() {
    let mut story = Harness::held(0);
    let mut renewals = 0;
    loop {
        let now = story.keep_alive.wake_at().expect("a held lease always has something to wait for");
        let effects = story.keep_alive.step(Input::Woken, now, 0);
        if effects.contains(&Effect::Lost) {
            assert_eq!(now, 29_800_000);
            break;
        }
        renewals += effects.len();
    }
    assert!(renewals >= 5, "only {renewals} tries");
    assert!(story.keep_alive.has_ended());
}

#[test]
fn late_reply_does_not_revive_a_lost_lease() {
    let mut story = Harness::held(0);
    story.at(10_000, Input::Woken);
    let effects = story.at(29_800, valid_reply(2, 30_000));
    assert_eq!(effects, [Effect::Lost, send_effect(3, KeepAliveRequest::Release(Fence(7)))]);
    assert!(!story.is_held_at(29_801));
}

#[test]
fn paused_process_loses_its_lease_before_any_timer_runs() {
    let mut story = Harness::held(0);
    assert!(!story.is_held_at(60_000), "asked on waking, before any timer ran");
    assert_eq!(story.at(60_000, Input::Woken)[0], Effect::Lost);
}

#[test]
fn late_grant_is_renewed_before_it_is_held() {
    let mut story = Harness::new();
    story.at(0, Input::Start);
    assert_eq!(story.at(29_900, valid_reply(1, 30_000)), [send_effect(2, KeepAliveRequest::Renew(Fence(7)))]);
    assert!(!story.is_held_at(29_900));
    assert_eq!(story.at(30_000, valid_reply(2, 30_000)), [Effect::Held(Fence(7))]);
    assert!(story.is_held_at(30_000));
}

#[test]
fn older_reply_does_not_shorten_the_deadline() {
    let mut story = Harness::held(0);
    story.at(10_000, Input::Woken);
    story.at(15_500, Input::Woken);
    story.at(16_000, valid_reply(3, 30_000));
    story.at(16_100, valid_reply(2, 30_000));
    assert!(story.is_held_at(44_000));
}

#[test]
fn ended_reply_loses_the_lease_at_once() {
    let mut story = Harness::held(0);
    story.at(10_000, Input::Woken);
    assert_eq!(story.at(10_100, reply(2, ReplyOutcome::Ended)), [Effect::Lost]);
    assert!(!story.is_held_at(10_100));
}

#[test]
fn rejection_is_reported_once_and_failure_is_retried() {
    let mut story = Harness::new();
    story.at(0, Input::Start);
    assert_eq!(story.at(10, reply(1, ReplyOutcome::Failed)), []);
    assert_eq!(story.at(10, Input::Woken), [send_effect(2, KeepAliveRequest::Acquire)]);
    assert_eq!(story.at(20, reply(2, ReplyOutcome::Refused)), [Effect::Refused]);
    assert_eq!(story.at(30, reply(2, ReplyOutcome::Refused)), []);
}

#[test]
fn stop_releases_the_held_lease_and_later_grants() {
    let mut story = Harness::held(0);
    assert_eq!(story.at(100, Input::Stop), [send_effect(2, KeepAliveRequest::Release(Fence(7)))]);
    assert!(!story.is_held_at(100));

    let mut story = Harness::new();
    story.at(0, Input::Start);
    assert_eq!(story.at(100, Input::Stop), [send_effect(2, KeepAliveRequest::Withdraw)]);
    assert_eq!(story.at(200, valid_reply(1, 30_000)), [send_effect(3, KeepAliveRequest::Release(Fence(7)))]);
}

#[test]
fn queued_request_is_repeated_rarely() {
    let mut story = Harness::new();
    story.at(0, Input::Start);
    assert_eq!(story.at(10, reply(1, ReplyOutcome::Queued)), []);
    assert_eq!(story.keep_alive.wake_at(), Some(10_010_000));
    assert_eq!(story.at(9_000, valid_reply(1, 39_000)), [Effect::Held(Fence(7))]);
    assert!(story.is_held_at(38_754) && !story.is_held_at(38_755));
}
