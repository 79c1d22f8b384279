//! The file of records digests: one line per seed, compared with what a later version does.

use std::collections::BTreeMap;
use std::fmt;

use crate::run::SeedReport;

/// Records digests of seeds that each took the same number of steps.
///
/// As text: `steps 10000` in the first line, then `SEED DIGEST` in each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoldenDigests {
    steps: u64,
    digests: BTreeMap<u64, String>,
}

impl GoldenDigests {
    pub fn from_reports(steps: u64, reports: &[SeedReport]) -> Self {
        Self { steps, digests: reports.iter().map(|report| (report.seed, hex(report))).collect() }
    }

    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().zip(1..);
        let steps = lines.next().and_then(|(line, _)| line.strip_prefix("steps ")?.parse().ok());
        let steps = steps.ok_or("line 1: expected 'steps NUMBER'")?;
        let entry = |(line, number): (&str, usize)| {
            let entry =
                line.split_once(' ').and_then(|(seed, digest)| Some((seed.parse().ok()?, digest.to_owned())));
            entry.ok_or_else(|| format!("line {number}: expected 'SEED DIGEST'"))
        };
        Ok(Self { steps, digests: lines.map(entry).collect::<Result<_, _>>()? })
    }

    /// What is different about the first of these reports, in the order given, that differs.
    pub fn first_difference(&self, steps: u64, reports: &[SeedReport]) -> Option<String> {
        if steps != self.steps {
            return Some(format!("the golden digests are of {} steps, not of {steps}", self.steps));
        }
        reports.iter().find_map(|report| {
            let (seed, digest) = (report.seed, hex(report));
            match self.digests.get(&seed) {
                None => Some(format!("seed {seed} has no golden digest")),
                Some(golden) if *golden != digest => {
                    Some(format!("seed {seed} has the records digest {digest}, expected {golden}"))
                }
                Some(_) => None,
            }
        })
    }
}

impl fmt::Display for GoldenDigests {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "steps {}", self.steps)?;
        self.digests.iter().try_for_each(|(seed, digest)| writeln!(formatter, "{seed} {digest}"))
    }
}

/// The first half of the digest, which is more than enough to tell seeds apart.
fn hex(report: &SeedReport) -> String {
    blake3::Hash::from_bytes(report.records_digest).to_hex()[..32].to_owned()
}
