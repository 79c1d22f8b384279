//! The figures for people, for programs and for the documentation.

use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::expiry::ExpiryMeasurements;
use crate::latency::LatencyMeasurements;
use crate::restart::RestartMeasurements;
use crate::throughput::ThroughputMeasurements;

const MIN_PER_SECOND: f64 = 200_000.0;
const MAX_BEYOND_SYNC: Duration = Duration::from_micros(50);
const MAX_ANNOUNCE_TIME: Duration = Duration::from_millis(500);

/// Everything that was measured.
pub struct BenchmarkReport {
    pub throughput: ThroughputMeasurements,
    pub latency: LatencyMeasurements,
    pub restart: RestartMeasurements,
    pub expiries: ExpiryMeasurements,
}

impl BenchmarkReport {
    /// The missed targets, one line each.
    pub fn failed_checks(&self) -> Vec<String> {
        let BenchmarkReport { throughput, latency, restart, expiries } = self;
        let per_million = |count: u64| Duration::from_secs_f64(count as f64 / 1e6);
        let with_events = per_million(restart.leases) + per_million(restart.events_behind);
        let checks = [
            (
                throughput.per_second() < MIN_PER_SECOND,
                format!("{:.0} acquires per second", throughput.per_second()),
            ),
            (
                latency.beyond > MAX_BEYOND_SYNC,
                format!("an acquire takes {:?} beyond its sync", latency.beyond),
            ),
            (
                restart.from_checkpoint > per_million(restart.leases),
                format!("a start from a checkpoint takes {:?}", restart.from_checkpoint),
            ),
            (
                restart.with_events > with_events,
                format!("a start with events takes {:?}", restart.with_events),
            ),
            (
                expiries.announced_within > MAX_ANNOUNCE_TIME,
                format!("ends are announced within {:?}", expiries.announced_within),
            ),
        ];
        checks.into_iter().filter(|(missed, _)| *missed).map(|(_, line)| line).collect()
    }

    /// A Markdown table, which people can read as it is.
    pub fn table(&self) -> String {
        let BenchmarkReport { throughput, latency, restart, expiries } = self;
        let milliseconds = |time: Duration| format!("{:.0} ms", time.as_secs_f64() * 1e3);
        let microseconds = |time: Duration| format!("{:.0} µs", time.as_secs_f64() * 1e6);
        let lines = [
            (
                "durable acquires per second, 256 under way".to_owned(),
                format!("{:.0}", throughput.per_second()),
                "at least 200,000",
            ),
            (
                "CPU of the whole process per acquire".to_owned(),
                format!("{:.1} µs", throughput.cpu_microseconds()),
                "",
            ),
            (
                "acquires per durable write, on average".to_owned(),
                format!("{:.0}", throughput.grants as f64 / throughput.batches.max(1) as f64),
                "",
            ),
            ("one acquire under way, asked to told, median".to_owned(), microseconds(latency.acquire), ""),
            ("a write and sync of as many bytes, median".to_owned(), microseconds(latency.sync), ""),
            ("the one beyond the other, median".to_owned(), microseconds(latency.beyond), "at most 50 µs"),
            (
                format!("start with {} live leases, from a checkpoint", restart.leases),
                milliseconds(restart.from_checkpoint),
                "1 s per million",
            ),
            (
                format!("the same with {} events behind the checkpoint", restart.events_behind),
                milliseconds(restart.with_events),
                "and 1 s per million events",
            ),
            (
                "size of that checkpoint".to_owned(),
                format!("{} MB", restart.checkpoint_bytes / 1_000_000),
                "",
            ),
            (
                format!("{} leases end at one tick: all announced within", expiries.leases),
                milliseconds(expiries.announced_within),
                "500 ms",
            ),
        ];
        let mut text = String::from("| what | measured | target |\n|---|--:|---|\n");
        for (what, measured, target) in lines {
            text.push_str(&format!("| {what} | {measured} | {target} |\n"));
        }
        let missed = self.failed_checks();
        let verdict = if missed.is_empty() {
            "All targets are met.".into()
        } else {
            format!("Missed: {}.", missed.join("; "))
        };
        format!("{text}\n{verdict}\n")
    }

    /// One line.
    pub fn json(&self) -> String {
        let BenchmarkReport { throughput, latency, restart, expiries } = self;
        let micros = |time: Duration| time.as_micros();
        format!(
            r#"{{"acquires_per_second":{:.0},"cpu_us_per_acquire":{:.2},"acquire_us":{},"sync_us":{},"beyond_us":{},"restart_us":{},"restart_with_events_us":{},"announced_us":{},"missed":{}}}"#,
            throughput.per_second(),
            throughput.cpu_microseconds(),
            micros(latency.acquire),
            micros(latency.sync),
            micros(latency.beyond),
            micros(restart.from_checkpoint),
            micros(restart.with_events),
            micros(expiries.announced_within),
            self.failed_checks().len(),
        )
    }

    /// Replaces the figures in docs/benchmarks.md.
    pub fn write(&self) -> Result<(), String> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/benchmarks.md");
        let (begin, end) = ("<!-- ledger:begin -->\n", "<!-- ledger:end -->");
        let page = fs::read_to_string(path).map_err(|error| format!("docs/benchmarks.md: {error}"))?;
        let parts = page.split_once(begin).and_then(|(before, rest)| Some((before, rest.split_once(end)?.1)));
        let (before, after) = parts.ok_or("docs/benchmarks.md: no place for these figures")?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let date = Command::new("date").args(["-u", "+%F"]).output().map_err(|error| error.to_string())?;
        let date = String::from_utf8_lossy(&date.stdout).trim().to_owned();
        let measured = format!("Measured on {date}, {cores} cores, on the disk of that machine.");
        let page = format!("{before}{begin}{measured}\n\n{}{end}{after}", self.table());
        fs::write(path, page).map_err(|error| format!("docs/benchmarks.md: {error}"))
    }
}
