//! What durable leases cost: through the registrar, in process, on a real disk.
//!
//! `cargo bench -p tenure-registrar --bench ledger -- [--quick] [--json] [--check] [--write]`

mod expiry;
mod latency;
#[path = "../../tests/it/ledger_store.rs"]
mod ledger_store;
mod report;
mod restart;
mod throughput;
mod time;
mod workload;

use std::process::ExitCode;

use report::BenchmarkReport;

/// What was asked for.
#[derive(Debug, Default)]
struct BenchmarkOptions {
    quick: bool,
    json: bool,
    check: bool,
    write: bool,
    /// Only this: for a profiler.
    throughput: bool,
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(problem) => {
            eprintln!("ledger: {problem}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode, String> {
    let options = BenchmarkOptions::parse(std::env::args().skip(1))?;
    let size = if options.quick { 10 } else { 1 };
    if options.throughput {
        let measured = throughput::measure(600_000 / size)?;
        println!(
            "{:.0} per second, {:.1} µs of CPU each",
            measured.per_second(),
            measured.cpu_microseconds()
        );
        return Ok(ExitCode::SUCCESS);
    }
    let report = BenchmarkReport {
        throughput: throughput::measure(600_000 / size)?,
        latency: latency::measure(4_000 / size)?,
        restart: restart::measure(1_000_000 / size)?,
        expiries: expiry::measure(100_000 / size)?,
    };
    if options.json {
        println!("{}", report.json());
    } else {
        print!("{}", report.table());
    }
    if options.write {
        report.write()?;
    }
    let missed = report.failed_checks();
    missed.iter().for_each(|line| eprintln!("MISSED: {line}"));
    Ok(if options.check && !missed.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl BenchmarkOptions {
    fn parse(arguments: impl Iterator<Item = String>) -> Result<BenchmarkOptions, String> {
        let mut options = BenchmarkOptions::default();
        for argument in arguments {
            match argument.as_str() {
                "--quick" => options.quick = true,
                "--json" => options.json = true,
                "--check" => options.check = true,
                "--write" => options.write = true,
                "--throughput" => options.throughput = true,
                // What cargo adds.
                "--bench" => {}
                other => return Err(format!("{other} is none of --quick, --json, --check, --write")),
            }
        }
        Ok(options)
    }
}
