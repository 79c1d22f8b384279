//! Which rows of the requirements the tests name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use crate::process::{TaskError, print_line};
use crate::source_lines::{SourceLines, is_test_file};
use crate::workspace::Workspace;

/// Rows that are done. Once a row stands here, a test must go on naming it.
const DONE: &[(&str, u32, u32)] =
    &[("S0", 1, 85), ("S1", 1, 48), ("S2", 1, 111), ("S3", 1, 35), ("S4", 1, 63), ("O", 1, 20)];

/// Where the rows are kept.
const REQUIREMENTS: &str = "docs/requirements.md";

/// A range in a test that is wider than this says nothing about any of its rows.
const WIDEST_RANGE: u32 = 30;

/// Shows which rows of docs/requirements.md no test names
///
/// A test names a row by its number, in a comment or in its own name: `S2-41`, or `S2-59 to S2-72`
/// (also `S2-59..=72`, at most 30 rows wide). What counts: test modules, test files, files in a
/// folder `tests`, and doc comments whose example runs.
/// Fails when a row that is done is no longer named.
#[derive(clap::Args)]
pub struct Arguments {
    /// Show only the counts
    #[arg(long)]
    counts: bool,
}

/// One row: its face and its number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequirementId {
    group: String,
    number: u32,
}

impl fmt::Display for RequirementId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.group, self.number)
    }
}

/// Prints the report, with every row that is not named unless only counts are wanted.
pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<(), TaskError> {
    report(workspace, !arguments.counts)
}

/// Prints how many rows no test names, and with `list` which; a problem if one of them is done.
pub fn report(workspace: &Workspace, list: bool) -> Result<(), TaskError> {
    let ids = parse_requirements(&workspace.shell.read_file(REQUIREMENTS)?);
    let named = find_named_in_tests(workspace)?;
    let mut by_face: BTreeMap<&str, Vec<&RequirementId>> = BTreeMap::new();
    ids.iter().for_each(|row| by_face.entry(&row.group).or_default().push(row));

    print_line(&format!("rows of {REQUIREMENTS} that no test names:"));
    for (face, stated) in by_face {
        let missing: Vec<_> = stated.iter().copied().filter(|row| !named.contains(row)).collect();
        print_line(&format!("  {face:<3} {:>4} of {:>4}", missing.len(), stated.len()));
        if list && !missing.is_empty() {
            print_line(&format!("      {}", format_ranges(&missing)));
        }
    }
    check_done_requirements(&ids, &named)
}

/// The rows that the requirements state: lines such as `- S2-41 [M] …`.
fn parse_requirements(text: &str) -> BTreeSet<RequirementId> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("- "));
    let captures =
        lines.filter_map(|line| REQUIREMENT_ID.captures(line).filter(|row| row.get_match().start() == 0));
    captures
        .filter_map(|row| Some(RequirementId { group: row[1].to_owned(), number: row[2].parse().ok()? }))
        .collect()
}

fn check_done_requirements(
    stated: &BTreeSet<RequirementId>,
    named: &BTreeSet<RequirementId>,
) -> Result<(), TaskError> {
    let done = DONE.iter().flat_map(|(face, first, last)| range(face, *first, *last)).collect::<Vec<_>>();
    let unstated: Vec<_> = done.iter().filter(|row| !stated.contains(row)).collect();
    if !unstated.is_empty() {
        return Err(TaskError::new(
            format!("{REQUIREMENTS} does not state {}", format_ranges(&unstated)),
            "put the rows back: they keep their numbers, because tests and documents name them; \
             or mend the list DONE in xtask/src/requirements.rs",
        ));
    }
    let unnamed: Vec<_> = done.iter().filter(|row| !named.contains(row)).collect();
    if !unnamed.is_empty() {
        return Err(TaskError::new(
            format!("no test names these rows, which are done: {}", format_ranges(&unnamed)),
            "name each in the test that shows it (`// S2-41`), or write that test",
        ));
    }
    Ok(())
}

/// Rows in their order, neighbours as a range.
fn format_ranges(ids: &[&RequirementId]) -> String {
    let is_next = |previous: &&RequirementId, right: &&RequirementId| {
        previous.group == right.group && previous.number + 1 == right.number
    };
    let runs = ids.chunk_by(is_next).map(|run| match run {
        [first, .., last] => format!("{first} to {last}"),
        _ => run[0].to_string(),
    });
    runs.collect::<Vec<_>>().join(", ")
}

/// Every row that some test in the repository names.
fn find_named_in_tests(workspace: &Workspace) -> Result<BTreeSet<RequirementId>, TaskError> {
    let sources = workspace.sources("", &["rs", "py", "js", "mjs", "ts", "sh"])?;
    // The tests of these tasks use made-up rows as examples.
    let sources = sources.iter().filter(|(place, _)| !place.starts_with("xtask"));
    Ok(sources.flat_map(|(place, text)| requirement_ids_in(&test_part(place, text))).collect())
}

/// The part of a file that is a test; empty if nothing is.
fn test_part(place: &Path, text: &str) -> String {
    if is_test_file(place) {
        return text.to_owned();
    }
    if place.extension().is_none_or(|extension| extension != "rs") {
        return String::new();
    }
    let lines: Vec<_> = SourceLines::parse(text).tests.into_iter().map(|(_, line)| line).collect();
    lines.join("\n")
}

static REQUIREMENT_ID: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b(O|S[0-9])-([0-9]+)\b").expect("a pattern"));
/// What makes a range of the row before it.
static END_OF_RANGE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\s*(?:\.\.=?|to|–)\s*(?:(O|S[0-9])-)?([0-9]+)\b").expect("a pattern"));

/// The rows that `text` names, one by one or as a range.
fn requirement_ids_in(text: &str) -> BTreeSet<RequirementId> {
    let mut ids = BTreeSet::new();
    for found in REQUIREMENT_ID.captures_iter(text) {
        let (face, Ok(first)) = (&found[1], found[2].parse::<u32>()) else { continue };
        ids.insert(RequirementId { group: face.to_owned(), number: first });
        let Some(end) = END_OF_RANGE.captures(&text[found.get_match().end()..]) else { continue };
        let is_same_face = end.get(1).is_none_or(|other| other.as_str() == face);
        let last =
            end[2].parse().ok().filter(|last| is_same_face && *last <= first.saturating_add(WIDEST_RANGE));
        ids.extend(last.into_iter().flat_map(|last| range(face, first, last)));
    }
    ids
}

fn range(face: &str, first: u32, last: u32) -> impl Iterator<Item = RequirementId> {
    (first..=last).map(move |number| RequirementId { group: face.to_owned(), number })
}

#[cfg(test)]
#[path = "requirements_tests.rs"]
mod tests;
