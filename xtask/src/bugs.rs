//! Deliberate bugs: tests that nobody has seen fail prove nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::copy;
use crate::problem::Problem;
use crate::process::{self, Stopwatch, say};
use crate::tools::NEXTEST;
use crate::workspace::Workspace;

/// Puts each bug of bugs/*.patch into a copy of the working tree and sees that a test fails
///
/// A patch is a unified diff whose first line says what it breaks: `# a lease outlives its expiry`.
/// The tests are the unchanged ones. Fails for a bug that no test catches, for a patch that no longer
/// applies, and for one that does not compile. The working tree itself is never touched.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only the bug of this name: bugs/NAME.patch
    name: Option<String>,
}

/// One patch.
struct Bug {
    name: String,
    breaks: String,
    patch: PathBuf,
}

/// How the tests took a bug.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Caught { by: String },
    Missed,
    DoesNotApply,
    DoesNotCompile,
}

/// What `cargo nextest` ends with when tests were run and some failed.
const SOME_TEST_FAILED: i32 = 100;

/// Tries every bug, prints a table, and fails unless each was caught.
pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<(), Problem> {
    let bugs = read_bugs(&workspace.root.join("bugs"), arguments.name.as_deref())?;
    let garden = Garden::prepare(workspace)?;
    eprintln!("without any bug: the tests must pass");
    garden.require_sound_tests()?;

    say(&format!("{:<32} {:<56} {:>7}  caught by", "bug", "breaks", "seconds"));
    let mut uncaught = Vec::new();
    for bug in &bugs {
        let stopwatch = Stopwatch::start();
        let verdict = garden.test(bug)?;
        let result = match &verdict {
            Verdict::Caught { by } => by.as_str(),
            Verdict::Missed => "NOTHING",
            Verdict::DoesNotApply => "– the patch no longer applies",
            Verdict::DoesNotCompile => "– the patch does not compile",
        };
        say(&format!("{:<32} {:<56} {:>7.1}  {result}", bug.name, bug.breaks, stopwatch.seconds()));
        if !matches!(verdict, Verdict::Caught { .. }) {
            uncaught.push(bug.name.as_str());
        }
    }
    if uncaught.is_empty() {
        say(&format!("bugs caught: {} of {}", bugs.len(), bugs.len()));
        return Ok(());
    }
    Err(Problem::new(
        format!("{} of {} bugs were not caught: {}", uncaught.len(), bugs.len(), uncaught.join(" ")),
        "the tests would let such a mistake pass, or the patch has fallen behind the code",
        "write the test that catches it; for a patch that does not apply or compile, write the patch anew",
    ))
}

/// The patches in `folder`, by name.
fn read_bugs(folder: &Path, only: Option<&str>) -> Result<Vec<Bug>, Problem> {
    let mut bugs = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| Problem::file(folder, &error))? {
        let patch = entry.map_err(|error| Problem::file(folder, &error))?.path();
        let name = patch.file_name().and_then(|name| name.to_str()?.strip_suffix(".patch"));
        let Some(name) = name.map(str::to_owned) else { continue };
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let text = fs::read_to_string(&patch).map_err(|error| Problem::file(&patch, &error))?;
        bugs.push(Bug { breaks: what_it_breaks(&text, &name)?, name, patch });
    }
    bugs.sort_by(|left, right| left.name.cmp(&right.name));
    if bugs.is_empty() {
        return Err(Problem::new(
            only.map_or("bugs/ holds no patch".to_owned(), |name| format!("there is no bugs/{name}.patch")),
            "there is nothing to try",
            "see `ls bugs`; a new one is made with `git diff > bugs/NAME.patch`",
        ));
    }
    Ok(bugs)
}

fn what_it_breaks(text: &str, name: &str) -> Result<String, Problem> {
    let line = text.lines().next().and_then(|line| line.strip_prefix("# ")).map(str::trim);
    line.filter(|line| !line.is_empty()).map(str::to_owned).ok_or_else(|| {
        Problem::new(
            format!("bugs/{name}.patch does not begin with a line `# what it breaks`"),
            "a reader cannot know which promise the bug breaks",
            "put that line above the diff; git ignores it",
        )
    })
}

