//! The records and answers of seeds 1 to 50 are those of the golden file, whatever the code is called by now.
//!
//! A failure means that the behaviour changed. If that is intended: `cargo xtask sim --seeds 500 --golden
//! testing/sim/tests/golden/records.txt --write-golden`, in a commit that says why. The work scenario has a file of its own:
//! `cargo xtask sim --scenario work --seeds 100 --golden testing/sim/tests/golden/work_records.txt --write-golden`.

use tenure_sim::{GoldenDigests, SeedReport, run_seed, run_work};

const STEPS: u64 = 10_000;

const RECORDS: &str = include_str!("../golden/records.txt");
const WORK_RECORDS: &str = include_str!("../golden/work_records.txt");

fn compare(golden: &str, run: fn(u64, u64, bool) -> SeedReport, seeds: std::ops::RangeInclusive<u64>) {
    let golden = GoldenDigests::parse(golden).expect("a golden file");
    for seed in seeds {
        let report = run(seed, STEPS, false);
        assert_eq!(report.violation, None, "seed {seed}");
        assert_eq!(golden.first_difference(STEPS, &[report]), None);
    }
}

#[test]
fn records_and_answers_of_seeds_1_to_25_are_unchanged() {
    compare(RECORDS, run_seed, 1..=25);
}

#[test]
fn records_and_answers_of_seeds_26_to_50_are_unchanged() {
    compare(RECORDS, run_seed, 26..=50);
}

#[test]
fn records_and_answers_of_work_seeds_1_to_25_are_unchanged() {
    compare(WORK_RECORDS, run_work, 1..=25);
}

#[test]
fn a_golden_file_names_the_first_seed_that_differs() {
    let reports: Vec<_> = (1..=3).map(|seed| run_seed(seed, 100, false)).collect();
    let golden = GoldenDigests::from_reports(100, &reports);
    let text = golden.to_string();
    assert_eq!(GoldenDigests::parse(&text), Ok(golden.clone()));
    assert_eq!(golden.first_difference(100, &reports), None);

    let mut changed = reports.clone();
    changed[1].records_digest[0] ^= 1;
    changed[2].records_digest[0] ^= 1;
    let difference = golden.first_difference(100, &changed).expect("a difference");
    assert!(difference.starts_with("seed 2 has the records digest"), "{difference}");

    let other_steps = golden.first_difference(99, &reports).expect("a difference");
    assert_eq!(other_steps, "the golden digests are of 100 steps, not of 99");
    let unknown = GoldenDigests::from_reports(100, &reports[..2])
        .first_difference(100, &reports)
        .expect("a difference");
    assert_eq!(unknown, "seed 3 has no golden digest");
    assert!(GoldenDigests::parse("1 abc\n").is_err());
    assert!(GoldenDigests::parse("steps 100\nabc\n").is_err());
}
