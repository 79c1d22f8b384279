//! What an agent does about the answer to its manifest, as a step function.

use tenure_api::{AgentLease, Verdict};

use crate::hold::Wait;

/// The way from a manifest to its leases.
pub(super) struct Course {
    /// When the agent gives up.
    until: Option<u64>,
    /// For how long it is granted: whoever looks later finds it over.
    ttl: u64,
    /// How often in a row nothing had changed.
    looks: u32,
    /// Who was last seen in the way.
    pub(super) blocked_by: Vec<String>,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// All of it is the agent's.
    Take(Vec<AgentLease>),
    /// The same manifest is sent again at this time.
    AskAt(u64),
    /// The agent would not wait for so long.
    GiveUp,
}

const FIRST_PAUSE: u64 = 50_000;
/// Nobody is told when its turn has come, so that it is asked for. Once a second costs the server little.
const LONGEST_PAUSE: u64 = 1_000_000;

impl Course {
    /// Begins at `now`; times are microseconds of the local clock.
    pub(super) fn new(wait: Wait, ttl: u64, now: u64) -> Self {
        let until = match wait {
            Wait::Forever => None,
            wait => Some(now.saturating_add(wait.milliseconds().saturating_mul(1_000))),
        };
        Self { until, ttl, looks: 0, blocked_by: Vec::new() }
    }

    /// How many milliseconds the agent would still wait, as the server is told. At least one: nobody can wait for less.
    pub(super) fn left(&self, now: u64) -> u64 {
        self.until.map_or(Wait::Forever.milliseconds(), |until| until.saturating_sub(now) / 1_000).max(1)
    }

    /// The server answered.
    pub(super) fn heard(&mut self, verdict: Verdict, now: u64, random: u64) -> Next {
        match verdict {
            Verdict::Granted { leases } => Next::Take(leases),
            Verdict::Wait { blocked_by, .. } => {
                self.blocked_by = blocked_by;
                self.ask_again(now, random)
            }
            Verdict::Die { retry_after_ms, blocked_by, .. } => {
                self.blocked_by = blocked_by;
                self.looks = 0;
                let at = now.saturating_add(retry_after_ms.saturating_mul(1_000));
                if self.until.is_some_and(|until| at >= until) { Next::GiveUp } else { Next::AskAt(at) }
            }
        }
    }

    /// Nothing was heard, or nothing that lasts.
    pub(super) fn ask_again(&mut self, now: u64, random: u64) -> Next {
        if self.until.is_some_and(|until| now >= until) {
            return Next::GiveUp;
        }
        let longest = LONGEST_PAUSE.min(self.ttl / 4);
        let pause = FIRST_PAUSE.saturating_mul(1 << self.looks.min(16)).min(longest);
        self.looks = self.looks.saturating_add(1);
        let at = now.saturating_add(pause - random % (pause / 4 + 1));
        // One last look at the very end.
        Next::AskAt(self.until.map_or(at, |until| at.min(until)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const TTL: u64 = 60_000_000;

    fn wait() -> Verdict {
        let wait_until = String::new();
        Verdict::Wait { wait_timeout_ms: 1, wait_until, position: 1, blocked_by: vec!["bob".into()] }
    }

    fn die(retry_after_ms: u64) -> Verdict {
        let blocked_by = vec!["carol".into()];
        Verdict::Die { retry_after_ms, priority_timestamp: 1, blocked_by, ended: Vec::new() }
    }

    #[test]
    fn wait_verdict_is_retried_with_backoff_until_the_wait_limit() {
        let mut course = Course::new(Wait::For(Duration::from_secs(5)), TTL, 0);
        let (mut now, mut asked) = (0, 0);
        while let Next::AskAt(at) = course.heard(wait(), now, 0) {
            assert!(at > now && at - now <= LONGEST_PAUSE);
            (now, asked) = (at, asked + 1);
        }
        assert_eq!(now, 5_000_000, "it looks once more at the very end");
        assert!((8..=12).contains(&asked), "{asked}");
        assert_eq!(course.blocked_by, ["bob"]);
    }

    #[test]
    fn die_verdict_is_retried_after_its_delay_unless_past_the_wait_limit() {
        let mut course = Course::new(Wait::For(Duration::from_secs(5)), TTL, 0);
        assert_eq!(course.heard(die(400), 1_000_000, 0), Next::AskAt(1_400_000));
        assert_eq!(course.heard(die(4_000), 1_400_000, 0), Next::GiveUp);
        assert_eq!(course.blocked_by, ["carol"]);
        let mut patient = Course::new(Wait::Forever, TTL, 0);
        assert_eq!(patient.heard(die(30_000), 7, 0), Next::AskAt(30_000_007));
    }

    #[test]
    fn retry_interval_is_limited_to_a_quarter_of_the_ttl() {
        let mut course = Course::new(Wait::Forever, 1_000_000, 0);
        for _ in 0..20 {
            let Next::AskAt(at) = course.heard(wait(), 0, 0) else { panic!("it waits for ever") };
            assert!(at <= 250_000, "{at}");
        }
    }

    #[test]
    fn without_waiting_a_wait_verdict_times_out_at_once() {
        let mut course = Course::new(Wait::No, TTL, 7);
        assert_eq!((course.left(7), course.heard(wait(), 7, 0)), (1, Next::GiveUp));
    }
}
