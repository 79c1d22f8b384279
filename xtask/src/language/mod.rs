//! The language ratchet: words that a reader from the field would not know, in names and in prose. Each folder has
//! counts that only ever fall.

mod definitions;
mod lexer;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use xshell::cmd;

pub use self::lexer::{CodeAndProse, FileLanguage, descriptions};
pub use self::words::{Checker, Occurrence, WordKind};
use self::words::{Exception, WordLists};
use crate::process::{self, TaskError, print_line};
use crate::workspace::Workspace;

/// Count private words in names and prose, and fail if a folder has more of them than its limit
///
/// Each folder has three counts: identifiers where they are defined; names of files and folders; and prose, which is
/// comments, string literals, Markdown, and the descriptions in docs/openapi.json. The words, the limits and the
/// exceptions are in xtask/language.toml.
#[derive(clap::Args)]
pub struct Arguments {
    /// Print each place, in FOLDER or in the whole repository
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, default_missing_value = ".", conflicts_with = "write")]
    list: Option<PathBuf>,
    /// Lower the limits in xtask/language.toml to the counts of today; never raise one
    #[arg(long)]
    write: bool,
}

const FILE: &str = "xtask/language.toml";

/// xtask/language.toml, which explains its fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Committed {
    words: WordLists,
    exceptions: Vec<Exception>,
    counts: Counts,
}

/// Private words by folder and kind. A missing entry is 0.
pub type Counts = BTreeMap<String, BTreeMap<WordKind, usize>>;

fn count_in(counts: &Counts, folder: &str, kind: WordKind) -> usize {
    counts.get(folder).and_then(|kinds| kinds.get(&kind)).copied().unwrap_or_default()
}

/// Compares the counts with their limits, lists places, or lowers the limits.
pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<(), TaskError> {
    let (mut checker, mut limits) = load(workspace)?;
    let occurrences = checker.occurrences(workspace)?;
    if let Some(folder) = &arguments.list {
        let is_listed =
            |occurrence: &&Occurrence| folder == Path::new(".") || occurrence.path.starts_with(folder);
        occurrences.iter().filter(is_listed).for_each(|occurrence| print_line(&occurrence.to_string()));
        return Ok(());
    }
    let counts = count(&occurrences);
    if arguments.write {
        limits = lower(&limits, &counts);
        let text = workspace.shell.read_file(FILE)?;
        workspace.shell.write_file(FILE, with_counts(&text, &limits)?)?;
    }
    show(&counts, &limits);
    check_exceptions(&checker.unused_exceptions())?;
    check_limits(workspace, &occurrences, &counts, &limits)
}

/// Compares the counts with their limits.
pub fn check(workspace: &Workspace) -> Result<(), TaskError> {
    run(workspace, &Arguments { list: None, write: false })
}

/// The checker and the limits of xtask/language.toml.
pub fn load(workspace: &Workspace) -> Result<(Checker, Counts), TaskError> {
    let committed: Committed = workspace.read_toml(FILE)?;
    Ok((Checker::new(committed.words, committed.exceptions), committed.counts))
}

/// The folder whose counts a path belongs to; `.` for the root and its hidden folders.
fn folder_of(path: &Path) -> String {
    let folders: Vec<_> = path.parent().into_iter().flatten().map(|name| name.to_string_lossy()).collect();
    match folders.as_slice() {
        [] => ".".to_owned(),
        [first, ..] if first.starts_with('.') => ".".to_owned(),
        [first, second, ..] if ["crates", "testing", "clients", "docs"].contains(&first.as_ref()) => {
            format!("{first}/{second}")
        }
        [first, ..] => first.clone().into_owned(),
    }
}

fn count(occurrences: &[Occurrence]) -> Counts {
    let mut counts = Counts::new();
    for occurrence in occurrences {
        *counts.entry(folder_of(&occurrence.path)).or_default().entry(occurrence.kind).or_default() += 1;
    }
    counts
}

