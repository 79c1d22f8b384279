//! The command line, and how large everything is.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use serde::Serialize;

use crate::peer::System;

/// Measure Tenure and its peers with one load generator
///
/// Starts every server on the loopback interface with durable settings and an empty temporary data directory, and ends it
/// afterwards. Load is bounded in count and time. Progress is on stderr; tables are on stdout as Markdown. A figure is
/// comparable only with figures of the same run on the same machine, and only if nothing else ran there.
#[derive(Debug, Parser)]
#[command(name = "tenure-bench", disable_help_subcommand = true, args_override_self = true)]
pub struct Options {
    /// What to measure [default: everything]
    #[arg(value_enum)]
    pub sections: Vec<Section>,
    /// Use small sizes, to try it out in a minute or two
    #[arg(long)]
    pub quick: bool,
    /// Systems of the cycle and of the handovers [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub systems: Vec<System>,
    /// Runs of everything; tables have the median and the spread [default: 3, quick: 1]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=99))]
    runs: Option<u32>,
    /// Seconds in which one row of the cycle or of the handovers is measured [default: 5, quick: 1]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: Option<u64>,
    /// Operations at most in one row of the cycle, over all connections
    #[arg(long, default_value_t = 5_000_000)]
    max_operations: u64,
    /// Operations in flight [default: 1,16,64,256, quick: 1,16]
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=256))]
    in_flight: Vec<u16>,
    /// Commands per write, each a part of those in flight [default: 1,4,16, quick: 1,16]
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=256))]
    per_write: Vec<u16>,
    /// Waiters for one resource in the handovers [default: 64, quick: 16]
    #[arg(long, value_parser = clap::value_parser!(u16).range(2..=64))]
    waiters: Option<u16>,
    /// Milliseconds between two attempts of a client that has to poll
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    poll_ms: u64,
    /// Leases that expire, over 10 seconds and then at one instant [default: 100000, quick: 2000]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    expiring: Option<u32>,
    /// Leases that are kept alive, each renewed every 10 seconds [default: 100000, quick: 2000]
    #[arg(long, value_parser = clap::value_parser!(u32).range(16..=1_000_000))]
    renewed: Option<u32>,
    /// Seconds of keeping them alive [default: 30, quick: 5]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=600))]
    renewal_seconds: Option<u64>,
    /// Live leases when memory is measured and the server is killed [default: 1000000, quick: 20000]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    live: Option<u32>,
    /// Threads of the load generator, which shares the cores with the servers
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub threads: u16,
    /// Print JSON instead of Markdown
    #[arg(long)]
    pub json: bool,
    /// Write peers.md and its plots into a folder [default folder: docs/benchmarks of this repository]
    #[arg(long, value_name = "FOLDER", num_args = 0..=1,
          default_missing_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/benchmarks"))]
    pub write: Option<PathBuf>,
    /// The server of Tenure, built with --release
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/release/tenure"))]
    pub tenure: PathBuf,
    /// The server of etcd
    #[arg(long, default_value = "etcd")]
    pub etcd: PathBuf,
    /// The server of NATS
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/tools/nats/bin/nats-server"))]
    pub nats: PathBuf,
    /// Parent of the temporary data directories, on the disk to measure with [default: the system's temporary folder]
    #[arg(long)]
    data: Option<PathBuf>,
}

/// One subject of measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Section {
    /// Acquire, renew, release: every system, at several depths
    Cycle,
    /// One resource that many wait for: Tenure, etcd and Redis
    Handover,
    /// How late the end of a lease is announced: Tenure
    Expiry,
    /// CPU time for keeping many leases alive: Tenure
    Keepalive,
    /// Memory per live lease, and the start after SIGKILL: Tenure
    Restart,
}

/// How large and how long everything is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sizes {
    pub is_quick: bool,
    pub runs: u32,
    /// For one row.
    pub measured_time: Duration,
    /// Before the measured time of a row.
    pub warm_up: Duration,
    pub max_operations: u64,
    pub in_flight: Vec<usize>,
    pub per_write: Vec<usize>,
    pub waiters: usize,
    pub poll_interval: Duration,
    pub expiring: usize,
    /// Over which the ends are spread.
    pub expiry_window: Duration,
    pub renewed: usize,
    pub renewal_time: Duration,
    pub live: usize,
}

impl Options {
    pub fn measures(&self, section: Section) -> bool {
        self.sections.is_empty() || self.sections.contains(&section)
    }

    pub fn systems(&self) -> Vec<System> {
        let all = System::ALL.into_iter();
        all.filter(|system| self.systems.is_empty() || self.systems.contains(system)).collect()
    }

    pub fn data(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(std::env::temp_dir)
    }

    pub fn sizes(&self) -> Sizes {
        let depths = |chosen: &[u16], full: &[usize], quick: &[usize]| match chosen {
            [] if self.quick => quick.to_vec(),
            [] => full.to_vec(),
            chosen => chosen.iter().map(|depth| usize::from(*depth)).collect(),
        };
        let seconds = |chosen: Option<u64>, full, quick| {
            Duration::from_secs(chosen.unwrap_or(if self.quick { quick } else { full }))
        };
        let count = |chosen: Option<u32>, full, quick| {
            let chosen = chosen.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
            chosen.unwrap_or(if self.quick { quick } else { full })
        };
        Sizes {
            is_quick: self.quick,
            runs: self.runs.unwrap_or(if self.quick { 1 } else { 3 }),
            measured_time: seconds(self.seconds, 5, 1),
            warm_up: Duration::from_millis(if self.quick { 300 } else { 1_000 }),
            max_operations: self.max_operations,
            in_flight: depths(&self.in_flight, &[1, 16, 64, 256], &[1, 16]),
            per_write: depths(&self.per_write, &[1, 4, 16], &[1, 16]),
            waiters: count(self.waiters.map(u32::from), 64, 16),
            poll_interval: Duration::from_millis(self.poll_ms),
            expiring: count(self.expiring, 100_000, 2_000),
            expiry_window: Duration::from_secs(if self.quick { 2 } else { 10 }),
            renewed: count(self.renewed, 100_000, 2_000),
            renewal_time: seconds(self.renewal_seconds, 30, 5),
            live: count(self.live, 1_000_000, 20_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn sizes(arguments: &[&str]) -> Sizes {
        let line = std::iter::once(&"tenure-bench").chain(arguments);
        Options::try_parse_from(line).expect("a command line").sizes()
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Options::command().debug_assert();
    }

    #[test]
    fn quick_makes_everything_smaller_except_what_is_chosen() {
        let (full, quick) = (sizes(&[]), sizes(&["--quick", "--live", "5000"]));
        assert_eq!((full.runs, full.live, full.renewed), (3, 1_000_000, 100_000));
        assert_eq!((quick.runs, quick.live, quick.renewed), (1, 5_000, 2_000));
        assert_eq!(full.in_flight, [1, 16, 64, 256]);
        assert_eq!(sizes(&["--in-flight", "2,8"]).in_flight, [2, 8]);
        assert!(quick.measured_time < full.measured_time);
    }

    #[test]
    fn every_section_and_system_is_measured_unless_some_are_chosen() {
        let all = Options::try_parse_from(["tenure-bench"]).unwrap();
        assert!(Section::value_variants().iter().all(|section| all.measures(*section)));
        assert_eq!(all.systems(), System::ALL);
        let some = Options::try_parse_from(["tenure-bench", "expiry", "--systems", "redis,etcd"]).unwrap();
        assert!(some.measures(Section::Expiry) && !some.measures(Section::Cycle));
        assert_eq!(some.systems(), [System::Etcd, System::Redis]);
    }
}
