//! The official client of the Model Context Protocol, against the real program.

use std::path::PathBuf;

use crate::problem::Problem;
use crate::process;
use crate::schemathesis::server::{self, Server};
use crate::workspace::Workspace;

/// Lets the official Python client call every tool of `tenure mcp`
///
/// Builds the program, starts a server on a scratch folder, and has two agents meet at one file, over standard streams and
/// over HTTP, with and without a handshake. What it needs is installed below the target folder, from PyPI. `cargo xtask test`
/// does the same.
#[derive(clap::Args)]
pub struct Arguments {}

/// The version that was tried.
const VERSION: &str = "2.3.0";
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
    let mut command = process::command(python(workspace));
    command.arg(&script).arg(workspace.target.join("debug/tenure"));
    command.env("TENURE_URL", server.url()).env("TENURE_TOKEN", server.token()?);
    command.env("PYTHONDONTWRITEBYTECODE", "1").current_dir(server.folder());
    process::succeed(
        &mut command,
        "the official client does not get from `tenure mcp` what it should",
        "see above; `cargo xtask mcp` repeats it",
    )
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target.join("tools/mcp")
}

fn python(workspace: &Workspace) -> PathBuf {
    folder(workspace).join("bin/python")
}

/// Installs the client if it is not there. Touches no network if it is.
pub fn install_missing(workspace: &Workspace) -> Result<(), Problem> {
    let folder = folder(workspace);
    let ask = "import importlib.metadata; print(importlib.metadata.version('mcp'))";
    let answer = process::command(python(workspace)).args(["-c", ask]).output();
    if answer.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim() == VERSION) {
        return Ok(());
    }
    eprintln!("installing the MCP client {VERSION} into {}", folder.display());
    let means = "the official MCP client could not be installed";
    let remedy = "install Python 3.10 or newer with its module venv (Debian: python3-venv), and see whether PyPI can be reached";
    let mut make = process::command("python3");
    process::succeed(make.args(["-m", "venv", "--clear"]).arg(&folder), means, remedy)?;
    let mut fill = process::command(folder.join("bin/pip"));
    fill.args(["install", "--quiet", "--disable-pip-version-check", &format!("mcp=={VERSION}")]);
    process::succeed(&mut fill, means, remedy)
}
