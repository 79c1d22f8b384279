//! Stories of the heartbeats, with the clock in milliseconds.

use tenure_core::kernel::{Fence, TickDuration};

use super::CheckError;
use super::heartbeat::AgentHeartbeat;
use crate::hold::LeaseLost;
use crate::keepalive::{AttemptId, Effect, Input, KeepAliveRequest, ReplyOutcome};

const TTL: u64 = 60_000;
const FENCE: Fence = Fence(7);

struct Harness(AgentHeartbeat);

impl Harness {
    /// Granted at 0, for the whole of its length, with half a second for clocks that do not agree.
    fn granted() -> Self {
        let mut story =
            Self(AgentHeartbeat::new(TickDuration::from_millis(TTL), TickDuration::from_millis(500)));
        let effects = story.0.start(FENCE, TickDuration::from_millis(TTL), 0, 20_000, 0);
        assert_eq!(effects, [Effect::Held(FENCE)]);
        story
    }

    fn woken(&mut self, milliseconds: u64) -> Vec<Effect> {
        self.0.step(Input::Woken, milliseconds * 1_000, 0)
    }

    fn reply(&mut self, milliseconds: u64, attempt: u64, outcome: ReplyOutcome) -> Vec<Effect> {
        self.0.handle_reply(AttemptId(attempt), outcome, milliseconds * 1_000, 0)
    }

    fn check(&self, milliseconds: u64) -> Result<(), CheckError> {
        self.0.status().check(milliseconds * 1_000)
    }
}

fn heartbeat_effect(attempt: u64) -> Effect {
    Effect::Send { request_id: AttemptId(attempt), request: KeepAliveRequest::Renew(FENCE) }
}

fn valid_outcome() -> ReplyOutcome {
    ReplyOutcome::Valid { fence: FENCE, valid_for: TickDuration::from_millis(TTL) }
}

// S3-12
#[test]
fn heartbeat_is_sent_after_a_third_of_the_ttl() {
    let mut story = Harness::granted();
    let at = story.0.wake_at().expect("it is kept alive").div_ceil(1_000);
    assert!((TTL / 4..=TTL / 3).contains(&at), "{at}");
    assert_eq!(story.woken(at), [heartbeat_effect(2)]);
    assert_eq!(story.reply(at + 5, 2, valid_outcome()), []);
    let next = story.0.wake_at().expect("it is kept alive").div_ceil(1_000);
    assert!((at + TTL / 4..=at + TTL / 3).contains(&next), "{next}");
}

// S3-27, S3-32
#[test]
fn local_deadline_counts_from_sending_and_is_earlier_by_the_skew() {
    // Sent at 0, answered at 20 ms: 60 s less 0.5 s for the skew; of that less 0.5 % and 50 ms.
    let story = Harness::granted();
    let end = 59_500 - 298 - 50;
    assert_eq!(story.check(end), Err(CheckError::Paused));
    assert_eq!(story.check(end + 1), Err(CheckError::Lost(LeaseLost::DeadlinePassed)));

    let mut late = AgentHeartbeat::new(TickDuration::from_millis(TTL), TickDuration(0));
    late.start(FENCE, TickDuration::from_millis(TTL), 0, 59_000_000, 0);
    assert_eq!(late.status().deadline, 59_650_000, "the way there and back is the agent's loss");
}

// S3-30, S3-31
#[test]
fn failed_heartbeat_pauses_at_once_and_a_successful_one_resumes() {
    let mut story = Harness::granted();
    assert_eq!(story.check(19_000), Ok(()));
    assert_eq!(story.woken(20_000), [heartbeat_effect(2)]);
    assert_eq!(story.reply(20_010, 2, ReplyOutcome::Failed), []);
    assert_eq!(story.check(20_010), Err(CheckError::Paused));
    assert_eq!(story.woken(20_500), [heartbeat_effect(3)]);
    story.reply(20_510, 3, valid_outcome());
    assert_eq!(story.check(20_510), Ok(()));
}

// S3-30, S3-31
#[test]
fn late_reply_to_an_older_heartbeat_is_ignored() {
    let mut story = Harness::granted();
    assert_eq!(story.woken(20_000), [heartbeat_effect(2)]);
    let again = story.0.wake_at().expect("it tries again").div_ceil(1_000);
    assert_eq!(story.woken(again), [heartbeat_effect(3)]);
    story.reply(again + 10, 3, valid_outcome());
    let until = story.0.status().deadline;
    assert_eq!(story.reply(again + 20, 2, ReplyOutcome::Failed), []);
    assert_eq!(story.check(again + 20), Ok(()), "the newer one got through");
    assert_eq!(story.reply(again + 30, 2, valid_outcome()), []);
    assert_eq!(story.0.status().deadline, until);
}

// S3-30, S3-31
#[test]
fn missing_replies_pause_early_and_then_lose_the_leases_for_good() {
    let mut story = Harness::granted();
    let mut paused_at = None;
    while story.0.status().lost.is_none() {
        let now = story.0.wake_at().expect("it goes on trying") / 1_000;
        story.woken(now + 1);
        if story.check(now + 1) == Err(CheckError::Paused) {
            paused_at.get_or_insert(now);
        }
    }
    assert!(paused_at.is_some_and(|at| at < 35_000), "{paused_at:?}");
    story.reply(59_400, 2, valid_outcome());
    assert_eq!(
        story.check(59_400),
        Err(CheckError::Lost(LeaseLost::DeadlinePassed)),
        "an answer comes too late"
    );
}

// S3-30, S3-31
#[test]
fn rejected_lease_is_lost_at_once() {
    let mut story = Harness::granted();
    story.woken(20_000);
    story.0.record_end("REVOKED".into());
    assert_eq!(story.reply(20_010, 2, ReplyOutcome::Ended), [Effect::Lost]);
    let lost = CheckError::Lost(LeaseLost::Ended { end: "REVOKED".into() });
    assert_eq!(story.check(20_010), Err(lost));
}

// S3-32
#[test]
fn skew_is_limited_to_half_of_the_lease() {
    let mut heartbeat = AgentHeartbeat::new(TickDuration::from_millis(1_000), TickDuration::from_secs(60));
    let effects = heartbeat.start(FENCE, TickDuration::from_millis(1_000), 0, 1_000, 0);
    assert_eq!(effects, [Effect::Held(FENCE)]);
    assert_eq!(heartbeat.status().deadline, 500_000 - 2_500 - 50_000);
}
