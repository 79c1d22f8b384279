//! Everything that must hold before a change is merged, in one command.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use xshell::{Cmd, cmd};

use crate::process::{self, Stopwatch, TaskError, print_line};
use crate::secret_scan::SecretScan;
use crate::tools::{self, AGENTS, DENY, NEXTEST};
use crate::workspace::Workspace;
use crate::{clients, figures, language, layers, requirements, surface};

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
    #[arg(long = "rows")]
    list_requirements: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Profile {
    Default,
    Proof,
    Long,
}

/// Tells the tests where to write the secrets that they got and everything that they saw.
const TRACES: &str = "TENURE_TEST_TRACES";

/// Runs every step; stops at the first that fails.
pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<(), TaskError> {
    let mut steps = TestSteps::default();
    let result = run_steps(workspace, arguments, &mut steps);
    steps.show();
    result
}

fn run_steps(workspace: &Workspace, arguments: &Arguments, steps: &mut TestSteps) -> Result<(), TaskError> {
    if !arguments.no_install {
        steps.run("install what is missing", || tools::install_missing(workspace))?;
    }
    steps.run("fetch dependencies", || fetch(workspace))?;
    steps.run("format", || {
        process::run(workspace.cargo(&["fmt", "--all", "--check"]), "run `cargo fmt --all`")
    })?;
    steps.run("layers", || layers::check(workspace))?;
    steps.run("surface", || surface::check(workspace))?;
    steps.run("figures", || figures::check(workspace, false))?;
    steps.run("language", || language::check(workspace))?;
    steps.run("licences and sources", || licences(workspace))?;
    let traces = workspace.root.join("target/traces");
    workspace.shell.remove_path(&traces)?;
    workspace.shell.create_dir(&traces)?;
    steps.run("lint, build and test", || nextest(workspace, arguments.profile, &traces))?;
    steps.run("no secret in what the tests saw", || check_for_secrets(workspace, &traces))?;
    steps.run("examples in the documentation", || doc_tests(workspace))?;
    steps.run("made-up requests", || clients::check_routes(workspace))?;
    steps.run("official MCP client", || clients::check_mcp(workspace))?;
    steps.run("the Python client", || clients::check_python(workspace, None))?;
    steps.run("rows of the requirements", || requirements::report(workspace, arguments.list_requirements))
}

/// The crates that Cargo.lock names. The network is asked only for what is not there.
fn fetch(workspace: &Workspace) -> Result<(), TaskError> {
    if process::succeeds(workspace.cargo(&["fetch", "--locked", "--offline", "--quiet"])) {
        return Ok(());
    }
    process::run(
        workspace.cargo(&["fetch", "--locked"]),
        "see above; after a change to a Cargo.toml, run `cargo check` and commit Cargo.lock",
    )
}

fn licences(workspace: &Workspace) -> Result<(), TaskError> {
    let (shell, deny) = (&workspace.shell, DENY.require(workspace)?);
    process::run(
        cmd!(shell, "{deny} --offline --log-level warn check --hide-inclusion-graph bans licenses sources"),
        "choose another dependency or version; an exception goes into deny.toml with its reason",
    )
}

fn nextest(workspace: &Workspace, profile: Profile, traces: &Path) -> Result<(), TaskError> {
    let (shell, nextest) = (&workspace.shell, NEXTEST.require(workspace)?);
    // How many cases a property is tried with, where its test does not say.
    let (profile, cases) = match profile {
        Profile::Default => ("default", None),
        Profile::Proof => ("proof", Some("4096")),
        Profile::Long => ("long", Some("65536")),
    };
    let mut tests =
        cmd!(shell, "{nextest} nextest run --workspace --all-targets --locked --profile {profile}")
            .env(TRACES, traces)
            .env("TENURE_TEST_AGENTS", AGENTS.folder(workspace));
    if let Some(cases) = cases
        && std::env::var_os("PROPTEST_CASES").is_none()
    {
        tests = tests.env("PROPTEST_CASES", cases);
    }
    process::run(
        lint_while_building(workspace, tests)?,
        "see above; `cargo nextest run NAME` repeats one test",
    )
}

fn doc_tests(workspace: &Workspace) -> Result<(), TaskError> {
    let tests = workspace.cargo(&["test", "--doc", "--workspace", "--locked"]);
    let mut passed = 0;
    process::stream_output_lines(
        lint_while_building(workspace, tests)?,
        "see above; mend the example in the documentation, or what it shows",
        |line| {
            print_line(line);
            passed += passed_count(line);
        },
    )?;
    print_line(&format!("{passed} examples in the documentation passed"));
    Ok(())
}

