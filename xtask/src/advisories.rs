//! Known weaknesses of the dependencies.

use crate::problem::Problem;
use crate::process;
use crate::tools::DENY;
use crate::workspace::Workspace;

/// Looks the dependencies up in the public database of advisories
///
/// Apart from `cargo xtask test` because it needs the network, and because a new advisory must not
/// fail a change that has nothing to do with it.
#[derive(clap::Args)]
pub struct Arguments {}

/// Fetches the database, then checks every dependency against it.
pub fn run(workspace: &Workspace, _arguments: &Arguments) -> Result<(), Problem> {
    let deny = DENY.require(workspace)?;
    let deny = |arguments: &[&str]| {
        let mut command = process::command(&deny);
        command.args(arguments).current_dir(&workspace.root);
        command
    };
    process::succeed(
        &mut deny(&["--log-level", "error", "fetch", "db"]),
        "the database of advisories cannot be reached from this machine: NOTHING was checked",
        "try again on a machine that reaches the internet",
    )?;
    process::succeed(
        &mut deny(&["--offline", "check", "advisories"]),
        "a dependency has a known weakness, or was withdrawn",
        "update it (`cargo update --package NAME`); if it does not concern Tenure, say why in deny.toml",
    )
}
