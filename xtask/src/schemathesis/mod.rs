//! Requests that somebody else thought of, against the real server.

pub mod server;

use self::server::Server;
pub use self::server::build;
use crate::problem::Problem;
use crate::process;
use crate::python::Environment;
use crate::workspace::Workspace;

/// Lets schemathesis try every route of the real server, as /openapi.json describes it
///
/// Builds the program, starts it on a scratch folder, and sends it thousands of requests, good ones and bad ones. An answer
/// that is a server error, or that is not in the description, is a failure. What it needs is installed below the target
/// folder, from PyPI. `cargo xtask test` does the same with a few requests.
#[derive(clap::Args)]
pub struct Arguments {
    /// How long it tries
    #[arg(long, default_value_t = 180)]
    seconds: u32,
    /// Repeat a run: the seed that it printed
    #[arg(long)]
    seed: Option<u128>,
}

/// With the version that our description was tried with.
const TOOLS: Environment = Environment { name: "schemathesis", packages: &["schemathesis==4.32.5"] };
/// The checks: no server error, and nothing that is not described.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,allow_header_conformance,\
                      unsupported_method";
/// What it must know of this server.
const HOOKS: &str = include_str!("hooks.py");
/// Seconds, longer than any answer takes.
const PATIENCE: &str = "30";
/// How many requests are made up for each route where there is little time.
const FEW: &str = "5";

/// Installs, builds, starts, tries.
pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<(), Problem> {
    install_missing(workspace)?;
    build(workspace)?;
    let mut more = vec!["--phases=examples,coverage,fuzzing,stateful".to_owned()];
    more.push(format!("--max-time={}", arguments.seconds));
    more.extend(arguments.seed.map(|seed| format!("--seed={seed}")));
    try_every_route(workspace, &more)
}

/// A few requests for each route, always the same ones, with what is installed and built.
pub fn check(workspace: &Workspace) -> Result<(), Problem> {
    let few = ["--phases=examples,coverage,fuzzing", "--max-examples", FEW, "--seed=1"];
    try_every_route(workspace, &few.map(str::to_owned))
}

fn try_every_route(workspace: &Workspace, more: &[String]) -> Result<(), Problem> {
    let server = Server::start(workspace)?;
    let hooks = server.folder().join("hooks.py");
    std::fs::write(&hooks, HOOKS).map_err(|error| Problem::file(&hooks, &error))?;
    let mut command = process::command(TOOLS.program(workspace, "schemathesis"));
    command.arg("run").arg(format!("{}/openapi.json", server.url()));
    command.args(["--checks", CHECKS, "--suppress-health-check", "all", "--warnings", "off", "--no-color"]);
    command.args(["--header", &format!("Authorization: Bearer {}", server.token()?)]);
    command.args(["--request-timeout", PATIENCE, "--max-failures", "20"]).args(more);
    // It keeps a database of examples where it is started.
    command.env("SCHEMATHESIS_HOOKS", &hooks).env("PYTHONDONTWRITEBYTECODE", "1");
    process::succeed(
        command.current_dir(server.folder()),
        "an answer is a server error, or is not what /openapi.json promises",
        "see above; mend the route or its description, then `cargo xtask openapi --write`",
    )
}

/// Installs schemathesis if it is not there. Touches no network if it is.
pub fn install_missing(workspace: &Workspace) -> Result<(), Problem> {
    TOOLS.install_missing(workspace)
}
