//! Stories of the heartbeats, with the clock in milliseconds.

use tenure_core::kernel::{Fence, Span};

use super::failure::Doubt;
use super::pulse::Pulse;
use crate::hold::Lost;
use crate::keeper::{Attempt, Call, Effect, Input, Outcome};

const TTL: u64 = 60_000;
const FENCE: Fence = Fence(7);

struct Story(Pulse);

impl Story {
    /// Granted at 0, for the whole of its length, with half a second for clocks that do not agree.
    fn granted() -> Self {
        let mut story = Self(Pulse::new(Span::from_millis(TTL), Span::from_millis(500)));
        let effects = story.0.begin(FENCE, Span::from_millis(TTL), 0, 20_000, 0);
        assert_eq!(effects, [Effect::Held(FENCE)]);
        story
    }

    fn woken(&mut self, milliseconds: u64) -> Vec<Effect> {
        self.0.step(Input::Woken, milliseconds * 1_000, 0)
    }

    fn heard(&mut self, milliseconds: u64, attempt: u64, outcome: Outcome) -> Vec<Effect> {
        self.0.heard(Attempt(attempt), outcome, milliseconds * 1_000, 0)
    }

    fn check(&self, milliseconds: u64) -> Result<(), Doubt> {
        self.0.standing().check(milliseconds * 1_000)
    }
}

fn beat(attempt: u64) -> Effect {
    Effect::Send { attempt: Attempt(attempt), call: Call::Renew(FENCE) }
}

fn alive() -> Outcome {
    Outcome::Valid { fence: FENCE, valid_for: Span::from_millis(TTL) }
}

// S3-12
#[test]
fn heartbeat_is_sent_after_a_third_of_the_ttl() {
    let mut story = Story::granted();
    let at = story.0.wake_at().expect("it is kept alive").div_ceil(1_000);
    assert!((TTL / 4..=TTL / 3).contains(&at), "{at}");
    assert_eq!(story.woken(at), [beat(2)]);
    assert_eq!(story.heard(at + 5, 2, alive()), []);
    let next = story.0.wake_at().expect("it is kept alive").div_ceil(1_000);
    assert!((at + TTL / 4..=at + TTL / 3).contains(&next), "{next}");
}

// S3-27, S3-32
#[test]
fn local_deadline_counts_from_sending_and_is_earlier_by_the_skew() {
    // Sent at 0, answered at 20 ms: 60 s less 0.5 s for the skew; of that less 0.5 % and 50 ms.
    let story = Story::granted();
    let end = 59_500 - 298 - 50;
    assert_eq!(story.check(end), Err(Doubt::Paused));
    assert_eq!(story.check(end + 1), Err(Doubt::Lost(Lost::TimeUp)));

    let mut late = Pulse::new(Span::from_millis(TTL), Span(0));
    late.begin(FENCE, Span::from_millis(TTL), 0, 59_000_000, 0);
    assert_eq!(late.standing().until, 59_650_000, "the way there and back is the agent's loss");
}

// S3-30, S3-31
#[test]
fn failed_heartbeat_pauses_at_once_and_a_successful_one_resumes() {
    let mut story = Story::granted();
    assert_eq!(story.check(19_000), Ok(()));
    assert_eq!(story.woken(20_000), [beat(2)]);
    assert_eq!(story.heard(20_010, 2, Outcome::Failed), []);
    assert_eq!(story.check(20_010), Err(Doubt::Paused));
    assert_eq!(story.woken(20_500), [beat(3)]);
    story.heard(20_510, 3, alive());
    assert_eq!(story.check(20_510), Ok(()));
}

// S3-30, S3-31
#[test]
fn late_reply_to_an_older_heartbeat_is_ignored() {
    let mut story = Story::granted();
    assert_eq!(story.woken(20_000), [beat(2)]);
    let again = story.0.wake_at().expect("it tries again").div_ceil(1_000);
    assert_eq!(story.woken(again), [beat(3)]);
    story.heard(again + 10, 3, alive());
    let until = story.0.standing().until;
    assert_eq!(story.heard(again + 20, 2, Outcome::Failed), []);
    assert_eq!(story.check(again + 20), Ok(()), "the newer one got through");
    assert_eq!(story.heard(again + 30, 2, alive()), []);
    assert_eq!(story.0.standing().until, until);
}

// S3-30, S3-31
#[test]
fn missing_replies_pause_early_and_then_lose_the_leases_for_good() {
    let mut story = Story::granted();
    let mut paused_at = None;
    while story.0.standing().lost.is_none() {
        let now = story.0.wake_at().expect("it goes on trying") / 1_000;
        story.woken(now + 1);
        if story.check(now + 1) == Err(Doubt::Paused) {
            paused_at.get_or_insert(now);
        }
    }
    assert!(paused_at.is_some_and(|at| at < 35_000), "{paused_at:?}");
    story.heard(59_400, 2, alive());
    assert_eq!(story.check(59_400), Err(Doubt::Lost(Lost::TimeUp)), "an answer comes too late");
}

// S3-30, S3-31
#[test]
fn rejected_lease_is_lost_at_once() {
    let mut story = Story::granted();
    story.woken(20_000);
    story.0.ended("REVOKED".into());
    assert_eq!(story.heard(20_010, 2, Outcome::Over), [Effect::Lost]);
    let lost = Doubt::Lost(Lost::Ended { how: "REVOKED".into() });
    assert_eq!(story.check(20_010), Err(lost));
}

// S3-32
#[test]
fn skew_is_limited_to_half_of_the_lease() {
    let mut pulse = Pulse::new(Span::from_millis(1_000), Span::from_secs(60));
    let effects = pulse.begin(FENCE, Span::from_millis(1_000), 0, 1_000, 0);
    assert_eq!(effects, [Effect::Held(FENCE)]);
    assert_eq!(pulse.standing().until, 500_000 - 2_500 - 50_000);
}
