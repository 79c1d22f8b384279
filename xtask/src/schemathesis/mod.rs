//! Thousands of requests that somebody else thought of, against the real server.

mod server;

use std::path::PathBuf;
use std::time::Duration;

use crate::problem::Problem;
use crate::process;
use crate::workspace::Workspace;

use self::server::Server;

/// Lets schemathesis try every route of the real server, as /openapi.json describes it
///
/// Builds the program, starts it on a scratch folder, and sends it thousands of requests, good ones and bad ones. An answer
/// that is a server error, or that is not in the description, is a failure. What it needs is installed below the target
/// folder, from PyPI.
#[derive(clap::Args)]
pub struct Arguments {
    /// How many requests are made up for each route
    #[arg(long, default_value_t = 100)]
    examples: u32,
    /// Repeat a run: the seed that it printed
    #[arg(long)]
    seed: Option<u128>,
}

/// The version that our description was tried with.
const VERSION: &str = "4.32.5";
/// The checks: no server error, and nothing that is not described.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,allow_header_conformance,\
                      unsupported_method";
/// What it must know of this server.
const HOOKS: &str = include_str!("hooks.py");
/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(30);
/// The whole of it ends after this time.
const MOST: Duration = Duration::from_secs(300);

/// Installs, starts, tries.
pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<(), Problem> {
    let program = install(workspace)?;
    let server = Server::start(workspace)?;
    let hooks = server.folder().join("hooks.py");
    std::fs::write(&hooks, HOOKS).map_err(|error| Problem::file(&hooks, &error))?;
    let mut command = process::command(program);
    command.arg("run").arg(format!("{}/openapi.json", server.url()));
    command.args([
        "--checks",
        CHECKS,
        "--phases",
        "examples,coverage,fuzzing",
        "--suppress-health-check",
        "all",
    ]);
    // A stream of events does not end, so nobody can wait for its answer. The tests of the server listen to it.
    command.args(["--exclude-path", "/v1/events"]);
    command.args(["--header", &format!("Authorization: Bearer {}", server.token()?)]);
    command.args(["--request-timeout", &PATIENCE.as_secs().to_string(), "--max-failures", "20"]);
    command.args(["--max-examples", &arguments.examples.to_string(), "--warnings", "off", "--no-color"]);
    command.args(["--max-time", &MOST.as_secs().to_string()]);
    if let Some(seed) = arguments.seed {
        command.args(["--seed", &seed.to_string()]);
    }
    // It keeps a database of examples where it is started.
    command
        .env("SCHEMATHESIS_HOOKS", &hooks)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(server.folder());
    process::succeed(
        &mut command,
        "an answer is a server error, or is not what /openapi.json promises",
        "see above; mend the route or its description, then `cargo xtask openapi --write`",
    )
}

/// Where the program is, which is installed if it is not there.
fn install(workspace: &Workspace) -> Result<PathBuf, Problem> {
    let folder = workspace.target.join("tools/schemathesis");
    let program = folder.join("bin/schemathesis");
    let answer = process::command(&program).arg("--version").output();
    if answer.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim().ends_with(VERSION)) {
        return Ok(program);
    }
    eprintln!("installing schemathesis {VERSION} into {}", folder.display());
    let means = "schemathesis could not be installed";
    let remedy =
        "install Python 3 with its module venv (Debian: python3-venv), and see whether PyPI can be reached";
    let mut make = process::command("python3");
    process::succeed(make.args(["-m", "venv", "--clear"]).arg(&folder), means, remedy)?;
    let mut fill = process::command(folder.join("bin/pip"));
    fill.args(["install", "--quiet", "--disable-pip-version-check", &format!("schemathesis=={VERSION}")]);
    process::succeed(&mut fill, means, remedy)?;
    Ok(program)
}
