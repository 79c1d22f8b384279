//! Five million steps over five hundred seeds, in parts that run side by side.

use tenure_sim::{EventCoverage, run_seed};

const STEPS: u64 = 10_000;

fn assert_invariants_hold(seeds: std::ops::RangeInclusive<u64>) {
    for seed in seeds {
        let report = run_seed(seed, STEPS, false);
        if let Some(violation) = report.violation {
            panic!("seed {seed}: {}\nlook at it with: cargo xtask sim --replay {seed}", violation.0);
        }
        assert_eq!(report.steps, STEPS, "seed {seed} ended before its time");
    }
}

macro_rules! invariants_hold {
    ($($name:ident: $seeds:expr;)*) => {
        $(
            // S2-1, S2-3, S2-34, S2-38, S2-52: at most one, replay, numbers never again, ticks alone decide.
            #[test]
            fn $name() {
                assert_invariants_hold($seeds);
            }
        )*
    };
}

invariants_hold! {
    invariants_hold_for_seeds_1_to_50: 1..=50;
    invariants_hold_for_seeds_51_to_100: 51..=100;
    invariants_hold_for_seeds_101_to_150: 101..=150;
    invariants_hold_for_seeds_151_to_200: 151..=200;
    invariants_hold_for_seeds_201_to_250: 201..=250;
    invariants_hold_for_seeds_251_to_300: 251..=300;
    invariants_hold_for_seeds_301_to_350: 301..=350;
    invariants_hold_for_seeds_351_to_400: 351..=400;
    invariants_hold_for_seeds_401_to_450: 401..=450;
    invariants_hold_for_seeds_451_to_500: 451..=500;
}

#[test]
fn long_invariants_hold_for_10_000_seeds() {
    assert_invariants_hold(501..=10_500);
}

/// Laws say little about a world in which nothing happens.
#[test]
fn seeds_1_to_50_cover_every_kind_of_event() {
    let mut coverage = EventCoverage::new();
    for (kind, count) in (1..=50).flat_map(|seed| run_seed(seed, STEPS, false).coverage) {
        *coverage.entry(kind).or_default() += count;
    }
    let expected = [
        "any one of several granted",
        "client clock jumped",
        "client crashed",
        "client cut off",
        "client holds",
        "client lost its lease",
        "client paused",
        "client refused",
        "device failed while starting",
        "disk filled up",
        "in doubt and not there",
        "in doubt and there",
        "intent.accepted",
        "intent.running",
        "intent.starting",
        "intent.stopping",
        "lease continued",
        "lease expired",
        "lease handed over",
        "lease issued to a waiter",
        "lease issued",
        "lease reclaimed",
        "lease released",
        "lease renewed",
        "lease revoked",
        "no room to start",
        "opened from a checkpoint",
        "opened from the beginning",
        "refused: deadlock",
        "refused: guard lost",
        "refused: held",
        "refused: holder taken",
        "refused: key reused",
        "refused: not found",
        "refused: not the holder",
        "refused: over",
        "refused: queue full",
        "refused: quota",
        "refused: wrong direction",
        "server clock went back",
        "server crashed",
        "server paused",
        "server rebooted",
        "session ended: busy",
        "session ended: done",
        "session ended: lease lost",
        "session ended: no tuner",
        "session ended: no worker",
        "session ended: stopped",
        "session ended: worker restarted",
        "stale write refused",
        "step down",
        "store written",
        "time marked",
        "told busy",
        "told outcome unknown",
        "told too late",
        "wait for any one of several began",
        "wait timed out",
        "wait withdrawn",
        "waiter served",
        "went off while starting",
        "worker crashed",
        "worker lost its guard",
        "worker paused",
        "worker replaced",
    ];
    let rare: Vec<_> =
        expected.into_iter().filter(|kind| coverage.get(kind).copied().unwrap_or(0) < 20).collect();
    assert!(rare.is_empty(), "happened less than 20 times: {rare:?}\n{coverage:#?}");
}