/// Makes clippy the compiler of this workspace's crates, in the way `cargo clippy -- -D warnings` does it.
/// Dependencies are compiled as ever, and are shared with a plain `cargo build`.
fn lint_while_building<'a>(workspace: &'a Workspace, cmd: Cmd<'a>) -> Result<Cmd<'a>, TaskError> {
    let hint = "install Rust through rustup, which reads rust-toolchain.toml";
    let sysroot = process::output(cmd!(workspace.shell, "rustc --print sysroot"), hint)?;
    let clippy = Path::new(sysroot.trim()).join("bin/clippy-driver");
    if !clippy.is_file() {
        return Err(TaskError::new("clippy is not installed", "run `rustup component add clippy rustfmt`"));
    }
    Ok(cmd.env("RUSTC_WORKSPACE_WRAPPER", clippy).env("CLIPPY_ARGS", "-Dwarnings__CLIPPY_HACKERY__"))
}

/// How many tests passed, by a closing line such as `test result: ok. 3 passed; 0 failed; …`; otherwise 0.
fn passed_count(line: &str) -> u32 {
    let numbers = line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". "));
    numbers.and_then(|(_, rest)| rest.split_once(" passed")?.0.parse().ok()).unwrap_or(0)
}

/// Looks for every secret that the tests got in everything that they saw.
fn check_for_secrets(workspace: &Workspace, folder: &Path) -> Result<(), TaskError> {
    let (mut scan, mut seen): (_, Vec<(PathBuf, Vec<u8>)>) = (SecretScan::default(), Vec::new());
    for path in workspace.shell.read_dir(folder)? {
        let content = workspace.shell.read_binary_file(&path)?;
        if path.extension().is_some_and(|ending| ending == "secrets") {
            String::from_utf8_lossy(&content).lines().for_each(|secret| scan.add(secret));
        } else {
            seen.push((path, content));
        }
    }
    let bytes: usize = seen.iter().map(|(_, content)| content.len()).sum();
    if scan.len() == 0 || bytes == 0 {
        return Err(TaskError::new(
            format!(
                "nothing was looked at: {} secrets and {bytes} bytes in {}",
                scan.len(),
                folder.display()
            ),
            format!("check that the tests still read {TRACES}"),
        ));
    }
    let found =
        seen.iter().flat_map(|(path, content)| scan.find_in(content).into_iter().map(move |at| (path, at)));
    let found: Vec<_> = found.collect();
    let Some((path, first)) = found.first() else {
        print_line(&format!("none of {} secrets is in the {bytes} bytes that the tests saw", scan.len()));
        return Ok(());
    };
    let (place, form) = (path.display(), first.encoding);
    Err(TaskError::new(
        format!(
            "{} secrets where none should be, the first at byte {} of {place}: {form}",
            found.len(),
            first.offset
        ),
        "look at what stands around it in that file, and at the test of that process",
    ))
}

/// The steps so far, with what each took.
#[derive(Default)]
struct TestSteps(Vec<(&'static str, f64, bool)>);

impl TestSteps {
    fn run(
        &mut self,
        name: &'static str,
        step: impl FnOnce() -> Result<(), TaskError>,
    ) -> Result<(), TaskError> {
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
    use super::*;

    const SECRET: &str = "tnr_qZ3-0aB_cDeFgHiJkLmNoPqRsTuVwXyZ0123456789A";

    #[test]
    fn leaked_secret_is_reported_without_showing_it() {
        let workspace = Workspace::find().expect("the repository");
        let (shell, folder) = (&workspace.shell, workspace.shell.create_temp_dir().expect("a folder"));
        let write =
            |name: &str, text: &str| shell.write_file(folder.path().join(name), text).expect("a file");
        write("1.secrets", &format!("{SECRET}\n"));
        assert!(
            check_for_secrets(&workspace, folder.path()).is_err(),
            "nothing was seen, so nothing was shown"
        );
        write("1.seen", "all is well");
        assert!(check_for_secrets(&workspace, folder.path()).is_ok());
        write("2.seen", &format!("error: {SECRET}"));
        let problem = check_for_secrets(&workspace, folder.path()).expect_err("a leak").to_string();
        assert!(problem.contains("2.seen") && !problem.contains(SECRET), "{problem}");
    }

    #[test]
    fn passed_examples_are_counted() {
        assert_eq!(
            passed_count("test result: ok. 13 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out"),
            13
        );
        assert_eq!(passed_count("test result: FAILED. 2 passed; 1 failed; 0 ignored"), 2);
        assert_eq!(passed_count("running 13 tests"), 0);
        assert_eq!(passed_count("test result: strange"), 0);
    }
}
