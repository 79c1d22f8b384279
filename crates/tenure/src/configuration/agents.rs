//! How long agents may have something, and wait for it: `[agents]`.

use tenure_server::AgentSettings;

use super::{ConfigurationError, Sources};

/// What was configured.
pub fn agents(sources: &Sources) -> Result<AgentSettings, ConfigurationError> {
    let usual = AgentSettings::default();
    let lease = |key| {
        let expected = "a number of milliseconds, from 1000 to 86400000";
        let is_possible =
            |time: &u64| (AgentSettings::SHORTEST_TTL_MS..=AgentSettings::LONGEST_MS).contains(time);
        sources.parse_if(key, expected, is_possible)
    };
    let wait = |key| {
        let expected = "a number of milliseconds, from 1 to 86400000";
        sources.parse_if(key, expected, |time: &u64| (1..=AgentSettings::LONGEST_MS).contains(time))
    };
    Ok(AgentSettings {
        ttl_ms: lease("agents.ttl_ms")?.unwrap_or(usual.ttl_ms),
        longest_ttl_ms: lease("agents.longest_ttl_ms")?.unwrap_or(usual.longest_ttl_ms),
        wait_ms: wait("agents.wait_ms")?.unwrap_or(usual.wait_ms),
        longest_wait_ms: wait("agents.longest_wait_ms")?.unwrap_or(usual.longest_wait_ms),
        backoff_ms: wait("agents.backoff_ms")?.unwrap_or(usual.backoff_ms),
        longest_backoff_ms: wait("agents.longest_backoff_ms")?.unwrap_or(usual.longest_backoff_ms),
        lease_time_ms: lease("agents.lease_time_ms")?,
        idle_ms: lease("agents.idle_ms")?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::configuration;
    use super::*;

    fn found(variables: &[(&str, &str)], file: &str) -> Result<AgentSettings, String> {
        configuration(&[], variables, file).map(|found| found.agents).map_err(|error| error.to_string())
    }

    #[test]
    fn nobody_says_anything_and_a_lease_lasts_a_minute_and_five_at_the_most() {
        assert_eq!(found(&[], ""), Ok(AgentSettings::default()));
        let AgentSettings { ttl_ms, longest_ttl_ms, lease_time_ms, idle_ms, .. } = AgentSettings::default();
        assert_eq!((ttl_ms, longest_ttl_ms, lease_time_ms, idle_ms), (60_000, 300_000, None, None));
    }

    #[test]
    fn what_is_said_counts() {
        let file = "[agents]\nttl_ms = 2000\nlongest_ttl_ms = 4000\nwait_ms = 10\nlongest_wait_ms = 20\nbackoff_ms = 1\n\
                    longest_backoff_ms = 2\nlease_time_ms = 3600000\nidle_ms = 600000\n";
        let expected = AgentSettings {
            ttl_ms: 2_000,
            longest_ttl_ms: 4_000,
            wait_ms: 10,
            longest_wait_ms: 20,
            backoff_ms: 1,
            longest_backoff_ms: 2,
            lease_time_ms: Some(3_600_000),
            idle_ms: Some(600_000),
        };
        assert_eq!(found(&[], file), Ok(expected.clone()));
        let sooner = AgentSettings { idle_ms: Some(1_000), ..expected };
        assert_eq!(found(&[("TENURE_AGENTS_IDLE_MS", "1000")], file), Ok(sooner));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for file in [
            "ttl_ms = 999",
            "longest_ttl_ms = 86400001",
            "wait_ms = 0",
            "idle_ms = 0",
            "lease_time_ms = \"x\"",
        ] {
            assert!(found(&[], &format!("[agents]\n{file}\n")).is_err(), "{file}");
        }
    }
}
