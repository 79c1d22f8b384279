//! What one lease costs the kernel: CPU time per operation with a thousand and with a million live leases,
//! and memory per lease.
//!
//! `cargo bench -p tenure-core --bench core -- [--quick] [--json] [--check] [--write]`

mod cpu_time;
mod measurements;
mod memory;
mod naive_lock_table;
mod report;
mod workload;

use std::process::ExitCode;

use measurements::{SIZES, measure};
use memory::MemoryUse;
use report::BenchmarkReport;

/// What was asked for.
#[derive(Debug, Default)]
struct Options {
    /// Fewer repetitions.
    quick: bool,
    /// One line for programs instead of a table for people.
    json: bool,
    /// Fail if a target is missed.
    check: bool,
    /// Put the table into docs/benchmarks.md.
    write: bool,
    /// Only measure what this many leases take, for the process that asked.
    memory_of: Option<usize>,
}

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(problem) => {
            eprintln!("core: {problem}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode, String> {
    let options = Options::parse(std::env::args().skip(1))?;
    if let Some(leases) = options.memory_of {
        return MemoryUse::measure_and_print(leases).map(|()| ExitCode::SUCCESS);
    }
    let memory = MemoryUse::measure(SIZES[SIZES.len() - 1])?;
    let repetitions = if options.quick { 7 } else { 41 };
    let report = BenchmarkReport { figures: measure(repetitions), memory, repetitions };
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

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options::default();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => options.quick = true,
                "--json" => options.json = true,
                "--check" => options.check = true,
                "--write" => options.write = true,
                memory::MEMORY_OF_FLAG => {
                    let leases = arguments.next().and_then(|leases| leases.parse().ok());
                    options.memory_of = Some(leases.ok_or("how many leases?")?);
                }
                // What cargo adds.
                "--bench" => {}
                other => return Err(format!("{other} is none of --quick, --json, --check, --write")),
            }
        }
        Ok(options)
    }
}
