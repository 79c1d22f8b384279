//! Clients that are not written in Rust, against the real server: schemathesis, the official MCP client, ours in Python.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use xshell::{Cmd, cmd};

use crate::process::{self, TaskError};
use crate::tools::{MCP, PYTHON_CLIENT, SCHEMATHESIS};
use crate::workspace::Workspace;

/// Lets schemathesis try every route of the real server, as /openapi.json describes it
///
/// Builds the program, starts it on a scratch folder, and sends it thousands of requests, good ones and bad ones. An answer
/// that is a server error, or that is not in the description, is a failure. What it needs is installed below the target
/// folder, from PyPI. `cargo xtask test` does the same with a few requests.
#[derive(clap::Args)]
pub struct Schemathesis {
    /// How long it tries
    #[arg(long, default_value_t = 180)]
    seconds: u32,
    /// Repeat a run: the seed that it printed
    #[arg(long)]
    seed: Option<u128>,
}

/// The checks: no server error, and nothing that is not described.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,allow_header_conformance,\
                      unsupported_method";

impl Schemathesis {
    /// Installs, builds, starts, tries.
    pub fn run(&self, workspace: &Workspace) -> Result<(), TaskError> {
        SCHEMATHESIS.install_from_pypi(workspace)?;
        build(workspace)?;
        let mut more = vec!["--phases=examples,coverage,fuzzing,stateful".to_owned()];
        more.push(format!("--max-time={}", self.seconds));
        more.extend(self.seed.map(|seed| format!("--seed={seed}")));
        try_every_route(workspace, &more)
    }
}

/// A few requests for each route, always the same ones, with what is installed and built.
pub fn check_routes(workspace: &Workspace) -> Result<(), TaskError> {
    let arguments = ["--phases=examples,coverage,fuzzing", "--max-examples", "5", "--seed=1"];
    try_every_route(workspace, &arguments.map(str::to_owned))
}

fn try_every_route(workspace: &Workspace, more: &[String]) -> Result<(), TaskError> {
    let (shell, server) = (&workspace.shell, Server::start(workspace)?);
    let hooks = server.folder.join("hooks.py");
    shell.write_file(&hooks, include_str!("schemathesis/hooks.py"))?;
    let (program, url) = (SCHEMATHESIS.program(workspace, "schemathesis"), &server.url);
    let schemathesis =
        cmd!(shell, "{program} run {url}/openapi.json --checks {CHECKS} --no-color --warnings off")
            .args(["--suppress-health-check", "all", "--request-timeout", "30", "--max-failures", "20"])
            .args(["--header", &format!("Authorization: Bearer {}", server.token(workspace)?)])
            .args(more);
    // It keeps a database of examples where it is started.
    let _inside = shell.push_dir(&server.folder);
    process::run(
        schemathesis.env("SCHEMATHESIS_HOOKS", &hooks).env("PYTHONDONTWRITEBYTECODE", "1"),
        "see above; mend the route or its description, then `cargo xtask openapi --write`",
    )
}

/// Lets the official Python client call every tool of `tenure mcp`
///
/// Builds the program, starts a server on a scratch folder, and has two agents meet at one file, over standard streams and
/// over HTTP, with and without a handshake. What it needs is installed below the target folder, from PyPI. `cargo xtask test`
/// does the same.
#[derive(clap::Args)]
pub struct Mcp {}

impl Mcp {
    /// Installs, builds, starts, calls.
    pub fn run(&self, workspace: &Workspace) -> Result<(), TaskError> {
        MCP.install_from_pypi(workspace)?;
        build(workspace)?;
        check_mcp(workspace)
    }
}

/// Calls every tool, with what is installed and built.
pub fn check_mcp(workspace: &Workspace) -> Result<(), TaskError> {
    let (shell, server) = (&workspace.shell, Server::start(workspace)?);
    let script = server.folder.join("agents.py");
    shell.write_file(&script, include_str!("mcp/agents.py"))?;
    let (python, program) = (MCP.program(workspace, "python"), program(workspace));
    let agents = cmd!(shell, "{python} {script} {program}").env("TENURE_URL", &server.url);
    let agents = agents.env("TENURE_TOKEN", server.token(workspace)?).env("PYTHONDONTWRITEBYTECODE", "1");
    let _inside = shell.push_dir(&server.folder);
    process::run(agents, "see above; `cargo xtask mcp` repeats it")
}

