//! The patches of planted bugs: a diff below two lines that say what it breaks and which tests catch it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::problem::Problem;

/// One planted bug.
pub struct Patch {
    /// File name without `.patch`.
    pub name: String,
    /// The crate whose tests catch it.
    pub tests: String,
    /// The first lines, which git ignores.
    pub header: String,
    /// Where the patch is.
    pub file: PathBuf,
}

/// The patches in `folder`, ordered by crate and number.
pub fn read_all(folder: &Path, only: Option<&str>) -> Result<Vec<Patch>, Problem> {
    let mut patches = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| Problem::file(folder, &error))? {
        let file = entry.map_err(|error| Problem::file(folder, &error))?.path();
        let name = file.file_name().and_then(|name| name.to_str()?.strip_suffix(".patch"));
        let Some(name) = name.map(str::to_owned) else { continue };
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let text = fs::read_to_string(&file).map_err(|error| Problem::file(&file, &error))?;
        let (header, tests) = header(&text, &name)?;
        patches.push(Patch { name, tests, header, file });
    }
    patches.sort_by_key(|patch| (patch.tests.clone(), number(&patch.name), patch.name.clone()));
    if patches.is_empty() {
        return Err(Problem::new(
            only.map_or("bugs/ has no patch".to_owned(), |name| format!("bugs/{name}.patch does not exist")),
            "there is no bug to plant",
            "see `ls bugs`; make a new one with `git diff > bugs/NAME.patch`",
        ));
    }
    Ok(patches)
}

fn number(name: &str) -> u32 {
    name.split('-').next().and_then(|number| number.parse().ok()).unwrap_or(u32::MAX)
}

/// The two lines above the diff, and the crate that the second one names.
fn header(text: &str, name: &str) -> Result<(String, String), Problem> {
    let mut lines = text.lines();
    let breaks = lines.next().and_then(|line| line.strip_prefix("# ")).map(str::trim);
    let tests = lines.next().and_then(|line| line.strip_prefix("# tests: ")).map(str::trim);
    match (breaks.filter(|text| !text.is_empty()), tests.filter(|text| !text.is_empty())) {
        (Some(breaks), Some(tests)) => Ok((format!("# {breaks}\n# tests: {tests}\n"), tests.to_owned())),
        _ => Err(Problem::new(
            format!("bugs/{name}.patch does not start with `# what it breaks` and `# tests: CRATE`"),
            "the broken promise and the tests that check it are not known",
            "write both lines above the diff; git ignores them",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_must_say_what_it_breaks_and_which_tests_catch_it() {
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
}
