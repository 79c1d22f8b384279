//! What the gate costs: the same commands with and without a guard, in the same run.
//!
//! `cargo bench -p tenure --bench gate -- [--quick] [--json] [--check] [--write]`

mod commands;
mod fixture;
mod open_latency;
mod report;

use std::process::ExitCode;

use fixture::Fixture;
use report::BenchReport;

/// What was asked for.
#[derive(Debug, Default)]
struct Options {
    quick: bool,
    json: bool,
    check: bool,
    write: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // The part that is measured, as a process of its own: with a guard above it, or without.
    if let [first, what, path, times] = &arguments[..]
        && first == open_latency::INTERNAL_SUBCOMMAND
    {
        return open_latency::run_internal_subcommand(what, path, times);
    }
    match run(arguments.into_iter()) {
        Ok(code) => code,
        Err(problem) => {
            eprintln!("gate: {problem}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: impl Iterator<Item = String>) -> Result<ExitCode, String> {
    let options = Options::parse(arguments)?;
    let world = Fixture::make(if options.quick { 500 } else { 5_000 })?;
    let report = BenchReport {
        opens: open_latency::measure(&world, if options.quick { 2_000 } else { 20_000 })?,
        commands: commands::measure(&world, if options.quick { 5 } else { 20 })?,
    };
    if options.json {
        println!("{}", report.to_json());
    } else {
        print!("{}", report.to_markdown());
    }
    if options.write {
        report.update_documentation()?;
    }
    let missed = report.failures();
    missed.iter().for_each(|line| eprintln!("MISSED: {line}"));
    Ok(if options.check && !missed.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl Options {
    fn parse(arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options::default();
        for argument in arguments {
            match argument.as_str() {
                "--quick" => options.quick = true,
                "--json" => options.json = true,
                "--check" => options.check = true,
                "--write" => options.write = true,
                // What cargo adds.
                "--bench" => {}
                other => return Err(format!("{other} is none of --quick, --json, --check, --write")),
            }
        }
        Ok(options)
    }
}
