//! Programs from PyPI, each set in a folder of its own below the target folder; and the Python client, which is tested with one.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::problem::Problem;
use crate::process;
use crate::schemathesis::build;
use crate::workspace::Workspace;

/// Type checks and tests the Python client against the real server
///
/// Builds the program, then runs mypy and pytest in clients/python. What it needs is installed below the target folder, from
/// PyPI. `cargo xtask test` does the same with what is built.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only tests whose name has this in it
    filter: Option<String>,
}

/// What was installed, so that nobody asks the network for it again.
const MARK: &str = "installed";

/// Packages from PyPI, in a folder of their own.
pub struct Environment {
    /// The folder's name.
    pub name: &'static str,
    /// With their versions: the ones that were tried.
    pub packages: &'static [&'static str],
}

/// What the Python client needs and is tested with.
const CLIENT: Environment =
    Environment { name: "python-client", packages: &["httpx==0.28.1", "pytest==9.2.0", "mypy==2.4.1"] };

impl Environment {
    fn folder(&self, workspace: &Workspace) -> PathBuf {
        workspace.target.join("tools").join(self.name)
    }

    /// One of its programs.
    pub fn program(&self, workspace: &Workspace, name: &str) -> PathBuf {
        self.folder(workspace).join("bin").join(name)
    }

    /// Installs the packages if they are not there. Touches no network if they are.
    pub fn install_missing(&self, workspace: &Workspace) -> Result<(), Problem> {
        let folder = self.folder(workspace);
        let (mark, packages) = (folder.join(MARK), self.packages.join("\n"));
        let runs = || {
            let python = process::command(self.program(workspace, "python")).arg("--version").output();
            python.is_ok_and(|output| output.status.success())
        };
        if fs::read_to_string(&mark).is_ok_and(|installed| installed == packages) && runs() {
            return Ok(());
        }
        eprintln!("installing {} into {}", self.packages.join(", "), folder.display());
        let means = format!("{} could not be installed", self.packages.join(", "));
        let remedy = "install Python 3 with its module venv (Debian: python3-venv), and see whether PyPI can be reached";
        let mut make = process::command("python3");
        process::succeed(make.args(["-m", "venv", "--clear"]).arg(&folder), &means, remedy)?;
        let mut fill = process::command(self.program(workspace, "pip"));
        fill.args(["install", "--quiet", "--disable-pip-version-check"]).args(self.packages);
        process::succeed(&mut fill, &means, remedy)?;
        fs::write(&mark, packages).map_err(|error| Problem::file(&mark, &error))
    }
}

/// Installs, builds, checks.
pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<(), Problem> {
    install_missing(workspace)?;
    build(workspace)?;
    test(workspace, arguments.filter.as_deref())
}

/// Installs what the Python client's tests need.
pub fn install_missing(workspace: &Workspace) -> Result<(), Problem> {
    CLIENT.install_missing(workspace)
}

/// Checks the Python client with what is installed and built.
pub fn check(workspace: &Workspace) -> Result<(), Problem> {
    test(workspace, None)
}

fn test(workspace: &Workspace, filter: Option<&str>) -> Result<(), Problem> {
    let mut types = client(workspace, "mypy");
    types.arg("--cache-dir").arg(CLIENT.folder(workspace).join("types")).args(["--strict", "src", "tests"]);
    process::succeed(&mut types, "the types of the Python client do not fit", "see above")?;
    let mut tests = client(workspace, "pytest");
    tests.args(filter.into_iter().flat_map(|filter| ["-k", filter]));
    process::succeed(
        &mut tests,
        "the Python client does not do what it promises",
        "see above; `cargo xtask python NAME` repeats one test",
    )
}

/// A program in the folder of the client. Whatever is set up for somebody else's server counts for nothing.
fn client(workspace: &Workspace, program: &str) -> Command {
    let folder = workspace.root.join("clients/python");
    let mut command = process::command(CLIENT.program(workspace, program));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TENURE_")) {
        command.env_remove(name);
    }
    command
        .env("PYTHONPATH", folder.join("src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("TENURE_PROGRAM", workspace.target.join("debug/tenure"))
        .current_dir(folder);
    command
}