/// Type checks and tests the Python client against the real server
///
/// Builds the program, then runs mypy and pytest in clients/python. What it needs is installed below the target folder, from
/// PyPI. `cargo xtask test` does the same with what is built.
#[derive(clap::Args)]
pub struct Python {
    /// Only tests whose name has this in it
    filter: Option<String>,
}

impl Python {
    /// Installs, builds, checks.
    pub fn run(&self, workspace: &Workspace) -> Result<(), TaskError> {
        PYTHON_CLIENT.install_from_pypi(workspace)?;
        build(workspace)?;
        check_python(workspace, self.filter.as_deref())
    }
}

/// Checks the Python client with what is installed and built.
pub fn check_python(workspace: &Workspace, filter: Option<&str>) -> Result<(), TaskError> {
    let shell = &workspace.shell;
    let _inside = shell.push_dir("clients/python");
    let client = |name: &str| {
        without_tenure_variables(shell.cmd(PYTHON_CLIENT.program(workspace, name)))
            .env("PYTHONPATH", shell.current_dir().join("src"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("TENURE_PROGRAM", program(workspace))
    };
    let cache = PYTHON_CLIENT.folder(workspace).join("types");
    let mypy = client("mypy").arg("--cache-dir").arg(cache).args(["--strict", "src", "tests"]);
    process::run(mypy, "see above: the types of the Python client do not fit")?;
    let pytest = client("pytest").args(filter.into_iter().flat_map(|filter| ["-k", filter]));
    process::run(pytest, "see above; `cargo xtask python NAME` repeats one test")
}

fn build(workspace: &Workspace) -> Result<(), TaskError> {
    process::run(workspace.cargo(&["build", "--locked", "--package", "tenure"]), "see above")
}

fn program(workspace: &Workspace) -> PathBuf {
    workspace.target.join("debug/tenure")
}

/// Without the variables that are set for another server.
fn without_tenure_variables(cmd: Cmd<'_>) -> Cmd<'_> {
    let names = std::env::vars_os().map(|(name, _)| name);
    names
        .filter(|name| name.to_string_lossy().starts_with("TENURE_"))
        .fold(cmd, |cmd, name| cmd.env_remove(name))
}

/// The real program on a scratch folder. It ends, and the folder with it, when this is dropped.
struct Server {
    child: Child,
    folder: PathBuf,
    url: String,
}

impl Server {
    /// Starts what was built on any free port. When this returns, requests are answered.
    fn start(workspace: &Workspace) -> Result<Self, TaskError> {
        let (shell, program) = (&workspace.shell, program(workspace));
        let folder = workspace.target.join(format!("tmp/schemathesis-{}", std::process::id()));
        shell.create_dir(&folder)?;
        let serve = cmd!(shell, "{program} serve --listen 127.0.0.1:0 --socket none --data {folder}/data");
        let serve =
            without_tenure_variables(serve).env("XDG_CONFIG_HOME", &folder).env("XDG_STATE_HOME", &folder);
        let mut serve = process::without_cargo_variables(serve);
        let mut child =
            serve.stdout(Stdio::piped()).spawn().map_err(|error| process::not_started(&serve, &error))?;
        let output = child.stdout.take().map(BufReader::new);
        let mut server = Self { child, folder, url: String::new() };
        let first = output.and_then(|output| output.lines().next()?.ok()).unwrap_or_default();
        let url = first.split_whitespace().find(|word| word.starts_with("http://"));
        server.url = url.map(str::to_owned).ok_or_else(|| {
            TaskError::new(
                format!("`tenure serve` did not say where it listens, but {first:?}"),
                "see above; start `cargo run -- serve` by hand",
            )
        })?;
        Ok(server)
    }

    /// The token that may do everything.
    fn token(&self, workspace: &Workspace) -> Result<String, TaskError> {
        Ok(workspace.shell.read_file(self.folder.join("data/admin.token"))?.trim_end().to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
