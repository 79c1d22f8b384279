//! The simulator, optimised.

use crate::problem::Problem;
use crate::process;
use crate::workspace::Workspace;

/// Runs the simulator, optimised; prints exactly what it prints
///
/// `cargo xtask sim --seeds 20`, `cargo xtask sim --from 17 --seeds 1`. Every argument goes to the
/// simulator unchanged; `cargo xtask sim -- --help` shows what it knows.
#[derive(clap::Args)]
pub struct Arguments {
    /// The simulator's own arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs it, and ends as it ends.
pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<(), Problem> {
    let mut command = process::cargo();
    command.args(["run", "--release", "--quiet", "--package", "tenure-sim", "--"]).args(&arguments.arguments);
    process::succeed(
        command.current_dir(&workspace.root),
        "the simulator did not build, or found a violation",
        "see above; a violation is repeated by its seed: `cargo xtask sim --from SEED --seeds 1`",
    )
}
