//! Figures of the code's size and shape, each with a limit that only ever falls.

mod count;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::problem::Problem;
use crate::process::say;
use crate::workspace::Workspace;

/// Print each figure of the code's size and shape beside its limit
///
/// The limits are in xtask/figures.toml. Exits with 1 if a figure is above its limit.
#[derive(clap::Args)]
pub struct Arguments {
    /// Also list what was counted: lease types, and functions and files with private words
    #[arg(long)]
    list: bool,
}

/// The committed file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Committed {
    limits: BTreeMap<String, u64>,
    words: Words,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    names: BTreeSet<String>,
}

/// One figure.
pub struct Figure {
    name: &'static str,
    value: u64,
    /// What was counted, where a reader wants to see it.
    items: Vec<String>,
}

/// Prints the table; fails if a figure is above its limit.
pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<(), Problem> {
    compare(workspace, arguments.list)
}

/// As [`run`], without the lists.
pub fn check(workspace: &Workspace) -> Result<(), Problem> {
    compare(workspace, false)
}

fn compare(workspace: &Workspace, lists: bool) -> Result<(), Problem> {
    let committed = read(workspace)?;
    let figures = count::all(workspace, &committed.words.names)?;
    say(&format!("{:<26} {:>10} {:>10}", "figure", "now", "limit"));
    for figure in &figures {
        let limit = committed.limits.get(figure.name).map_or("none".to_owned(), u64::to_string);
        say(&format!("{:<26} {:>10} {limit:>10}", figure.name, figure.value));
        if lists {
            figure.items.iter().for_each(|item| say(&format!("    {item}")));
        }
    }
    let wrong = violations(&figures, &committed.limits);
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Problem::new(
        format!("a figure is not within its limit:\n  {}", wrong.join("\n  ")),
        "the code grew, or a limit has no figure",
        "remove what is not needed; a limit in xtask/figures.toml is raised only with a reason beside it",
    ))
}

fn read(workspace: &Workspace) -> Result<Committed, Problem> {
    toml::from_str(&workspace.read("xtask/figures.toml")?).map_err(|error| {
        Problem::new(
            format!("xtask/figures.toml: {error}"),
            "no figure can be compared with its limit",
            "correct the file",
        )
    })
}

fn violations(figures: &[Figure], limits: &BTreeMap<String, u64>) -> Vec<String> {
    let mut wrong = Vec::new();
    for figure in figures {
        match limits.get(figure.name) {
            Some(limit) if figure.value <= *limit => {}
            Some(limit) => wrong.push(format!("{}: {} is more than {limit}", figure.name, figure.value)),
            None => wrong.push(format!("{}: no limit", figure.name)),
        }
    }
    let unknown = limits.keys().filter(|name| !figures.iter().any(|figure| figure.name == **name));
    wrong.extend(unknown.map(|name| format!("{name}: a limit without a figure")));
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_above_its_limit_without_a_limit_or_unknown_is_named() {
        let figure = |name, value| Figure { name, value, items: Vec::new() };
        let limits = |pairs: &[(&str, u64)]| {
            pairs.iter().map(|(name, limit)| ((*name).to_owned(), *limit)).collect::<BTreeMap<_, _>>()
        };
        assert_eq!(violations(&[figure("lines", 5)], &limits(&[("lines", 5)])), [""; 0]);
        assert_eq!(violations(&[figure("lines", 6)], &limits(&[("lines", 5)])), ["lines: 6 is more than 5"]);
        assert_eq!(violations(&[figure("lines", 6)], &limits(&[])), ["lines: no limit"]);
        assert_eq!(violations(&[], &limits(&[("lines", 5)])), ["lines: a limit without a figure"]);
    }
}
