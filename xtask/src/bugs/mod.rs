//! Planted bugs: a test that was never seen to fail proves nothing.

mod patch;
mod rebase;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use regex::Regex;
use xshell::{Cmd, Shell, cmd};

use crate::process::{self, Stopwatch, TaskError, print_line};
use crate::tools::NEXTEST;
use crate::workspace::{Workspace, files_below};

use patch::{Patch, Shard};

/// Plant each bug of bugs/*.patch in a copy of the working tree and check that a test fails
///
/// A patch is a unified diff below two lines: `# what it breaks` and `# tests: CRATE`, the crate whose tests
/// catch it. Only the tests of that crate run, unchanged, with `# tests: CRATE NAME` those with NAME in their names. The
/// command fails for a bug that no test catches, for a patch that no longer applies, and for one that does not compile. The
/// working tree itself is never touched.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only the bug of this name: bugs/NAME.patch
    #[arg(conflicts_with_all = ["shard", "rebase"])]
    name: Option<String>,
    /// Only part K of N, for example 2/4; the results go to bugs/results/K-of-N.tsv
    #[arg(long, value_name = "K/N", conflicts_with = "rebase")]
    shard: Option<Shard>,
    /// Rewrite each patch, made for the commit OLD, so that it applies to HEAD (three-way merge)
    #[arg(long, value_name = "OLD")]
    rebase: Option<String>,
}

/// What the tests made of a bug.
#[derive(Debug, PartialEq, Eq)]
enum BugOutcome {
    Caught { by: String },
    Missed,
    DoesNotApply,
    DoesNotCompile,
}

impl BugOutcome {
    fn text(&self) -> &str {
        match self {
            Self::Caught { by } => by,
            Self::Missed => "NOT CAUGHT",
            Self::DoesNotApply => "THE PATCH DOES NOT APPLY",
            Self::DoesNotCompile => "THE PATCH DOES NOT COMPILE",
        }
    }
}

/// Exit code of `cargo nextest` when tests ran and some failed.
const SOME_TEST_FAILED: i32 = 100;

/// Tests every selected bug, prints a table, and fails unless each was caught.
pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<(), TaskError> {
    let mut patches = patch::read_all(&workspace.shell, arguments.name.as_deref())?;
    if let Some(old) = &arguments.rebase {
        return rebase::run(&workspace.shell, old, &patches);
    }
    if let Some(shard) = &arguments.shard {
        patches = shard.select(patches);
    }

    let sandbox = Sandbox::prepare(workspace)?;
    eprintln!("without a bug: the tests must pass");
    sandbox.require_passing_tests(&patches)?;

    let mut table = String::new();
    let mut failed = Vec::new();
    for patch in &patches {
        let stopwatch = Stopwatch::start();
        let verdict = sandbox.test(patch)?;
        let (name, tests, result) = (&patch.name, &patch.tests, verdict.text());
        print_line(&format!("{name:<48} {:>6.1} s  {tests:<17} {result}", stopwatch.seconds()));
        table.push_str(&format!("{name}\t{tests}\t{result}\n"));
        // After each bug, so that a run that is stopped keeps what it has found.
        if let Some(shard) = &arguments.shard {
            workspace.shell.write_file(format!("bugs/results/{}", shard.file_name()), &table)?;
        }
        if !matches!(verdict, BugOutcome::Caught { .. }) {
            failed.push(patch.name.as_str());
        }
    }
    if failed.is_empty() {
        print_line(&format!("bugs caught: {} of {}", patches.len(), patches.len()));
        return Ok(());
    }
    Err(TaskError::new(
        format!("{} of {} bugs were not caught: {}", failed.len(), patches.len(), failed.join(" ")),
        "write the test that catches it; for a patch that does not apply, run `cargo xtask bugs --rebase OLD`",
    ))
}

/// A copy of the working tree with a target folder of its own. Both are kept between runs, so that each bug rebuilds
/// only what it changes.
struct Sandbox<'a> {
    shell: &'a Shell,
    root: &'a Path,
    tree: PathBuf,
    target: PathBuf,
    nextest: PathBuf,
}