/// The limits, each lowered to the count where that is less.
fn lower(limits: &Counts, counts: &Counts) -> Counts {
    let mut lowered = Counts::new();
    for (folder, kinds) in limits {
        for (kind, limit) in kinds {
            let limit = count_in(counts, folder, *kind).min(*limit);
            if limit > 0 {
                lowered.entry(folder.clone()).or_default().insert(*kind, limit);
            }
        }
    }
    lowered
}

/// The text of xtask/language.toml with other limits. They are the end of the file.
fn with_counts(text: &str, counts: &Counts) -> Result<String, TaskError> {
    const HEADER: &str = "\n[counts]\n";
    let Some(end) = text.find(HEADER).map(|start| start + HEADER.len()) else {
        return Err(TaskError::new(format!("{FILE} has no table `[counts]`"), "add it as the last table"));
    };
    let mut text = text[..end].to_owned();
    for (folder, kinds) in counts {
        let kinds: Vec<_> = kinds.iter().map(|(kind, count)| format!("{} = {count}", kind.name())).collect();
        writeln!(text, "\"{folder}\" = {{ {} }}", kinds.join(", ")).expect("writing into a string");
    }
    Ok(text)
}

/// Prints a row per folder, and the limits that can be lowered.
fn show(counts: &Counts, limits: &Counts) {
    let row = |name: &str, cells: [String; 3]| {
        print_line(&format!("{name:<26} {:>11} {:>11} {:>11}", cells[0], cells[1], cells[2]));
    };
    row("folder", WordKind::ALL.map(|kind| kind.name().to_owned()));
    for folder in counts.keys() {
        row(folder, WordKind::ALL.map(|kind| count_in(counts, folder, kind).to_string()));
    }
    let total = |kind| counts.values().filter_map(|kinds| kinds.get(&kind)).sum::<usize>();
    row("total", WordKind::ALL.map(|kind| total(kind).to_string()));
    for (folder, kind, limit) in entries(limits) {
        let count = count_in(counts, folder, kind);
        if count < limit {
            let kind = kind.name();
            print_line(&format!(
                "{folder}: {kind}: {count} is less than {limit}; run `cargo xtask language --write`"
            ));
        }
    }
}

fn entries(counts: &Counts) -> impl Iterator<Item = (&str, WordKind, usize)> {
    let folders = counts.iter();
    folders.flat_map(|(folder, kinds)| kinds.iter().map(|(kind, count)| (folder.as_str(), *kind, *count)))
}

fn check_exceptions(unused: &[String]) -> Result<(), TaskError> {
    if unused.is_empty() {
        return Ok(());
    }
    Err(TaskError::new(
        format!("exceptions in {FILE} that match nothing:\n  {}", unused.join("\n  ")),
        "remove them",
    ))
}

/// How many places a violation shows, if the new ones are unknown.
const SHOWN: usize = 20;

fn check_limits(
    workspace: &Workspace,
    occurrences: &[Occurrence],
    counts: &Counts,
    limits: &Counts,
) -> Result<(), TaskError> {
    let violations: Vec<_> =
        entries(counts).filter(|(folder, kind, count)| *count > count_in(limits, folder, *kind)).collect();
    if violations.is_empty() {
        return Ok(());
    }
    let new_lines = new_lines(workspace);
    let mut text = String::new();
    for (folder, kind, count) in violations {
        let limit = count_in(limits, folder, kind);
        write!(text, "\n  {folder}: {}: {count} is more than {limit}", kind.name()).expect("a string");
        let all = occurrences.iter().filter(|found| found.kind == kind && folder_of(&found.path) == folder);
        let (new, old): (Vec<_>, Vec<_>) =
            all.partition(|found| new_lines.contains(&(found.path.clone(), found.line)));
        for found in if new.is_empty() { old } else { new }.iter().take(SHOWN) {
            write!(text, "\n    {found}").expect("a string");
        }
    }
    Err(TaskError::new(
        format!("a folder has more private words than its limit in {FILE}:{text}"),
        "use the words of the field, see CONTRIBUTING.md; a word that must stay gets an exception with its reason; \
         `cargo xtask language --list FOLDER` prints every place",
    ))
}

