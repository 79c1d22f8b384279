//! `cargo xtask sim`: runs seeds, keeps the log of those that break a law, replays one step by step.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::{Parser, ValueEnum};
use tenure_sim::{EventCoverage, GoldenDigests, SeedReport, run_agents, run_files, run_seed, run_work};

/// Simulates fleets, storms, crews, working trees and the work API from seeds, and checks that no law is broken.
///
/// The last line says how many steps were taken and gives two digests: the same seeds always give the same.
/// The first is of all logs and changes with every name in them; the second is of the ledger's records and of
/// the answers, and changes only when the behaviour does. A seed that breaks a law leaves its log behind, and is replayed with --replay.
#[derive(Debug, Parser)]
#[command(name = "sim")]
struct Arguments {
    /// How many seeds to run.
    #[arg(long, default_value_t = 20)]
    seeds: u64,
    /// The first seed. Every fifth is a crew of agents, every fourteenth of the others a working tree with coding agents; of the
    /// rest odd ones are fleets of clients, even ones storms of commands.
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Runs each seed in this scenario, whatever its number.
    #[arg(long, value_enum)]
    scenario: Option<ScenarioName>,
    /// How many steps each seed takes.
    #[arg(long, default_value_t = 10_000)]
    steps: u64,
    /// Where the logs of seeds that break a law are kept.
    #[arg(long, default_value = "target/sim")]
    logs: PathBuf,
    /// Also prints how often each kind of thing happened.
    #[arg(long = "census")]
    coverage: bool,
    /// Compares the records digest of each seed with this file, and names the first seed that differs.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    golden: Option<PathBuf>,
    /// With --golden: writes the file instead.
    #[arg(long, requires = "golden")]
    write_golden: bool,
    /// Replays this one seed and prints what happens.
    #[arg(long, conflicts_with_all = ["seeds", "from"])]
    replay: Option<u64>,
    /// With --replay: waits for Enter before each line.
    #[arg(long, requires = "replay")]
    step: bool,
}

/// The scenarios that can be run with any seed.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ScenarioName {
    /// Agents that lease their manifests.
    Agents,
    /// Coding agents in one working tree.
    Files,
    /// Clients of the work API. No seed runs it by its number.
    Work,
}

impl Arguments {
    fn run(&self, seed: u64, keep_lines: bool) -> SeedReport {
        let run = match self.scenario {
            None => run_seed,
            Some(ScenarioName::Agents) => run_agents,
            Some(ScenarioName::Files) => run_files,
            Some(ScenarioName::Work) => run_work,
        };
        run(seed, self.steps, keep_lines)
    }

