//! A keeper asks in good time, again and again, but not all the time.

use tenure_client::{AttemptId, Effect, Input, KeepAliveRequest, ReplyOutcome};
use tenure_core::kernel::TickDuration;

use crate::keepalive::harness::{FENCE, KeepAliveHarness, reply, send_effect, valid_reply};

const TTL: TickDuration = TickDuration::from_secs(30);

#[test]
fn late_queued_reply_does_not_delay_the_renewal() {
    // Asked twice; the first message was served, and then the answer to the second one is heard.
    let mut story = KeepAliveHarness::new(TickDuration::from_secs(3));
    story.step_at(0, Input::Start);
    assert_eq!(story.step_at(200, Input::Woken), [send_effect(2, KeepAliveRequest::Acquire)]);
    assert_eq!(story.step_at(250, valid_reply(1, 3_000)), [Effect::Held(FENCE)]);
    assert_eq!(story.step_at(300, reply(2, ReplyOutcome::Queued)), []);
    let tries = story.run_unanswered_until(1_500);
    assert!(
        tries.first().is_some_and(|(at, call)| *at <= 1_000 && *call == KeepAliveRequest::Renew(FENCE)),
        "{tries:?}"
    );
}

#[test]
fn lease_with_little_remaining_time_is_renewed_in_time() {
    // The first answers were lost; the one that came says that 3 of 30 seconds are left.
    let mut story = KeepAliveHarness::new(TTL);
    story.step_at(0, Input::Start);
    story.run_unanswered_until(27_000);
    let last = story.keep_alive.wake_at().expect("another try") / 1_000;
    let sent = story.step_at(last, Input::Woken);
    let [Effect::Send { request_id: AttemptId(attempt), request: KeepAliveRequest::Acquire }] = sent[..]
    else {
        panic!("{sent:?}")
    };
    assert_eq!(story.step_at(last + 10, valid_reply(attempt, 3_000)), [Effect::Held(FENCE)]);
    let tries = story.run_unanswered_until(last + 2_000);
    assert!(tries.len() >= 2, "it would be lost for want of a try: {tries:?}");
}

#[test]
fn late_failures_do_not_delay_the_next_retry() {
    let mut story = KeepAliveHarness::held(TTL);
    story.run_unanswered_until(20_000);
    let next = story.keep_alive.wake_at().expect("another try");
    story.random = 5_000_000;
    for attempt in 2..5 {
        story.step_at(next / 1_000 - 10, reply(attempt, ReplyOutcome::Failed));
        assert!(story.keep_alive.wake_at().is_some_and(|at| at <= next), "put off by attempt {attempt}");
    }
}

#[test]
fn retry_interval_of_a_long_lease_is_limited() {
    let mut story = KeepAliveHarness::new(TickDuration::from_secs(24 * 60 * 60));
    story.step_at(0, Input::Start);
    let tries = story.run_unanswered_until(600_000);
    let longest = tries.windows(2).map(|pair| pair[1].0 - pair[0].0).max();
    assert!(longest.is_some_and(|pause| pause <= 15_000), "{longest:?} ms");
}

#[test]
fn retries_back_off_while_the_server_is_down() {
    let mut story = KeepAliveHarness::new(TTL);
    story.step_at(0, Input::Start);
    let tries = story.run_unanswered_until(60_000);
    let early = tries.iter().filter(|(at, _)| *at <= 1_000).count();
    assert!(early <= 5 && tries.len() <= 30, "{tries:?}");
    let pauses: Vec<u64> = tries.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(pauses.is_sorted(), "each pause is at least as long as the one before: {pauses:?}");
}

#[test]
fn queued_request_for_a_short_lease_is_repeated_within_its_ttl() {
    // It waited, it was served, and that word was lost: asking again finds it while it lives.
    let mut story = KeepAliveHarness::new(TickDuration::from_secs(3));
    story.step_at(0, Input::Start);
    story.step_at(10, reply(1, ReplyOutcome::Queued));
    let tries = story.run_unanswered_until(3_000);
    assert!(tries.len() >= 2, "{tries:?}");
}

#[test]
fn unanswered_requests_do_not_accumulate() {
    let mut story = KeepAliveHarness::new(TTL);
    story.step_at(0, Input::Start);
    story.step_at(10, reply(1, ReplyOutcome::Queued));
    let tries = story.run_unanswered_until(100_000_000);
    assert!(tries.len() > 1_000);
    let remembered = format!("{:?}", story.keep_alive).matches("Attempt(").count();
    assert!(remembered <= 20, "{remembered}");
}

#[test]
fn stale_grant_is_renewed_with_backoff() {
    let mut story = KeepAliveHarness::new(TTL);
    story.step_at(0, Input::Start);
    assert_eq!(
        story.step_at(40_000, valid_reply(1, 30_000)),
        [send_effect(2, KeepAliveRequest::Renew(FENCE))]
    );
    let tries = story.run_unanswered_until(41_000);
    assert!(!tries.is_empty() && tries.len() <= 4, "{tries:?}");
    assert!(tries.iter().all(|(_, call)| *call == KeepAliveRequest::Renew(FENCE)));
    assert!(!story.is_held_at(41_000));
}
