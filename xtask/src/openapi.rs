//! The description of the HTTP interface that is kept in the repository.

use crate::problem::Problem;
use crate::process;
use crate::workspace::Workspace;

/// Compares docs/openapi.json with what the code says, or writes it anew
///
/// The description is made from the code by a test of the server, so that this task builds without the rest.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write docs/openapi.json instead of comparing it
    #[arg(long)]
    write: bool,
}

/// Compares or writes.
pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<(), Problem> {
    let mut command = process::cargo();
    command.args(["test", "--quiet", "--locked", "--package", "tenure-server", "--lib", "openapi"]);
    command.current_dir(&workspace.root);
    if arguments.write {
        command.env("TENURE_WRITE_OPENAPI", "1");
    }
    process::succeed(
        &mut command,
        "docs/openapi.json is not what the code says, or a route is not described as it should be",
        "see above; `cargo xtask openapi --write` writes the file anew",
    )
}