/// The lines added since the limits were last committed; empty if git cannot tell.
fn new_lines(workspace: &Workspace) -> BTreeSet<(PathBuf, usize)> {
    let (shell, hint) = (&workspace.shell, "");
    let last = process::output(cmd!(shell, "git log -1 --format=%H -- {FILE}"), hint).unwrap_or_default();
    let last = if last.trim().is_empty() { "HEAD" } else { last.trim() };
    let diff = cmd!(shell, "git diff --no-color --no-ext-diff --unified=0 {last}");
    added_lines(&process::output(diff, hint).unwrap_or_default())
}

/// The added lines of a diff without context.
fn added_lines(diff: &str) -> BTreeSet<(PathBuf, usize)> {
    let (mut added, mut path) = (BTreeSet::new(), PathBuf::new());
    for line in diff.lines() {
        if let Some(name) = line.strip_prefix("+++ b/") {
            path = PathBuf::from(name);
        } else if let Some((_, hunk)) = line.strip_prefix("@@ ").and_then(|rest| rest.split_once(" +")) {
            let range = hunk.split(' ').next().unwrap_or_default();
            let (first, length) = range.split_once(',').unwrap_or((range, "1"));
            let (first, length): (usize, usize) =
                (first.parse().unwrap_or_default(), length.parse().unwrap_or_default());
            added.extend((first..first + length).map(|line| (path.clone(), line)));
        }
    }
    added
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_and_documentation_folders_are_counted_separately() {
        for (path, folder) in [
            ("README.md", "."),
            (".config/nextest.toml", "."),
            ("crates/a/src/b/c.rs", "crates/a"),
            ("crates/a/benches/b.rs", "crates/a"),
            ("xtask/src/a.rs", "xtask"),
            ("clients/python/src/a.py", "clients/python"),
            ("docs/openapi.json", "docs"),
            ("docs/guides/a.md", "docs/guides"),
        ] {
            assert_eq!(folder_of(Path::new(path)), folder, "{path}");
        }
    }

    #[test]
    fn limits_are_lowered_but_not_raised() {
        let text = "a = 1 # why\n\n[counts]\n\"x\" = { identifiers = 5, files = 1, prose = 3 }\n\"y\" = { prose = 1 }\n";
        let counts = |text: &str| toml::from_str::<Counts>(text).expect("counts");
        let limits = counts("x = { identifiers = 5, files = 1, prose = 3 }\ny = { prose = 1 }");
        let lowered = lower(&limits, &counts("x = { identifiers = 4, prose = 9 }\nz = { prose = 1 }"));
        let written = with_counts(text, &lowered).expect("a table");
        assert_eq!(written, "a = 1 # why\n\n[counts]\n\"x\" = { identifiers = 4, prose = 3 }\n");
    }

    #[test]
    fn growth_is_rejected_with_folder_words_and_places() {
        let workspace = Workspace::find().expect("the repository");
        let path = PathBuf::from("crates/a/b.rs");
        let (word, identifier) = ("blob".to_owned(), "a_blob".to_owned());
        let occurrences = [Occurrence { kind: WordKind::Identifiers, path, line: 7, word, identifier }];
        let check = |limits: &str| {
            let limits = toml::from_str(limits).expect("limits");
            check_limits(&workspace, &occurrences, &count(&occurrences), &limits)
        };
        assert!(check("'crates/a' = { identifiers = 1 }").is_ok());
        let problem = check("'crates/a' = { prose = 1 }").expect_err("growth").to_string();
        assert!(problem.contains("crates/a: identifiers: 1 is more than 0\n"), "{problem}");
        assert!(problem.contains("crates/a/b.rs:7: blob in `a_blob`\nhint: "), "{problem}");
    }

    #[test]
    fn added_lines_of_a_diff_are_found() {
        let diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@ fn\n-a\n+b\n@@ -3,0 +5,2 @@\n+c\n+d\n--- a/y\n+++ b/y\n@@ -2,2 +1,0 @@\n-e\n";
        let lines = added_lines(diff);
        assert_eq!(lines, [1, 5, 6].map(|line| (PathBuf::from("x"), line)).into());
    }
}