impl<'a> Sandbox<'a> {
    fn prepare(workspace: &'a Workspace) -> Result<Self, TaskError> {
        let (shell, folder) = (&workspace.shell, workspace.target.join("bugs"));
        let (tree, target) = (shell.create_dir(folder.join("tree"))?, folder.join("target"));
        let target = shell.create_dir(&target)?;
        // Some tests run tools that `cargo xtask test` installed.
        let (tools, link) = (workspace.target.join("tools"), target.join("tools"));
        if !link.exists() {
            let linked = std::os::unix::fs::symlink(tools, &link);
            linked.map_err(|error| {
                TaskError::new(format!("{}: {error}", link.display()), "remove that folder")
            })?;
        }
        Ok(Self { shell, root: &workspace.root, tree, target, nextest: NEXTEST.require(workspace)? })
    }

    /// A bug counts as caught only by a test that passes without it.
    fn require_passing_tests(&self, patches: &[Patch]) -> Result<(), TaskError> {
        refresh(self.shell, self.root, &self.tree)?;
        let names: BTreeSet<_> = patches.iter().map(|patch| patch.tests.as_str()).collect();
        let _inside = self.shell.push_dir(&self.tree);
        process::run(
            // A test that depends on the load of the machine may pass the second time.
            self.tests(names).args([
                "--status-level",
                "fail",
                "--final-status-level",
                "fail",
                "--retries",
                "1",
            ]),
            "make `cargo xtask test` pass first: a test that fails without a bug proves nothing",
        )
    }

    fn test(&self, patch: &Patch) -> Result<BugOutcome, TaskError> {
        refresh(self.shell, self.root, &self.tree)?;
        let _inside = self.shell.push_dir(&self.tree);
        let apply = self.shell.cmd("git").arg("apply").arg(&patch.file);
        // The copy lies inside the repository; without this, git would apply the patch to the repository itself.
        let apply = apply.env("GIT_CEILING_DIRECTORIES", self.tree.parent().unwrap_or(&self.tree));
        if process::run(apply, "").is_err() {
            return Ok(BugOutcome::DoesNotApply);
        }
        let tests = || self.tests([patch.tests.as_str()]);
        let (status, report) = run_with_report(tests().arg("--no-run"))?;
        if !status.success() {
            eprintln!("{report}");
            return Ok(BugOutcome::DoesNotCompile);
        }
        let arguments = ["--fail-fast", "--status-level", "fail", "--final-status-level", "none"];
        let (status, report) = run_with_report(tests().args(arguments))?;
        match status.code() {
            Some(0) => Ok(BugOutcome::Missed),
            Some(SOME_TEST_FAILED) => Ok(BugOutcome::Caught { by: first_failure(&report) }),
            _ => {
                eprintln!("{report}");
                let what = format!("the tests of {} did not run: {status}", patch.tests);
                Err(TaskError::new(what, "see above").with_exit_code(status.code()))
            }
        }
    }

    /// The tests that patches name, each as `CRATE` or `CRATE NAME`, in the copy.
    fn tests<'b>(&self, names: impl IntoIterator<Item = &'b str>) -> Cmd<'a> {
        let (shell, nextest) = (self.shell, &self.nextest);
        let mut tests = cmd!(shell, "{nextest} nextest run --locked --color never");
        for name in names {
            let (package, test) = name.split_once(' ').unwrap_or((name, ""));
            tests =
                tests.args(["--package", package, "-E", &format!("package({package}) & test(/.*{test}/)")]);
        }
        // Each bug compiles the core again. Optimising it would take longer than its tests.
        for name in ["core", "registrar", "client", "sim", "history"] {
            tests = tests.args(["--config", &format!("profile.dev.package.tenure-{name}.opt-level=1")]);
        }
        tests.env("CARGO_TARGET_DIR", &self.target)
    }
}

