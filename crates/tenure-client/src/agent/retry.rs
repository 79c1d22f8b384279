//! What an agent does about the answer to its manifest, as a step function.

use tenure_api::{AgentLease, ManifestVerdict};

use crate::hold::WaitLimit;

/// The way from a manifest to its leases.
pub(super) struct RetrySchedule {
    /// When the agent gives up.
    deadline: Option<u64>,
    /// For how long it is granted: whoever looks later finds it over.
    ttl: u64,
    /// How often in a row nothing had changed.
    polls: u32,
    /// Who was last seen in the way.
    pub(super) blocked_by: Vec<String>,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RetryDecision {
    /// All of it is the agent's.
    Granted(Vec<AgentLease>),
    /// The same manifest is sent again at this time.
    RetryAt(u64),
    /// The agent would not wait for so long.
    TimedOut,
}

const MIN_BACKOFF: u64 = 50_000;
/// Nobody is told when its turn has come, so that it is asked for. Once a second costs the server little.
const MAX_BACKOFF: u64 = 1_000_000;

impl RetrySchedule {
    /// Begins at `now`; times are microseconds of the local clock.
    pub(super) fn new(wait: WaitLimit, ttl: u64, now: u64) -> Self {
        let deadline = match wait {
            WaitLimit::Forever => None,
            wait => Some(now.saturating_add(wait.milliseconds().saturating_mul(1_000))),
        };
        Self { deadline, ttl, polls: 0, blocked_by: Vec::new() }
    }

    /// How many milliseconds the agent would still wait, as the server is told. At least one: nobody can wait for less.
    pub(super) fn remaining_wait_ms(&self, now: u64) -> u64 {
        self.deadline
            .map_or(WaitLimit::Forever.milliseconds(), |until| until.saturating_sub(now) / 1_000)
            .max(1)
    }

    /// The server answered.
    pub(super) fn handle_verdict(
        &mut self,
        verdict: ManifestVerdict,
        now: u64,
        random: u64,
    ) -> RetryDecision {
        match verdict {
            ManifestVerdict::Granted { leases } => RetryDecision::Granted(leases),
            ManifestVerdict::Wait { blocked_by, .. } => {
                self.blocked_by = blocked_by;
                self.next_retry(now, random)
            }
            ManifestVerdict::Die { retry_after_ms, blocked_by, .. } => {
                self.blocked_by = blocked_by;
                self.polls = 0;
                let at = now.saturating_add(retry_after_ms.saturating_mul(1_000));
                if self.deadline.is_some_and(|until| at >= until) {
                    RetryDecision::TimedOut
                } else {
                    RetryDecision::RetryAt(at)
                }
            }
        }
    }

    /// Nothing was heard, or nothing that lasts.
    pub(super) fn next_retry(&mut self, now: u64, random: u64) -> RetryDecision {
        if self.deadline.is_some_and(|until| now >= until) {
            return RetryDecision::TimedOut;
        }
        let max_backoff = MAX_BACKOFF.min(self.ttl / 4);
        let pause = MIN_BACKOFF.saturating_mul(1 << self.polls.min(16)).min(max_backoff);
        self.polls = self.polls.saturating_add(1);
        let at = now.saturating_add(pause - random % (pause / 4 + 1));
        // One last look at the very end.
        RetryDecision::RetryAt(self.deadline.map_or(at, |until| at.min(until)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const TTL: u64 = 60_000_000;

    fn wait() -> ManifestVerdict {
        let wait_until = String::new();
        ManifestVerdict::Wait { wait_timeout_ms: 1, wait_until, position: 1, blocked_by: vec!["bob".into()] }
    }

    fn die(retry_after_ms: u64) -> ManifestVerdict {
        let blocked_by = vec!["carol".into()];
        ManifestVerdict::Die { retry_after_ms, priority_timestamp: 1, blocked_by, ended: Vec::new() }
    }

    #[test]
    fn wait_verdict_is_retried_with_backoff_until_the_wait_limit() {
        let mut schedule = RetrySchedule::new(WaitLimit::For(Duration::from_secs(5)), TTL, 0);
        let (mut now, mut requests) = (0, 0);
        while let RetryDecision::RetryAt(at) = schedule.handle_verdict(wait(), now, 0) {
            assert!(at > now && at - now <= MAX_BACKOFF);
            (now, requests) = (at, requests + 1);
        }
        assert_eq!(now, 5_000_000, "it looks once more at the very end");
        assert!((8..=12).contains(&requests), "{requests}");
        assert_eq!(schedule.blocked_by, ["bob"]);
    }

    #[test]
    fn die_verdict_is_retried_after_its_delay_unless_past_the_wait_limit() {
        let mut schedule = RetrySchedule::new(WaitLimit::For(Duration::from_secs(5)), TTL, 0);
        assert_eq!(schedule.handle_verdict(die(400), 1_000_000, 0), RetryDecision::RetryAt(1_400_000));
        assert_eq!(schedule.handle_verdict(die(4_000), 1_400_000, 0), RetryDecision::TimedOut);
        assert_eq!(schedule.blocked_by, ["carol"]);
        let mut patient = RetrySchedule::new(WaitLimit::Forever, TTL, 0);
        assert_eq!(patient.handle_verdict(die(30_000), 7, 0), RetryDecision::RetryAt(30_000_007));
    }

    #[test]
    fn retry_interval_is_limited_to_a_quarter_of_the_ttl() {
        let mut schedule = RetrySchedule::new(WaitLimit::Forever, 1_000_000, 0);
        for _ in 0..20 {
            let RetryDecision::RetryAt(at) = schedule.handle_verdict(wait(), 0, 0) else {
                panic!("it waits for ever")
            };
            assert!(at <= 250_000, "{at}");
        }
    }

    #[test]
    fn without_waiting_a_wait_verdict_times_out_at_once() {
        let mut schedule = RetrySchedule::new(WaitLimit::No, TTL, 7);
        assert_eq!(
            (schedule.remaining_wait_ms(7), schedule.handle_verdict(wait(), 7, 0)),
            (1, RetryDecision::TimedOut)
        );
    }
}
