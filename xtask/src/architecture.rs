//! The two tables of ARCHITECTURE.md that are checked: who may use whom, and what each dependency is for.
//! Each stands between two comments, `<!-- layers:begin -->` and `<!-- layers:end -->`.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use crate::problem::Problem;
use crate::workspace::Workspace;

/// The text of ARCHITECTURE.md.
pub struct Architecture {
    path: PathBuf,
    text: String,
}

impl Architecture {
    /// Reads it from the root of the repository.
    pub fn read(workspace: &Workspace) -> Result<Self, Problem> {
        let path = workspace.root.join("ARCHITECTURE.md");
        let text = fs::read_to_string(&path).map_err(|error| {
            Problem::new(
                format!("ARCHITECTURE.md cannot be read: {error}"),
                "nothing says who may depend on whom, and what each dependency is for",
                "restore ARCHITECTURE.md, with `<!-- layers:begin -->`, `<!-- layers:end -->`, \
                 `<!-- dependencies:begin -->` and `<!-- dependencies:end -->` each on a line of its own",
            )
        })?;
        Ok(Self { path, text })
    }

    /// A problem unless the table of the layers is `right`.
    pub fn check_layers(&self, right: &str) -> Result<(), Problem> {
        let place = self.between("layers")?;
        if self.text[place].trim() == right.trim() {
            return Ok(());
        }
        Err(Problem::new(
            format!("ARCHITECTURE.md shows another table of the layers than xtask/src/layers.rs:\n\n{right}"),
            "whoever reads ARCHITECTURE.md is told something that is not checked",
            "run `cargo xtask layers --write`",
        ))
    }

    /// Puts `table` in the place of the table of the layers.
    pub fn write_layers(mut self, table: &str) -> Result<(), Problem> {
        let place = self.between("layers")?;
        self.text.replace_range(place, &format!("\n{}\n", table.trim()));
        fs::write(&self.path, self.text).map_err(|error| Problem::file(&self.path, &error))
    }

    /// A problem unless the table of the dependencies has exactly one line for each of `names`, and says what it is for.
    pub fn check_dependencies(&self, names: &[&str]) -> Result<(), Problem> {
        let place = self.between("dependencies")?;
        let lines = table_lines(&self.text[place]);
        let mut wrong = Vec::new();
        for name in names {
            if !lines.iter().any(|(listed, _)| listed == name) {
                wrong.push(format!("`{name}` has no line"));
            }
        }
        for (index, (name, purpose)) in lines.iter().enumerate() {
            if !names.contains(name) {
                wrong.push(format!("`{name}` has a line, but no Cargo.toml names it"));
            }
            if purpose.is_empty() {
                wrong.push(format!("the line of `{name}` does not say what it is for"));
            }
            if lines[..index].iter().any(|(earlier, _)| earlier == name) {
                wrong.push(format!("`{name}` has two lines"));
            }
        }
        if wrong.is_empty() {
            return Ok(());
        }
        Err(Problem::new(
            format!("the table of dependencies in ARCHITECTURE.md is wrong:\n  {}", wrong.join("\n  ")),
            "a dependency has no reason, or a reason has no dependency",
            "mend the lines `| name | what it is for |` in ARCHITECTURE.md, or take the dependency out",
        ))
    }

    /// Where the part called `name` is, without its two comments.
    fn between(&self, name: &str) -> Result<Range<usize>, Problem> {
        let (begin, end) = (format!("<!-- {name}:begin -->"), format!("<!-- {name}:end -->"));
        let start = self.text.find(&begin).map(|position| position + begin.len());
        let stop = start.and_then(|start| Some(start + self.text[start..].find(&end)?));
        start.zip(stop).map(|(start, stop)| start..stop).ok_or_else(|| {
            Problem::new(
                format!("ARCHITECTURE.md does not hold `{begin}` and, below it, `{end}`"),
                "the table that belongs there cannot be checked",
                "put both comments around the table, each on a line of its own",
            )
        })
    }
}

/// The first two cells of each line below the head of a Markdown table. Code marks are taken off the first.
fn table_lines(table: &str) -> Vec<(&str, &str)> {
    let lines = table.lines().filter_map(|line| line.trim().strip_prefix('|'));
    let cells = lines.skip(2).map(|line| {
        let mut cells = line.split('|').map(str::trim);
        (cells.next().unwrap_or_default().trim_matches('`'), cells.next().unwrap_or_default())
    });
    cells.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn architecture(text: &str) -> Architecture {
        Architecture { path: PathBuf::from("unused"), text: text.to_owned() }
    }

    fn dependencies(lines: &str) -> Architecture {
        architecture(&format!(
            "# A\n<!-- dependencies:begin -->\n| name | for |\n|---|---|\n{lines}\n<!-- dependencies:end -->\n"
        ))
    }

    #[test]
    fn the_table_of_layers_must_be_the_same() {
        let text = "a\n<!-- layers:begin -->\n| x |\n|---|\n<!-- layers:end -->\nb\n";
        assert!(architecture(text).check_layers("| x |\n|---|\n").is_ok());
        let problem = architecture(text).check_layers("| y |\n|---|\n").expect_err("x is not y").to_string();
        assert!(problem.contains("| y |"), "{problem}");
    }

    #[test]
    fn a_missing_comment_is_named() {
        for text in ["", "<!-- layers:begin -->", "<!-- layers:end --> <!-- layers:begin -->"] {
            let problem = architecture(text).check_layers("").expect_err(text).to_string();
            assert!(problem.contains("`<!-- layers:begin -->`"), "{problem}");
        }
    }

    #[test]
    fn each_dependency_has_one_line_with_its_purpose() {
        let table = dependencies("| `prost` | stored events |\n| clap | the command line |");
        assert!(table.check_dependencies(&["clap", "prost"]).is_ok());
        for (lines, expected) in [
            ("| `prost` | stored events |", "`clap` has no line"),
            ("| prost | a |\n| clap | b |\n| tokio | c |", "`tokio` has a line, but no Cargo.toml names it"),
            ("| prost | a |\n| clap | |", "the line of `clap` does not say what it is for"),
            ("| prost | a |\n| clap | b |\n| `clap` | c |", "`clap` has two lines"),
        ] {
            let problem =
                dependencies(lines).check_dependencies(&["clap", "prost"]).expect_err(lines).to_string();
            assert!(problem.contains(expected), "{problem}");
        }
    }

    #[test]
    fn writing_replaces_the_table_and_nothing_else() {
        let path = std::env::temp_dir().join(format!("tenure-architecture-{}", std::process::id()));
        let text = "a\n<!-- layers:begin -->\nold\n<!-- layers:end -->\nb\n".to_owned();
        let written = Architecture { path: path.clone(), text }.write_layers("| new |\n");
        let result = fs::read_to_string(&path);
        let _ = fs::remove_file(&path);
        assert!(written.is_ok());
        assert_eq!(result.expect("written"), "a\n<!-- layers:begin -->\n| new |\n<!-- layers:end -->\nb\n");
    }
}
