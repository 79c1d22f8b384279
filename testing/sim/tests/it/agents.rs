//! A hundred thousand rounds of thirty-two agents that want the same twenty things.

use tenure_sim::{EventCoverage, run_agents};

const STEPS: u64 = 10_000;

fn assert_laws_hold(seeds: std::ops::RangeInclusive<u64>, steps: u64) -> EventCoverage {
    let mut coverage = EventCoverage::new();
    for seed in seeds {
        let report = run_agents(seed, steps, false);
        assert_eq!(report.violation, None, "seed {seed} after {} steps", report.steps);
        for (kind, count) in report.coverage {
            *coverage.entry(kind).or_default() += count;
        }
    }
    coverage
}

// O-17, S3-5, S3-9, S3-14, S3-25, S3-33, S3-34: no two hold what does not go together, nobody waits for an older one, every
// wait ends, ages stand, and everybody gets through.
#[test]
fn agent_laws_hold_for_100_000_steps() {
    let coverage = assert_laws_hold(1..=10, STEPS);
    let expected = [
        "agent crashed",
        "agent cut off",
        "agent died waiting",
        "agent got all that it wanted",
        "agent restarted",
        "agent's wait timed out",
        "agent.began",
        "agent.died",
        "agent.reported",
        "agent.strayed",
        "agent.touched",
        "agent.used_up",
        "agent.waits",
        "disk filled up",
        "lease issued to a waiter",
        "lease revoked",
        "server crashed",
        "server rebooted",
    ];
    let rare: Vec<_> =
        expected.into_iter().filter(|kind| coverage.get(kind).copied().unwrap_or(0) < 10).collect();
    assert!(rare.is_empty(), "happened less than 10 times: {rare:?}\n{coverage:#?}");
}

/// A crew for long: whoever is the oldest must not fall behind in the course of it. One crew may have bad luck.
#[test]
fn agents_make_progress_for_30_000_steps() {
    let coverage = assert_laws_hold(77..=81, 30_000);
    assert!(coverage["agent got all that it wanted"] > 5 * 150, "{coverage:#?}");
}

#[test]
fn long_agent_laws_hold_for_1_000_seeds() {
    assert_laws_hold(1_001..=2_000, STEPS);
}
