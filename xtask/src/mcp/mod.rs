//! The official client of the Model Context Protocol, against the real program.

use crate::problem::Problem;
use crate::process;
use crate::python::Environment;
use crate::schemathesis::server::{self, Server};
use crate::workspace::Workspace;

/// Lets the official Python client call every tool of `tenure mcp`
///
/// Builds the program, starts a server on a scratch folder, and has two agents meet at one file, over standard streams and
/// over HTTP, with and without a handshake. What it needs is installed below the target folder, from PyPI. `cargo xtask test`
/// does the same.
#[derive(clap::Args)]
pub struct Arguments {}

/// The client.
const CLIENT: Environment = Environment { name: "mcp", packages: &["mcp==2.3.0"] };
/// What is called, and what has to come back.
const SCRIPT: &str = include_str!("agents.py");

/// Installs, builds, starts, calls.
pub fn run(workspace: &Workspace, Arguments {}: &Arguments) -> Result<(), Problem> {
    install_missing(workspace)?;
    server::build(workspace)?;
    check(workspace)
}

/// The same with what is installed and built.
pub fn check(workspace: &Workspace) -> Result<(), Problem> {
    let server = Server::start(workspace)?;
    let script = server.folder().join("agents.py");
    std::fs::write(&script, SCRIPT).map_err(|error| Problem::file(&script, &error))?;
    let mut command = process::command(CLIENT.program(workspace, "python"));
    command.arg(&script).arg(workspace.target.join("debug/tenure"));
    command.env("TENURE_URL", server.url()).env("TENURE_TOKEN", server.token()?);
    command.env("PYTHONDONTWRITEBYTECODE", "1").current_dir(server.folder());
    process::succeed(
        &mut command,
        "the official client does not get from `tenure mcp` what it should",
        "see above; `cargo xtask mcp` repeats it",
    )
}

/// Installs the client if it is not there. Touches no network if it is.
pub fn install_missing(workspace: &Workspace) -> Result<(), Problem> {
    CLIENT.install_missing(workspace)
}
