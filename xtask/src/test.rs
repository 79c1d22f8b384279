//! Everything that must hold before a change is merged, in one command.

use std::path::Path;
use std::process::Command;

use clap::ValueEnum;

use crate::problem::Problem;
use crate::process::{self, Stopwatch, say};
use crate::tools::{self, DENY, NEXTEST};
use crate::workspace::Workspace;
use crate::{agents, figures, layers, mcp, python, rows, schemathesis, surface, traces};

/// Installs what the tests need, then checks, lints, builds and tests everything
///
/// The one command of a newcomer and of CI. Lints, build and tests are one build pass: the compiler
/// of this workspace's crates is clippy's, and every warning is an error.
#[derive(clap::Args)]
pub struct Arguments {
    /// How much is tested; .config/nextest.toml says what each is for
    #[arg(long, value_enum, default_value_t = Profile::Default)]
    profile: Profile,
    /// Install nothing; fail if something is missing
    #[arg(long)]
    no_install: bool,
    /// List the rows of the requirements that no test names, not only how many they are
    #[arg(long)]
    rows: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Profile {
    Default,
    Proof,
    Long,
}

impl Profile {
    fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Proof => "proof",
            Self::Long => "long",
        }
    }

    /// How many cases a property is tried with, where its test does not say; `None` is the library's own number.
    fn cases(self) -> Option<&'static str> {
        match self {
            Self::Default => None,
            Self::Proof => Some("4096"),
            Self::Long => Some("65536"),
        }
    }
}

/// Runs every step; stops at the first that fails.
pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<(), Problem> {
    let mut steps = Steps::default();
    let result = run_steps(workspace, arguments, &mut steps);
    steps.show();
    result
}

fn run_steps(workspace: &Workspace, arguments: &Arguments, steps: &mut Steps) -> Result<(), Problem> {
    if !arguments.no_install {
        steps.run("install what is missing", || {
            tools::install_missing(workspace)?;
            schemathesis::install_missing(workspace)?;
            mcp::install_missing(workspace)?;
            python::install_missing(workspace)?;
            agents::install_missing(workspace)
        })?;
    }
    steps.run("fetch dependencies", || fetch(workspace))?;
    steps.run("format", || format(workspace))?;
    steps.run("layers", || layers::check(workspace))?;
    steps.run("surface", || surface::check(workspace))?;
    steps.run("figures", || figures::check(workspace))?;
    steps.run("licences and sources", || licences(workspace))?;
    let traces = traces::begin(workspace)?;
    steps.run("lint, build and test", || nextest(workspace, arguments.profile, &traces))?;
    steps.run("no secret in what the tests saw", || traces::check(&traces))?;
    steps.run("examples in the documentation", || doc_tests(workspace))?;
    steps.run("made-up requests", || schemathesis::check(workspace))?;
    steps.run("official MCP client", || mcp::check(workspace))?;
    steps.run("the Python client", || python::check(workspace))?;
    steps.run("rows of the requirements", || rows::report(workspace, arguments.rows))
}

/// The crates that Cargo.lock names. The network is asked only for what is not there.
fn fetch(workspace: &Workspace) -> Result<(), Problem> {
    let mut offline = cargo(workspace, &["fetch", "--locked", "--offline", "--quiet"]);
    if offline.output().is_ok_and(|output| output.status.success()) {
        return Ok(());
    }
    process::succeed(
        &mut cargo(workspace, &["fetch", "--locked"]),
        "the dependencies are not all here, or Cargo.lock does not fit the Cargo.toml files",
        "see above; after a change to a Cargo.toml, run `cargo check` and commit Cargo.lock",
    )
}

fn format(workspace: &Workspace) -> Result<(), Problem> {
    process::succeed(
        &mut cargo(workspace, &["fmt", "--all", "--check"]),
        "some files are not formatted as everybody's are",
        "run `cargo fmt --all`",
    )
}

fn licences(workspace: &Workspace) -> Result<(), Problem> {
    let mut command = process::command(DENY.require(workspace)?);
    command.args([
        "--offline",
        "--log-level",
        "warn",
        "check",
        "--hide-inclusion-graph",
        "bans",
        "licenses",
        "sources",
    ]);
    process::succeed(
        command.current_dir(&workspace.root),
        "a dependency has a licence, a source or a duplicate that deny.toml does not allow",
        "choose another dependency or version; an exception goes into deny.toml with its reason",
    )
}