/// Where the bugs live: a copy of the working tree with a target folder of its own, both kept between
/// runs, so that each bug rebuilds only what it changes.
struct Garden {
    root: PathBuf,
    tree: PathBuf,
    target: PathBuf,
    nextest: PathBuf,
}

impl Garden {
    fn prepare(workspace: &Workspace) -> Result<Self, Problem> {
        let folder = workspace.target.join("bugs");
        let tree = folder.join("tree");
        fs::create_dir_all(&tree).map_err(|error| Problem::file(&tree, &error))?;
        let nextest = NEXTEST.require(workspace)?;
        Ok(Self { root: workspace.root.clone(), tree, target: folder.join("target"), nextest })
    }

    /// A bug is caught only by a test that passes without it.
    fn require_sound_tests(&self) -> Result<(), Problem> {
        copy::refresh(&self.root, &self.tree)?;
        process::succeed(
            self.tests().args(["--status-level", "fail", "--final-status-level", "fail"]),
            "the tests fail already without a bug, so a failure would prove nothing",
            "make `cargo xtask test` pass first",
        )
    }

    fn test(&self, bug: &Bug) -> Result<Verdict, Problem> {
        copy::refresh(&self.root, &self.tree)?;
        let mut apply = process::command("git");
        // The copy lies inside the repository; without this, git would look for the files in the repository itself.
        apply.env("GIT_CEILING_DIRECTORIES", self.tree.parent().unwrap_or(&self.tree));
        apply.arg("apply").arg(&bug.patch).current_dir(&self.tree);
        if !process::status(&mut apply)?.success() {
            return Ok(Verdict::DoesNotApply);
        }
        let mut report = Vec::new();
        let keep = |report: &mut Vec<String>, line: &str| report.push(line.to_owned());
        if !process::watch_errors(self.tests().arg("--no-run"), |line| keep(&mut report, line))?.success() {
            eprintln!("{}", report.join("\n"));
            return Ok(Verdict::DoesNotCompile);
        }
        report.clear();
        let mut tests = self.tests();
        tests.args(["--fail-fast", "--status-level", "fail", "--final-status-level", "none"]);
        let status = process::watch_errors(&mut tests, |line| keep(&mut report, line))?;
        match status.code() {
            Some(0) => Ok(Verdict::Missed),
            Some(SOME_TEST_FAILED) => Ok(Verdict::Caught { by: first_failure(&report) }),
            _ => {
                eprintln!("{}", report.join("\n"));
                let means = "the tests were not run, so nothing is known about this bug";
                Err(process::failed(&tests, status, means, "see above"))
            }
        }
    }

    /// The tests of everything but these tasks, which would see the text of a patch and not what it does.
    fn tests(&self) -> Command {
        let mut command = process::command(&self.nextest);
        command.args(["nextest", "run", "--workspace", "--exclude", "xtask", "--locked", "--color", "never"]);
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
    use super::*;

    #[test]
    fn the_first_failing_test_is_found_in_the_report() {
        let report = |line: &str| first_failure(&["    Starting 3 tests".to_owned(), line.to_owned()]);
        assert_eq!(
            report("        FAIL [   0.004s] (3/9) tenure-core time::tests::a"),
            "tenure-core time::tests::a"
        );
        assert_eq!(
            report("        FAIL [   0.004s] tenure-core time::tests::a"),
            "tenure-core time::tests::a"
        );
        assert_eq!(report("     SIGABRT [   1.204s] (9/9) tenure-sim b"), "tenure-sim b");
        assert_eq!(report("     TIMEOUT [ 600.000s] (─────) tenure-sim b"), "tenure-sim b");
        assert_eq!(
            report("        PASS [   0.004s] (3/9) tenure-core c"),
            "a test that the report does not name"
        );
    }

    #[test]
    fn a_patch_must_say_what_it_breaks() {
        let breaks =
            what_it_breaks("# a lease outlives its expiry\n--- a/x\n", "late").expect("a first line");
        assert_eq!(breaks, "a lease outlives its expiry");
        for text in ["", "# \n", "--- a/x\n", "#late\n"] {
            assert!(what_it_breaks(text, "late").is_err(), "{text:?}");
        }
    }
}