    /// The option that selects the same scenario.
    fn scenario_option(&self) -> String {
        let name = self.scenario.and_then(|scenario| scenario.to_possible_value());
        name.map_or_else(String::new, |name| format!(" --scenario {}", name.get_name()))
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match arguments.replay {
        Some(seed) => replay(seed, &arguments),
        None => run_all(&arguments),
    };
    match outcome {
        Ok(code) => code,
        // Whoever reads the output has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sim: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_all(arguments: &Arguments) -> std::io::Result<ExitCode> {
    // A panic is reported with its seed; the usual text would come between.
    std::panic::set_hook(Box::new(|_| {}));
    let reports = run_in_parallel(arguments);
    let mut out = std::io::stdout().lock();
    let broken: Vec<&SeedReport> = reports.iter().filter(|report| report.violation.is_some()).collect();
    for report in &broken {
        let path = write_log(report.seed, arguments)?;
        let why = report.violation.as_ref().map_or("", |violation| &violation.0);
        writeln!(out, "seed {} breaks a law after {} steps: {why}", report.seed, report.steps)?;
        writeln!(out, "  log: {}", path.display())?;
        let (scenario, steps) = (arguments.scenario_option(), arguments.steps);
        writeln!(out, "  again: cargo xtask sim{scenario} --replay {} --steps {steps} --step", report.seed)?;
    }
    if arguments.coverage {
        for (kind, count) in total_coverage(&reports) {
            writeln!(out, "{:>12}  {kind}", grouped(count))?;
        }
    }
    let steps: u64 = reports.iter().map(|report| report.steps).sum();
    let digest = blake3_of_all(&reports, |report| &report.digest);
    let records = blake3_of_all(&reports, |report| &report.records_digest);
    let (seeds, steps, violations) = (grouped(arguments.seeds), grouped(steps), grouped(broken.len() as u64));
    writeln!(
        out,
        "{seeds} seeds, {steps} steps, {violations} violations, digest {digest}, records digest {records}"
    )?;
    let is_same =
        arguments.golden.as_deref().map_or(Ok(true), |path| check_golden(path, &reports, arguments))?;
    Ok(if broken.is_empty() && is_same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Compares the reports with a golden file, or writes it. Says whether they are the same.
fn check_golden(path: &Path, reports: &[SeedReport], arguments: &Arguments) -> std::io::Result<bool> {
    let named = |error: &dyn std::fmt::Display| std::io::Error::other(format!("{}: {error}", path.display()));
    if arguments.write_golden {
        let text = GoldenDigests::from_reports(arguments.steps, reports).to_string();
        return std::fs::write(path, text).map(|()| true).map_err(|error| named(&error));
    }
    let text = std::fs::read_to_string(path).map_err(|error| named(&error))?;
    let golden = GoldenDigests::parse(&text).map_err(|error| named(&error))?;
    let difference = golden.first_difference(arguments.steps, reports);
    if let Some(difference) = &difference {
        eprintln!("sim: {}: {difference}", path.display());
        eprintln!("hint: if the behaviour is meant to change, add --write-golden");
    }
    Ok(difference.is_none())
}

fn run_in_parallel(arguments: &Arguments) -> Vec<SeedReport> {
    let next = AtomicU64::new(0);
    let reports = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let shows_progress = std::io::stderr().is_terminal();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= arguments.seeds {
                        break;
                    }
                    let report = arguments.run(arguments.from.wrapping_add(number), false);
                    let mut reports = reports.lock().expect("no worker panics while it holds this");
                    reports.push(report);
                    if shows_progress {
                        eprint!("\r{} of {} seeds", reports.len(), arguments.seeds);
                    }
                }
            });
        }
    });
    if shows_progress {
        eprintln!();
    }
    let mut reports = reports.into_inner().expect("every worker ended");
    reports.sort_by_key(|report| report.seed);
    reports
}

fn write_log(seed: u64, arguments: &Arguments) -> std::io::Result<PathBuf> {
    let report = arguments.run(seed, true);
    std::fs::create_dir_all(&arguments.logs)?;
    let path = arguments.logs.join(format!("seed-{seed}.log"));
    write_lines(&path, &report)?;
    Ok(path)
}

fn write_lines(path: &Path, report: &SeedReport) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    for line in &report.lines {
        writeln!(file, "{line}")?;
    }
    let verdict = report.violation.as_ref().map_or("no law broken", |violation| &violation.0);
    writeln!(file, "{verdict}")?;
    file.flush()
}

fn replay(seed: u64, arguments: &Arguments) -> std::io::Result<ExitCode> {
    let report = arguments.run(seed, true);
    let mut out = std::io::stdout().lock();
    let mut enter = String::new();
    for (number, line) in report.lines.iter().enumerate() {
        writeln!(out, "{number:>6} {line}")?;
        if arguments.step {
            out.flush()?;
            if std::io::stdin().lock().read_line(&mut enter)? == 0 {
                break;
            }
        }
    }
    let verdict = report.violation.as_ref().map_or("no law broken", |violation| &violation.0);
    writeln!(out, "seed {seed}, {} steps: {verdict}", grouped(report.steps))?;
    Ok(if report.violation.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn total_coverage(reports: &[SeedReport]) -> EventCoverage {
    let mut total = EventCoverage::new();
    for (kind, count) in reports.iter().flat_map(|report| &report.coverage) {
        *total.entry(kind).or_default() += count;
    }
    total
}

/// The beginning of the digest of all digests.
fn blake3_of_all(reports: &[SeedReport], digest: fn(&SeedReport) -> &[u8; 32]) -> String {
    let mut hasher = blake3::Hasher::new();
    for report in reports {
        hasher.update(&report.seed.to_be_bytes());
        hasher.update(digest(report));
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// 1234567 as 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}