fn nextest(workspace: &Workspace, profile: Profile, traces: &Path) -> Result<(), Problem> {
    let mut command = process::command(NEXTEST.require(workspace)?);
    command.args(["nextest", "run", "--workspace", "--all-targets", "--locked", "--profile", profile.name()]);
    command.current_dir(&workspace.root).env(traces::VARIABLE, traces);
    command.env(agents::VARIABLE, agents::folder(workspace));
    lint_while_building(&mut command)?;
    if let Some(cases) = profile.cases()
        && std::env::var_os("PROPTEST_CASES").is_none()
    {
        command.env("PROPTEST_CASES", cases);
    }
    process::succeed(
        &mut command,
        "a lint, the build or a test failed",
        "see above; `cargo nextest run NAME` repeats one test",
    )
}

fn doc_tests(workspace: &Workspace) -> Result<(), Problem> {
    let mut command = cargo(workspace, &["test", "--doc", "--workspace", "--locked"]);
    lint_while_building(&mut command)?;
    let mut passed = 0;
    let status = process::watch(&mut command, |line| {
        say(line);
        passed += passed_in(line);
    })?;
    if !status.success() {
        let means = "an example in the documentation does not do what it says";
        return Err(process::failed(&command, status, means, "mend the example, or what it shows"));
    }
    say(&format!("{passed} examples in the documentation passed"));
    Ok(())
}

/// Makes clippy the compiler of this workspace's crates, in the way `cargo clippy -- -D warnings` does it.
/// Dependencies are compiled as ever, and are shared with a plain `cargo build`.
fn lint_while_building(command: &mut Command) -> Result<(), Problem> {
    let means = "the compiler does not say where it is installed";
    let remedy = "install Rust through rustup, which reads rust-toolchain.toml";
    let sysroot = process::output(process::command("rustc").args(["--print", "sysroot"]), means, remedy)?;
    let driver = Path::new(sysroot.trim()).join("bin/clippy-driver");
    if !driver.is_file() {
        return Err(Problem::new(
            "clippy is not installed",
            "nothing can be linted",
            "run `rustup component add clippy rustfmt`",
        ));
    }
    command.env("RUSTC_WORKSPACE_WRAPPER", driver).env("CLIPPY_ARGS", "-Dwarnings__CLIPPY_HACKERY__");
    Ok(())
}

fn cargo(workspace: &Workspace, arguments: &[&str]) -> Command {
    let mut command = process::cargo();
    command.args(arguments).current_dir(&workspace.root);
    command
}

/// How many tests passed, by a closing line such as `test result: ok. 3 passed; 0 failed; …`; otherwise 0.
fn passed_in(line: &str) -> u32 {
    let numbers = line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". "));
    numbers.and_then(|(_, rest)| rest.split_once(" passed")?.0.parse().ok()).unwrap_or(0)
}

/// The steps so far, with what each took.
#[derive(Default)]
struct Steps(Vec<(&'static str, f64, bool)>);

impl Steps {
    fn run(&mut self, name: &'static str, step: impl FnOnce() -> Result<(), Problem>) -> Result<(), Problem> {
        eprintln!("\n==> {name}");
        let stopwatch = Stopwatch::start();
        let result = step();
        self.0.push((name, stopwatch.seconds(), result.is_ok()));
        result
    }

    fn show(&self) {
        eprintln!();
        for (name, seconds, passed) in &self.0 {
            let verdict = if *passed { "passed" } else { "FAILED" };
            eprintln!("{verdict} {:>8.1} s  {name}", seconds);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::passed_in;

    #[test]
    fn passed_examples_are_counted() {
        assert_eq!(
            passed_in("test result: ok. 13 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out"),
            13
        );
        assert_eq!(passed_in("test result: FAILED. 2 passed; 1 failed; 0 ignored"), 2);
        assert_eq!(passed_in("running 13 tests"), 0);
        assert_eq!(passed_in("test result: strange"), 0);
    }
}
