//! The benchmarks.

use crate::problem::Problem;
use crate::process;
use crate::tools;
use crate::workspace::Workspace;

/// Measures, on a machine that does nothing else
///
/// A timing is a benchmark, never a test: `cargo xtask test` builds the benchmarks and does not run them.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(clap::Subcommand)]
enum Subject {
    /// Decide and apply in the kernel, and the memory of its table
    Core {
        /// The benchmark's own arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Durable leases through the registrar, restarts, and many ends at once
    Ledger {
        /// The benchmark's own arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// What a guard adds to opening a file and to whole commands; needs hyperfine
    Gate {
        /// The benchmark's own arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

/// Runs the benchmark, and ends as it ends. What it measures with is installed where it is missing.
pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<(), Problem> {
    let (package, bench, arguments) = match &arguments.subject {
        Subject::Core { arguments } => ("tenure-core", "core", arguments),
        Subject::Ledger { arguments } => ("tenure-registrar", "ledger", arguments),
        Subject::Gate { arguments } => {
            tools::install_hyperfine()?;
            ("tenure", "gate", arguments)
        }
    };
    let mut command = process::cargo();
    command.args(["bench", "--quiet", "--package", package, "--bench", bench, "--"]).args(arguments);
    process::succeed(
        command.current_dir(&workspace.root),
        "the benchmark did not build, or a figure is beyond its bound",
        "see above; repeat it on a machine that is otherwise idle before believing it",
    )
}
