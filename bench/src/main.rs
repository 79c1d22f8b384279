//! One load generator for Tenure and its peers.
//!
//! ```text
//! cli ──> runner          which rows, in turns, on which servers
//!           peer/         starts a server; acquires, renews and releases over its protocol
//!           workload/     what the clients do, and what is measured meanwhile
//!         report ──> page, plot
//! ```

mod cli;
mod clock;
mod error;
mod http;
mod latency;
mod machine;
mod page;
mod peer;
mod plot;
mod processes;
mod report;
mod runner;
mod statistics;
mod table;
mod websocket;
mod wire;
mod workload;

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::Options;
use crate::error::{BenchError, IoContext as _};
use crate::report::BenchReport;

fn main() -> ExitCode {
    let options = Options::parse();
    match measure(&options) {
        Ok(failures) if failures.is_empty() => ExitCode::SUCCESS,
        Ok(failures) => {
            failures.iter().for_each(|failure| print_error(failure));
            ExitCode::FAILURE
        }
        Err(error) => {
            print_error(&error.to_string());
            ExitCode::from(2)
        }
    }
}

/// Measures, and shows what was measured. Returns the rows that failed.
fn measure(options: &Options) -> Result<Vec<String>, BenchError> {
    let report = runtime(options)?.block_on(async {
        let interrupted =
            || BenchError::environment("interrupted", "nothing was written; the servers were ended");
        let mut terminate = signal(SignalKind::terminate()).while_trying("handling SIGTERM")?;
        tokio::select! {
            report = runner::run(options) => report,
            // Dropping the run ends every server that it started.
            _ = tokio::signal::ctrl_c() => Err(interrupted()),
            _ = terminate.recv() => Err(interrupted()),
        }
    })?;
    let text = if options.json { report.json() } else { report.page(false) };
    let _ = writeln!(io::stdout(), "{}", text.trim_end());
    if let Some(folder) = &options.write {
        write(&report, folder)?;
    }
    Ok(report.failures())
}

fn runtime(options: &Options) -> Result<Runtime, BenchError> {
    // Servers are started on the main thread: they end with the thread that started them.
    let runtime = match options.threads {
        1 => Builder::new_current_thread().enable_all().build(),
        threads => Builder::new_multi_thread().worker_threads(threads.into()).enable_all().build(),
    };
    runtime.while_trying("starting the load generator")
}

fn write(report: &BenchReport, folder: &Path) -> Result<(), BenchError> {
    std::fs::create_dir_all(folder).while_trying(format!("creating {}", folder.display()))?;
    let page = ("peers.md", report.page(true));
    let plots = report.plots();
    for (name, text) in plots.into_iter().map(|plot| (plot.file, plot.svg)).chain([page]) {
        let path = folder.join(name);
        std::fs::write(&path, text).while_trying(format!("writing {}", path.display()))?;
    }
    Ok(())
}

fn print_error(text: &str) {
    let _ = writeln!(io::stderr(), "tenure-bench: {text}");
}
