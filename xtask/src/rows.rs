//! Which rows of the requirements the tests name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use crate::problem::Problem;
use crate::process::say;
use crate::source::{Source, is_test_file};
use crate::workspace::{Workspace, files_below};

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
pub struct Row {
    face: String,
    number: u32,
}

impl fmt::Display for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.face, self.number)
    }
}

/// Prints the report, with every row that is not named unless only counts are wanted.
pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<(), Problem> {
    report(workspace, !arguments.counts)
}

/// Prints how many rows no test names, and with `list` which; a problem if one of them is done.
pub fn report(workspace: &Workspace, list: bool) -> Result<(), Problem> {
    let text = workspace.read(REQUIREMENTS).map_err(|problem| {
        Problem::new(
            format!("{REQUIREMENTS} cannot be read\n{problem}"),
            "nobody can say which rows the tests show",
            format!("restore {REQUIREMENTS}; each row is a line that starts with `- S0-1 ` or the like"),
        )
    })?;
    let rows = stated(&text);
    let named = named_by_tests(workspace)?;

    say(&format!("rows of {REQUIREMENTS} that no test names:"));
    for (face, rows) in by_face(&rows) {
        let missing: Vec<_> = rows.iter().copied().filter(|row| !named.contains(row)).collect();
        say(&format!("  {face:<3} {:>4} of {:>4}", missing.len(), rows.len()));
        if list && !missing.is_empty() {
            say(&format!("      {}", shown(&missing)));
        }
    }
    check_done(&rows, &named)
}

/// The rows that the requirements state: lines such as `- S2-41 [M] …`.
fn stated(text: &str) -> BTreeSet<Row> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("- "));
    lines.filter_map(|line| Some(parse_row(line)?.0)).collect()
}

fn by_face(rows: &BTreeSet<Row>) -> BTreeMap<&str, Vec<&Row>> {
    let mut faces: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        faces.entry(&row.face).or_default().push(row);
    }
    faces
}

fn check_done(stated: &BTreeSet<Row>, named: &BTreeSet<Row>) -> Result<(), Problem> {
    let done: Vec<_> = DONE
        .iter()
        .flat_map(|(face, first, last)| {
            (*first..=*last).map(|number| Row { face: (*face).to_owned(), number })
        })
        .collect();
    let unstated: Vec<_> = done.iter().filter(|row| !stated.contains(row)).collect();
    if !unstated.is_empty() {
        return Err(Problem::new(
            format!("{REQUIREMENTS} does not state {}", shown(&unstated)),
            "rows keep their numbers for ever, because tests and documents name them",
            format!("put the rows back into {REQUIREMENTS}, or mend the list DONE in xtask/src/rows.rs"),
        ));
    }
    let unnamed: Vec<_> = done.iter().filter(|row| !named.contains(row)).collect();
    if !unnamed.is_empty() {
        return Err(Problem::new(
            format!("no test names these rows, which are done: {}", shown(&unnamed)),
            "what was shown once is shown no more",
            "name each in the test that shows it (`// S2-41`), or write that test",
        ));
    }
    Ok(())
}

/// Rows in their order, neighbours as a range.
fn shown(rows: &[&Row]) -> String {
    let is_next = |left: &&Row, right: &&Row| left.face == right.face && left.number + 1 == right.number;
    let runs = rows.chunk_by(is_next).map(|run| match run {
        [first, .., last] => format!("{first} to {last}"),
        _ => run[0].to_string(),
    });
    runs.collect::<Vec<_>>().join(", ")
}

/// Every row that some test in the repository names.
fn named_by_tests(workspace: &Workspace) -> Result<BTreeSet<Row>, Problem> {
    let mut named = BTreeSet::new();
    for path in files_below(&workspace.root)? {
        let place = path.strip_prefix(&workspace.root).unwrap_or(&path);
        // The tests of these tasks use made-up rows as examples.
        if place.starts_with("xtask") {
            continue;
        }
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if !["rs", "py", "js", "mjs", "ts", "sh"].contains(&extension) {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|error| Problem::file(&path, &error))?;
        named.extend(rows_in(&tests_of(place, &text)));
    }
    Ok(named)
}

/// The part of a file that is a test; empty if nothing is.
fn tests_of(place: &Path, text: &str) -> String {
    if is_test_file(place) {
        return text.to_owned();
    }
    if place.extension().is_none_or(|extension| extension != "rs") {
        return String::new();
    }
    let lines: Vec<_> = Source::parse(text).tests.into_iter().map(|(_, line)| line).collect();
    lines.join("\n")
}

/// The rows that `text` names, one by one or as a range.
fn rows_in(text: &str) -> BTreeSet<Row> {
    let mut rows = BTreeSet::new();
    let mut before = ' ';
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_start_of_word = !before.is_alphanumeric() && before != '_';
        let row = if is_start_of_word { parse_row(rest) } else { None };
        let Some((row, after)) = row else {
            before = first;
            rest = &rest[first.len_utf8()..];
            continue;
        };
        if let Some(last) = end_of_range(&row, after) {
            let numbers = row.number..=last.min(row.number.saturating_add(WIDEST_RANGE));
            if last <= *numbers.end() {
                rows.extend(numbers.map(|number| Row { face: row.face.clone(), number }));
            }
        }
        rows.insert(row);
        before = '0';
        rest = after;
    }
    rows
}

/// A row at the very start of `text`, and what follows it.
fn parse_row(text: &str) -> Option<(Row, &str)> {
    let dash = text.find('-').filter(|dash| *dash <= 2)?;
    let face = &text[..dash];
    let is_face = face == "O" || face.strip_prefix('S').is_some_and(|digit| digit.parse::<u8>().is_ok());
    let (number, after) = parse_number(&text[dash + 1..])?;
    is_face.then(|| (Row { face: face.to_owned(), number }, after))
}

/// A whole number at the very start of `text`, and what follows it.
fn parse_number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let after = &text[end..];
    if after.starts_with(|character: char| character.is_alphanumeric() || character == '_') {
        return None;
    }
    Some((text[..end].parse().ok()?, after))
}

/// The last number of a range that begins with `first` and goes on with `after`.
fn end_of_range(first: &Row, after: &str) -> Option<u32> {
    let after = after.trim_start();
    let after = ["..=", "..", "to", "–"].iter().find_map(|word| after.strip_prefix(word))?.trim_start();
    let last = after.strip_prefix(&format!("{}-", first.face)).unwrap_or(after);
    Some(parse_number(last)?.0)
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
