//! Planted bugs: a test that was never seen to fail proves nothing.

mod patch;
mod rebase;
mod shard;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::copy;
use crate::problem::Problem;
use crate::process::{self, Stopwatch, say};
use crate::tools::NEXTEST;
use crate::workspace::Workspace;

use patch::Patch;
use shard::Shard;

/// Plant each bug of bugs/*.patch in a copy of the working tree and check that a test fails
///
/// A patch is a unified diff below two lines: `# what it breaks` and `# tests: CRATE`, the crate whose tests
/// catch it. Only the tests of that crate run, unchanged. The command fails for a bug that no test catches, for a patch
/// that no longer applies, and for one that does not compile. The working tree itself is never touched.
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
enum Verdict {
    Caught { by: String },
    Missed,
    DoesNotApply,
    DoesNotCompile,
}

impl Verdict {
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
pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<(), Problem> {
    let folder = workspace.root.join("bugs");
    let mut patches = patch::read_all(&folder, arguments.name.as_deref())?;
    if let Some(old) = &arguments.rebase {
        return rebase::run(&workspace.root, old, &patches);
    }
    if let Some(shard) = &arguments.shard {
        patches = shard.select(patches);
    }
    let results = arguments.shard.as_ref().map(|shard| folder.join("results").join(shard.file_name()));

    let sandbox = Sandbox::prepare(workspace)?;
    eprintln!("without a bug: the tests must pass");
    sandbox.require_passing_tests(&patches)?;

    let mut table = String::new();
    let mut failed = Vec::new();
    for patch in &patches {
        let stopwatch = Stopwatch::start();
        let verdict = sandbox.test(patch)?;
        let (name, tests, result) = (&patch.name, &patch.tests, verdict.text());
        say(&format!("{name:<48} {:>6.1} s  {tests:<17} {result}", stopwatch.seconds()));
        table.push_str(&format!("{name}\t{tests}\t{result}\n"));
        // After each bug, so that a run that is stopped keeps what it has found.
        write_results(results.as_ref(), &table)?;
        if !matches!(verdict, Verdict::Caught { .. }) {
            failed.push(patch.name.as_str());
        }
    }
    if failed.is_empty() {
        say(&format!("bugs caught: {} of {}", patches.len(), patches.len()));
        return Ok(());
    }
    Err(Problem::new(
        format!("{} of {} bugs were not caught: {}", failed.len(), patches.len(), failed.join(" ")),
        "the tests would let such a bug pass, or the patch no longer fits the code",
        "write the test that catches it; for a patch that does not apply, run `cargo xtask bugs --rebase OLD`",
    ))
}

fn write_results(file: Option<&PathBuf>, table: &str) -> Result<(), Problem> {
    let Some(file) = file else { return Ok(()) };
    let folder = file.parent().unwrap_or(file);
    fs::create_dir_all(folder).map_err(|error| Problem::file(folder, &error))?;
    fs::write(file, table).map_err(|error| Problem::file(file, &error))
}

/// A copy of the working tree with a target folder of its own. Both are kept between runs, so that each bug rebuilds
/// only what it changes.
struct Sandbox {
    root: PathBuf,
    tree: PathBuf,
    target: PathBuf,
    nextest: PathBuf,
}

impl Sandbox {
    fn prepare(workspace: &Workspace) -> Result<Self, Problem> {
        let folder = workspace.target.join("bugs");
        let tree = folder.join("tree");
        fs::create_dir_all(&tree).map_err(|error| Problem::file(&tree, &error))?;
        let nextest = NEXTEST.require(workspace)?;
        Ok(Self { root: workspace.root.clone(), tree, target: folder.join("target"), nextest })
    }

    /// A bug counts as caught only by a test that passes without it.
    fn require_passing_tests(&self, patches: &[Patch]) -> Result<(), Problem> {
        copy::refresh(&self.root, &self.tree)?;
        let crates: BTreeSet<_> = patches.iter().map(|patch| patch.tests.as_str()).collect();
        process::succeed(
            self.tests(crates).args(["--status-level", "fail", "--final-status-level", "fail"]),
            "the tests fail already without a bug, so a failure would prove nothing",
            "make `cargo xtask test` pass first",
        )
    }

    fn test(&self, patch: &Patch) -> Result<Verdict, Problem> {
        copy::refresh(&self.root, &self.tree)?;
        let mut apply = process::command("git");
        // The copy lies inside the repository; without this, git would apply the patch to the repository itself.
        apply.env("GIT_CEILING_DIRECTORIES", self.tree.parent().unwrap_or(&self.tree));
        apply.arg("apply").arg(&patch.file).current_dir(&self.tree);
        if !process::status(&mut apply)?.success() {
            return Ok(Verdict::DoesNotApply);
        }
        let mut report = Vec::new();
        let keep = |report: &mut Vec<String>, line: &str| report.push(line.to_owned());
        let tests = || self.tests([patch.tests.as_str()]);
        if !process::watch_errors(tests().arg("--no-run"), |line| keep(&mut report, line))?.success() {
            eprintln!("{}", report.join("\n"));
            return Ok(Verdict::DoesNotCompile);
        }
        report.clear();
        let mut tests = tests();
        tests.args(["--fail-fast", "--status-level", "fail", "--final-status-level", "none"]);
        let status = process::watch_errors(&mut tests, |line| keep(&mut report, line))?;
        match status.code() {
            Some(0) => Ok(Verdict::Missed),
            Some(SOME_TEST_FAILED) => Ok(Verdict::Caught { by: first_failure(&report) }),
            _ => {
                eprintln!("{}", report.join("\n"));
                let means = "the tests did not run, so nothing is known about this bug";
                Err(process::failed(&tests, status, means, "see above"))
            }
        }
    }

    /// The tests of `crates`.
    fn tests<'a>(&self, crates: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = process::command(&self.nextest);
        command.args(["nextest", "run", "--locked", "--color", "never"]);
        for name in crates {
            command.args(["--package", name]);
        }
        // Each bug compiles the core again. Optimising it would take longer than its tests.
        for name in ["core", "registrar", "client", "sim", "history"] {
            command.args(["--config", &format!("profile.dev.package.tenure-{name}.opt-level=1")]);
        }
        command.env("CARGO_TARGET_DIR", &self.target).current_dir(&self.tree);
        command
    }
}

/// The test in the first line such as `        FAIL [   0.004s] (3/9) tenure-core rules::time::tests::a`.
fn first_failure(report: &[String]) -> String {
    let failures = report.iter().filter_map(|line| {
        let (verdict, rest) = line.trim_start().split_once(" [")?;
        let is_failure =
            !verdict.is_empty() && verdict.chars().all(|letter| letter.is_ascii_uppercase() || letter == '-');
        let (_, rest) = rest.split_once("s] ")?;
        let test = rest.trim_start();
        let test = if test.starts_with('(') { test.split_once(')')?.1.trim_start() } else { test };
        (is_failure && !["PASS", "SLOW", "LEAK"].contains(&verdict)).then(|| test.to_owned())
    });
    failures.into_iter().next().unwrap_or_else(|| "a test that the report does not name".to_owned())
}

#[cfg(test)]
mod tests {
    use super::first_failure;

    #[test]
    fn the_first_failing_test_is_read_from_the_report() {
        let report = |line: &str| first_failure(&["    Starting 3 tests".to_owned(), line.to_owned()]);
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
}
