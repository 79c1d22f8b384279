//! A hundred thousand rounds of coding agents in one working tree.

use tenure_sim::{EventCoverage, run_files};

const STEPS: u64 = 10_000;

fn assert_laws_hold(seeds: std::ops::RangeInclusive<u64>, steps: u64) -> EventCoverage {
    let mut coverage = EventCoverage::new();
    for seed in seeds {
        let report = run_files(seed, steps, false);
        assert_eq!(report.violation, None, "seed {seed} after {} steps", report.steps);
        for (kind, count) in report.coverage {
            *coverage.entry(kind).or_default() += count;
        }
    }
    coverage
}

// S4-18, S4-20 to S4-25, S4-30 to S4-33, S4-43, S4-55 to S4-59, O-20: one owner that lives, one ticket, one retry after exactly
// 180 s, nobody denied for the dead, nothing lost before its time.
#[test]
fn file_laws_hold_for_100_000_steps() {
    let coverage = assert_laws_hold(1..=10, STEPS);
    let expected = [
        "agent's process died",
        "committed",
        "dead owner found by who wanted its file",
        "file had",
        "file had that another left",
        "file.began",
        "file.blocked",
        "file.closed",
        "file.contended",
        "file.ended",
        "file.seen",
        "file.turn_ended",
        "lease continued",
        "lease handed over",
        "lease issued to a waiter",
        "lease reclaimed",
        "lease released",
        "lease revoked",
        "person gave a file",
        "person let go on",
        "person took a file",
        "server crashed",
        "server rebooted",
        "session ended",
    ];
    let rare: Vec<_> =
        expected.into_iter().filter(|kind| coverage.get(kind).copied().unwrap_or(0) < 10).collect();
    assert!(rare.is_empty(), "happened less than 10 times: {rare:?}\n{coverage:#?}");
}

#[test]
fn long_file_laws_hold_for_1_000_seeds() {
    assert_laws_hold(1_001..=2_000, STEPS);
}
