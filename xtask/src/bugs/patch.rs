//! The patches of planted bugs: a diff below two lines that say what it breaks and which tests catch it.

use std::path::PathBuf;
use std::str::FromStr;

use xshell::Shell;

use crate::process::TaskError;

/// One planted bug.
pub struct Patch {
    /// File name without `.patch`.
    pub name: String,
    /// The crate whose tests catch it; after a space, what these have in their names.
    pub tests: String,
    /// The first lines, which git ignores.
    pub header: String,
    /// Where the patch is.
    pub file: PathBuf,
}

/// The patches in the folder `bugs`, ordered by crate and number.
pub fn read_all(shell: &Shell, only: Option<&str>) -> Result<Vec<Patch>, TaskError> {
    let mut patches = Vec::new();
    for file in shell.read_dir("bugs")? {
        let name = file.file_name().and_then(|name| name.to_str()?.strip_suffix(".patch")).map(str::to_owned);
        if let Some(name) = name.filter(|name| only.is_none_or(|only| only == name)) {
            let (header, tests) = header(&shell.read_file(&file)?, &name)?;
            patches.push(Patch { name, tests, header, file });
        }
    }
    patches.sort_by_key(|patch| (patch.tests.clone(), number(&patch.name), patch.name.clone()));
    if patches.is_empty() {
        return Err(TaskError::new(
            only.map_or("bugs/ has no patch".to_owned(), |name| format!("bugs/{name}.patch does not exist")),
            "see `ls bugs`; make a new one with `git diff > bugs/NAME.patch`",
        ));
    }
    Ok(patches)
}

fn number(name: &str) -> u32 {
    name.split('-').next().and_then(|number| number.parse().ok()).unwrap_or(u32::MAX)
}

/// The two lines above the diff, and the tests that the second one names.
fn header(text: &str, name: &str) -> Result<(String, String), TaskError> {
    let mut lines = text.lines();
    let breaks = lines.next().and_then(|line| line.strip_prefix("# ")).map(str::trim);
    let tests = lines.next().and_then(|line| line.strip_prefix("# tests: ")).map(str::trim);
    match (breaks.filter(|text| !text.is_empty()), tests.filter(|text| !text.is_empty())) {
        (Some(breaks), Some(tests)) => Ok((format!("# {breaks}\n# tests: {tests}\n"), tests.to_owned())),
        _ => Err(TaskError::new(
            format!("bugs/{name}.patch does not start with `# what it breaks` and `# tests: CRATE`"),
            "write both lines above the diff; git ignores them",
        )),
    }
}

/// Part `part` of `of` of the bugs, so that one long run can be several shorter ones; the first is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    part: usize,
    of: usize,
}

impl Shard {
    /// Neighbouring items, so that a shard of bugs that are ordered by crate builds few crates.
    pub fn select<T>(&self, items: Vec<T>) -> Vec<T> {
        let start = |part: usize| items.len() * part / self.of;
        let (from, to) = (start(self.part - 1), start(self.part));
        items.into_iter().skip(from).take(to - from).collect()
    }

    /// The name of the file with its results.
    pub fn file_name(&self) -> String {
        format!("{}-of-{}.tsv", self.part, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers =
            text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((part, of)) if 1 <= part && part <= of => Ok(Self { part, of }),
            _ => Err("expected K/N with K from 1 to N, for example 2/4".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patch_header_must_name_the_bug_and_its_tests() {
        let text = "# a lease outlives its expiry\n# tests: tenure-core\n--- a/x\n";
        let (lines, tests) = header(text, "late").expect("two lines");
        assert_eq!((lines.lines().count(), tests.as_str()), (2, "tenure-core"));
        for text in
            ["", "# \n# tests: a\n", "# a\n", "# a\n# tests: \n", "# a\n--- a/x\n", "#a\n# tests: b\n"]
        {
            assert!(header(text, "late").is_err(), "{text:?}");
        }
    }

    #[test]
    fn patches_are_ordered_by_number() {
        assert!(number("35-a") < number("101-a"));
        assert!(number("101-a") < number("without-a-number"));
    }

    #[test]
    fn every_item_is_in_exactly_one_shard() {
        let items: Vec<_> = (0..74).collect();
        let mut all: Vec<_> = (1..=4).flat_map(|part| Shard { part, of: 4 }.select(items.clone())).collect();
        all.sort_unstable();
        assert_eq!(all, items);
    }

    #[test]
    fn a_shard_outside_its_range_is_rejected() {
        assert_eq!("2/4".parse(), Ok(Shard { part: 2, of: 4 }));
        for text in ["", "2", "0/4", "5/4", "1/0", "a/4", "1/4/2", "-1/4"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