/// Runs to the end and returns what was written to standard error.
fn run_with_report(cmd: Cmd<'_>) -> Result<(ExitStatus, String), TaskError> {
    let mut command = process::without_cargo_variables(cmd);
    let output = command.stdout(Stdio::inherit()).output();
    let output = output.map_err(|error| process::not_started(&command, &error))?;
    Ok((output.status, String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// Makes `copy` hold exactly the tracked files of `root`, as they are in the working tree.
///
/// A file that is already the same is not written, so that cargo rebuilds only what differs.
fn refresh(shell: &Shell, root: &Path, copy: &Path) -> Result<(), TaskError> {
    let hint = "run this in a clone of the repository, with git installed";
    let names = process::output(cmd!(shell, "git -C {root} ls-files -z"), hint)?;
    let mut tracked = BTreeSet::new();
    // A file that is tracked, but deleted in the working tree, is not part of it.
    for file in names.split('\0').filter(|name| root.join(name).is_file()) {
        let (bytes, to) = (shell.read_binary_file(root.join(file))?, copy.join(file));
        if std::fs::read(&to).ok().as_ref() != Some(&bytes) {
            shell.write_file(&to, bytes)?;
        }
        tracked.insert(to);
    }
    for file in files_below(shell, copy)?.iter().filter(|file| !tracked.contains(*file)) {
        shell.remove_path(file)?;
    }
    Ok(())
}

/// The test in the first line such as `        FAIL [   0.004s] (3/9) tenure-core rules::time::tests::a`.
fn first_failure(report: &str) -> String {
    let line = Regex::new(r"(?m)^\s*([A-Z-]+) \[[^\]]*s\]\s+(?:\([^)]*\)\s*)?(.*)$").expect("a pattern");
    let mut failures =
        line.captures_iter(report).filter(|line| !["PASS", "SLOW", "LEAK"].contains(&&line[1]));
    failures.next().map_or("a test that the report does not name".to_owned(), |line| line[2].to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn first_failing_test_is_parsed_from_the_report() {
        let report = |line: &str| first_failure(&format!("    Starting 3 tests\n{line}\n"));
        for (line, expected) in [
            ("        FAIL [   0.004s] (3/9) tenure-core time::tests::a", "tenure-core time::tests::a"),
            ("        FAIL [   0.004s] tenure-core time::tests::a", "tenure-core time::tests::a"),
            ("     SIGABRT [   1.204s] (9/9) tenure-sim b", "tenure-sim b"),
            ("     TIMEOUT [ 600.000s] (─────) tenure-sim b", "tenure-sim b"),
            ("        PASS [   0.004s] (3/9) tenure-core c", "a test that the report does not name"),
        ] {
            assert_eq!(report(line), expected);
        }
    }

    #[test]
    fn refresh_copies_tracked_files_and_keeps_unchanged_ones() {
        let shell = Shell::new().expect("a shell");
        let folder = shell.create_temp_dir().expect("a folder");
        let (root, copy) = (folder.path().join("root"), folder.path().join("copy"));
        fs::create_dir_all(root.join("a")).expect("a folder");
        fs::create_dir_all(&copy).expect("a folder");
        fs::write(root.join("a/kept"), "kept").expect("a file");
        fs::write(root.join("changed"), "new").expect("a file");
        fs::write(root.join("untracked"), "").expect("a file");
        for arguments in [&["init", "--quiet"][..], &["add", "a/kept", "changed"]] {
            process::run(cmd!(shell, "git -C {root} {arguments...}"), "").expect("git");
        }

        refresh(&shell, &root, &copy).expect("a first copy");
        let written =
            |file: &str| fs::metadata(copy.join(file)).and_then(|data| data.modified()).expect("a time");
        let before = written("a/kept");
        fs::write(copy.join("changed"), "patched").expect("a file");
        fs::write(copy.join("added"), "by a patch").expect("a file");
        refresh(&shell, &root, &copy).expect("a second copy");

        assert_eq!(written("a/kept"), before);
        assert_eq!(fs::read_to_string(copy.join("changed")).expect("restored"), "new");
        assert!(!copy.join("added").exists() && !copy.join("untracked").exists());
    }
}
