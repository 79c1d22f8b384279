//! The figures for people, for programs and for the documentation.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use tenure_core::kernel;

use crate::cpu_time::Series;
use crate::measurements::{Measurements, Operation, SIZES};
use crate::memory::MemoryUse;

const MAX_NANOSECONDS: f64 = 3_000.0;
const MAX_GROWTH: f64 = 1.3;
const MAX_BYTES_PER_LEASE: f64 = 400.0;

const SMALL: usize = SIZES[0];
const LARGE: usize = SIZES[SIZES.len() - 1];

/// Everything that was measured.
pub struct BenchmarkReport {
    pub figures: Measurements,
    pub memory: MemoryUse,
    pub repetitions: usize,
}

impl BenchmarkReport {
    /// The targets that were missed, one line each.
    pub fn failed_checks(&self) -> Vec<String> {
        let (acquire, times) =
            (self.series(Operation::Acquire, LARGE).median(), self.growth(Operation::Acquire));
        let bytes = self.memory.after_grants.max(self.memory.after_churn);
        let checks = [
            (acquire > MAX_NANOSECONDS, format!("acquire takes {acquire:.0} ns, not {MAX_NANOSECONDS}")),
            (
                times > MAX_GROWTH,
                format!("acquire at {LARGE} leases costs {times:.2} times, not {MAX_GROWTH}"),
            ),
            (
                bytes > MAX_BYTES_PER_LEASE,
                format!("a live lease takes {bytes:.0} bytes, not {MAX_BYTES_PER_LEASE}"),
            ),
        ];
        checks.into_iter().filter(|(missed, _)| *missed).map(|(_, line)| line).collect()
    }

    /// A Markdown table, which people can read as it is.
    pub fn table(&self) -> String {
        let mut text = String::from(
            "| CPU time per operation, ns | 1,000 leases | 100,000 | 1,000,000 | 1,000,000 by 1,000 |\n\
             |---|--:|--:|--:|--:|\n",
        );
        for what in Operation::ALL {
            let cell = |size| {
                let series = self.series(what, size);
                let (low, high) = series.spread();
                format!("{:.0} ({low:.0} to {high:.0})", series.median())
            };
            let cells = SIZES.map(cell).join(" | ");
            let _ = writeln!(text, "| {} | {cells} | {:.2} |", what.title(), self.growth(what));
        }
        let by_peer = |size| {
            let both = self.series(Operation::Acquire, size).ratio_to(self.series(Operation::Peer, size));
            format!("{:.1}", both.median())
        };
        let _ =
            writeln!(text, "| acquire, times map and sorted set | {} | |", SIZES.map(by_peer).join(" | "));
        let MemoryUse { after_grants, after_churn } = self.memory;
        let _ = writeln!(
            text,
            "\n| memory at 1,000,000 leases | bytes per lease |\n|---|--:|\n\
             | after 1,000,000 grants | {after_grants:.0} |\n\
             | after another 1,000,000 releases and grants | {after_churn:.0} |\n\n\
             | size of a value | bytes |\n|---|--:|\n{}\n\
             Targets: acquire within {MAX_NANOSECONDS} ns at 1,000,000 leases and at most {MAX_GROWTH} times the \
             cost at 1,000; at most {MAX_BYTES_PER_LEASE} bytes per lease. {}",
            sizes().map(|(name, bytes)| format!("| {name} | {bytes} |\n")).join(""),
            match self.failed_checks()[..] {
                [] => "All are met.".to_owned(),
                ref missed => format!("Missed: {}.", missed.join("; ")),
            }
        );
        text
    }

    /// One line.
    pub fn json(&self) -> String {
        let mut fields = Vec::new();
        for ((what, size), series) in &self.figures {
            let (low, high) = series.spread();
            let (key, median) = (what.key(), series.median());
            fields.push(format!(
                r#"{{"what":"{key}","leases":{size},"ns":{median:.1},"p10":{low:.1},"p90":{high:.1}}}"#
            ));
        }
        let MemoryUse { after_grants, after_churn } = self.memory;
        format!(
            r#"{{"figures":[{}],"acquire_growth":{:.3},"bytes_per_lease":{after_grants:.1},"bytes_per_lease_churned":{after_churn:.1},"repetitions":{},"missed":{}}}"#,
            fields.join(","),
            self.growth(Operation::Acquire),
            self.repetitions,
            self.failed_checks().len(),
        )
    }

    /// Replaces the figures in docs/benchmarks.md.
    pub fn write(&self) -> Result<(), String> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/benchmarks.md");
        let (begin, end) = ("<!-- core:begin -->\n", "<!-- core:end -->");
        let page = fs::read_to_string(path).map_err(|error| format!("docs/benchmarks.md: {error}"))?;
        let parts = page.split_once(begin).and_then(|(before, rest)| Some((before, rest.split_once(end)?.1)));
        let (before, after) = parts.ok_or("docs/benchmarks.md: no place for these figures")?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let measured = format!(
            "Measured on {}, {cores} cores ({}), {} repetitions: median, and between which figures eight of \
             ten repetitions lie.",
            today()?,
            processor(),
            self.repetitions
        );
        let page = format!("{before}{begin}{measured}\n\n{}{end}{after}", self.table());
        fs::write(path, page).map_err(|error| format!("docs/benchmarks.md: {error}"))
    }

    fn series(&self, what: Operation, size: usize) -> &Series {
        &self.figures[&(what, size)]
    }

    /// How many times the cost at a thousand leases it is at a million.
    fn growth(&self, what: Operation) -> f64 {
        self.series(what, LARGE).ratio_to(self.series(what, SMALL)).median()
    }
}

/// What goes from hand to hand. What the table itself holds is checked where it is declared.
fn sizes() -> [(&'static str, usize); 4] {
    [
        ("`Command`", size_of::<kernel::Command>()),
        ("`Decision`", size_of::<kernel::Decision>()),
        ("`Event`", size_of::<kernel::Event>()),
        ("`EndedLease`, of which 65,536 are kept at most", size_of::<kernel::EndedLease>()),
    ]
}

fn today() -> Result<String, String> {
    let output =
        Command::new("date").args(["-u", "+%F"]).output().map_err(|error| format!("date: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or_else(|| "unknown processor".to_owned(), |(_, name)| name.to_owned())
}
