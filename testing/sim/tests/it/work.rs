//! A hundred thousand rounds of clients that share out work.

use tenure_sim::{EventCoverage, run_work};

const STEPS: u64 = 10_000;

fn assert_laws_hold(seeds: std::ops::RangeInclusive<u64>, steps: u64) -> EventCoverage {
    let mut coverage = EventCoverage::new();
    for seed in seeds {
        let report = run_work(seed, steps, false);
        assert_eq!(report.violation, None, "seed {seed} after {} steps", report.steps);
        for (kind, count) in report.coverage {
            *coverage.entry(kind).or_default() += count;
        }
    }
    coverage
}

// S2-107 to S2-109, S2-111, O-16: a derived lease is a part of its parent and ends with it, nothing is spent that does not
// remain, and each acknowledged spend is in the ledger once.
#[test]
fn work_laws_hold_for_100_000_steps() {
    let coverage = assert_laws_hold(1..=10, STEPS);
    let expected = [
        "administrator revoked",
        "client crashed",
        "client cut off",
        "client reclaimed",
        "client restarted",
        "derived lease passed on",
        "disk filled up",
        "grant acknowledged again",
        "lease expired",
        "lease issued",
        "lease reclaimed",
        "lease released",
        "lease renewed",
        "lease revoked",
        "opened from a checkpoint",
        "refused: held",
        "refused: not the holder",
        "refused: over",
        "rejected: budget exceeded",
        "rejected: out of scope",
        "rejected: outlives its parent",
        "server clock went back",
        "server crashed",
        "server paused",
        "server rebooted",
        "spend acknowledged again",
        "work.spent",
    ];
    let rare: Vec<_> =
        expected.into_iter().filter(|kind| coverage.get(kind).copied().unwrap_or(0) < 10).collect();
    assert!(rare.is_empty(), "happened less than 10 times: {rare:?}\n{coverage:#?}");
}

#[test]
fn long_work_laws_hold_for_1_000_seeds() {
    assert_laws_hold(1_001..=2_000, STEPS);
}
