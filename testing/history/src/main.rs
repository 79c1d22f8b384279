//! Checks a history that was kept: `cargo run -p tenure-history -- FILE [--data DIR]`.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use tenure_history::linearizability::{DEFAULT_MAX_STEPS, SearchVerdict};
use tenure_history::{History, fences, ledger, linearizability};

/// Checks what clients were told: whether any order of the operations explains it, and whether the ledger does.
///
/// Ends with 0 if everything holds, with 1 if a law is broken, with 2 if the search was given up or a file cannot be
/// read.
#[derive(Debug, Parser)]
struct Arguments {
    /// The history: one JSON value a line
    file: PathBuf,
    /// The data directory of the server that gave the answers
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// How many steps of the search to try for each resource
    #[arg(long, value_name = "STEPS", default_value_t = DEFAULT_MAX_STEPS)]
    enough: usize,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("tenure-history: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<u8, Box<dyn std::error::Error>> {
    let history = History::read(BufReader::new(File::open(&arguments.file)?))?;
    let mut violations = fences::check(&history);
    let mut undecided = 0;
    for finding in linearizability::check(&history, arguments.enough) {
        let (operations, steps) = (finding.effort.operations, finding.effort.steps);
        let word = match finding.verdict {
            SearchVerdict::Holds => "there is an order",
            SearchVerdict::Violated(violation) => {
                violations.push(*violation);
                "there is no order"
            }
            SearchVerdict::Undecided => {
                undecided += 1;
                "given up; try more with --enough"
            }
        };
        println!("{}: {operations} operations, {steps} steps: {word}", finding.resource);
    }
    if let Some(data) = &arguments.data {
        let entries = ledger::load(data)?;
        let found = ledger::check(&history, &entries);
        println!(
            "the ledger: {} entries, {} of them or of the answers are wrong",
            entries.len(),
            found.len()
        );
        violations.extend(found);
    }
    for violation in &violations {
        print!("\n{violation}");
    }
    Ok(match (violations.is_empty(), undecided) {
        (true, 0) => 0,
        (true, _) => 2,
        (false, _) => 1,
    })
}
