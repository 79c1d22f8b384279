//! Figures of the code's size and shape, each with a limit that only ever falls. Reads the sources as text: `rustfmt`
//! fixes their layout.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

use crate::process::{TaskError, print_line};
use crate::source::{SourceLines, is_test_file};
use crate::workspace::Workspace;

/// Print each figure of the code's size and shape beside its limit
///
/// The limits are in xtask/figures.toml. Exits with 1 if a figure is above its limit.
#[derive(clap::Args)]
pub struct Arguments {
    /// Also list what was counted: lease types, and functions and files with private words
    #[arg(long)]
    pub list: bool,
}

/// xtask/figures.toml.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureConfig {
    limits: BTreeMap<String, u64>,
    words: PrivateWords,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PrivateWords {
    names: BTreeSet<String>,
}

struct CodeMetric {
    name: &'static str,
    value: u64,
    /// What was counted, where a reader wants to see it.
    items: Vec<String>,
}

/// Prints the table, with `list` what was counted; fails if a figure is above its limit.
pub fn check(workspace: &Workspace, list: bool) -> Result<(), TaskError> {
    let committed: FigureConfig = workspace.read_toml("xtask/figures.toml")?;
    let figures = count(workspace, &committed.words.names)?;
    print_line(&format!("{:<26} {:>10} {:>10}", "figure", "now", "limit"));
    for figure in &figures {
        let limit = committed.limits.get(figure.name).map_or("none".to_owned(), u64::to_string);
        print_line(&format!("{:<26} {:>10} {limit:>10}", figure.name, figure.value));
        if list {
            figure.items.iter().for_each(|item| print_line(&format!("    {item}")));
        }
    }
    let wrong = violations(&figures, &committed.limits);
    if wrong.is_empty() {
        return Ok(());
    }
    Err(TaskError::new(
        format!("a figure is not within its limit:\n  {}", wrong.join("\n  ")),
        "remove what is not needed; a limit in xtask/figures.toml is raised only with a reason beside it",
    ))
}

fn violations(figures: &[CodeMetric], limits: &BTreeMap<String, u64>) -> Vec<String> {
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

/// A file shorter than this belongs in its neighbour.
const SHORT: usize = 60;

/// One Rust file of the repository, with its path below the root.
struct RustFile {
    path: PathBuf,
    text: String,
}

/// Where a Rust file counts.
#[derive(PartialEq, Eq)]
enum RustFileKind {
    Product,
    Testing,
    Bench,
    Test,
}

impl RustFile {
    fn kind(&self) -> RustFileKind {
        let has = |name: &str| self.path.iter().any(|part| part == name);
        if self.path.starts_with("testing") && !is_test_file(&self.path) {
            RustFileKind::Testing
        } else if self.path.starts_with("bench") || has("benches") {
            RustFileKind::Bench
        } else if is_test_file(&self.path) {
            RustFileKind::Test
        } else {
            RustFileKind::Product
        }
    }

    /// Its lines without items below `#[cfg(test)]`.
    fn lines(&self) -> usize {
        self.text.lines().count() - SourceLines::parse(&self.text).test_item_lines
    }

    fn display_path(&self) -> String {
        self.path.display().to_string()
    }

    fn names_embedded_ledger(&self) -> bool {
        self.path.starts_with("crates")
            && !self.path.starts_with("crates/tenure-ledger")
            && self.text.contains("embedded::")
    }

    /// Names in this file, as they are listed.
    fn listed<'a>(&'a self, names: Vec<&'a str>) -> impl Iterator<Item = String> + 'a {
        names.into_iter().map(|name| format!("{name} ({})", self.display_path()))
    }
}

/// Every figure, in the order in which they are printed.
fn count(workspace: &Workspace, words: &BTreeSet<String>) -> Result<Vec<CodeMetric>, TaskError> {
    let sources = workspace.sources("", &["rs"])?;
    let files: Vec<_> = sources.into_iter().map(|(path, text)| RustFile { path, text }).collect();
    let of = |kind: RustFileKind| files.iter().filter(move |file| file.kind() == kind);
    let lines = |kind: RustFileKind| of(kind).map(RustFile::lines).sum::<usize>();
    let openapi = workspace.shell.read_file("docs/openapi.json")?;
    let short = of(RustFileKind::Product).filter(|file| file.lines() < SHORT).map(RustFile::display_path);
    let embedded = files.iter().filter(|file| file.names_embedded_ledger()).map(RustFile::display_path);
    let lease_types = of(RustFileKind::Product).flat_map(|file| file.listed(lease_types(&file.text)));
    let functions = files.iter().flat_map(|file| file.listed(private_functions(&file.text, words)));
    let private_files = files.iter().filter(|file| {
        let stem = file.path.file_stem().unwrap_or_default();
        has_private_word(&stem.to_string_lossy(), words)
    });
    Ok(vec![
        number("rust_lines", lines(RustFileKind::Product)),
        number("rust_files", of(RustFileKind::Product).count()),
        list("short_files", short),
        number("testing_lines", lines(RustFileKind::Testing)),
        number("bench_lines", lines(RustFileKind::Bench)),
        number("openapi_lines", openapi.lines().count()),
        number("openapi_bytes", openapi.len()),
        list("embedded_ledger_files", embedded),
        list("lease_types", lease_types),
        list("private_function_names", functions),
        list("private_file_names", private_files.map(RustFile::display_path)),
    ])
}

fn number(name: &'static str, value: usize) -> CodeMetric {
    CodeMetric { name, value: value as u64, items: Vec::new() }
}

fn list(name: &'static str, items: impl Iterator<Item = String>) -> CodeMetric {
    let items: Vec<_> = items.collect();
    CodeMetric { name, value: items.len() as u64, items }
}

fn pattern(after_visibility: &str) -> Regex {
    Regex::new(&format!(r"^\s*(?:pub(?:\([^)]*\))? )?{after_visibility}")).expect("a pattern")
}

static STRUCT: LazyLock<Regex> = LazyLock::new(|| pattern(r"struct (\w+).*\{$"));
static FIELD: LazyLock<Regex> = LazyLock::new(|| pattern(r"(\w+)"));
static FUNCTION: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?:const )?(?:async )?(?:unsafe )?fn (\w+)"));

/// The name that `pattern` finds in `line`.
fn name<'a>(pattern: &Regex, line: &'a str) -> Option<&'a str> {
    Some(pattern.captures(line)?.get(1)?.as_str())
}

/// The structs in `text` that identify a lease and say when it ends.
fn lease_types(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut current: Option<(&str, bool, bool)> = None;
    for (_, line) in SourceLines::parse(text).program {
        if let Some(name) = name(&STRUCT, line) {
            current = Some((name, false, false));
        } else if let Some((struct_name, is_identified, ends)) = &mut current {
            let field = name(&FIELD, line).unwrap_or_default();
            *is_identified |= ["fence", "lease_id", "renewals", "renewal_count"].contains(&field);
            *ends |= ["expires", "remaining"].iter().any(|prefix| field.starts_with(prefix));
            if line.trim_start() == "}" {
                found.extend((*is_identified && *ends).then_some(*struct_name));
                current = None;
            }
        }
    }
    found
}

fn private_functions<'a>(text: &'a str, words: &BTreeSet<String>) -> Vec<&'a str> {
    let names = text.lines().filter_map(|line| name(&FUNCTION, line));
    names.filter(|name| has_private_word(name, words)).collect()
}

fn has_private_word(name: &str, words: &BTreeSet<String>) -> bool {
    name.split('_').any(|part| words.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_name_figures_above_their_limit_and_missing_limits() {
        let figure = |name, value| CodeMetric { name, value, items: Vec::new() };
        let limits = |pairs: &[(&str, u64)]| {
            pairs.iter().map(|(name, limit)| ((*name).to_owned(), *limit)).collect::<BTreeMap<_, _>>()
        };
        assert_eq!(violations(&[figure("lines", 5)], &limits(&[("lines", 5)])), [""; 0]);
        assert_eq!(violations(&[figure("lines", 6)], &limits(&[("lines", 5)])), ["lines: 6 is more than 5"]);
        assert_eq!(violations(&[figure("lines", 6)], &limits(&[])), ["lines: no limit"]);
        assert_eq!(violations(&[], &limits(&[("lines", 5)])), ["lines: a limit without a figure"]);
    }

    #[test]
    fn lease_type_has_an_identifier_and_an_expiry() {
        let text = "pub struct A {\n    pub fence: Fence,\n    pub(crate) expires_at: Tick,\n}\n\
                    struct B {\n    fence: Fence,\n}\npub(crate) struct C<'a> {\n    lease_id: &'a str,\n    remaining_ms: u64,\n}\n\
                    #[cfg(test)]\nstruct D {\n    fence: Fence,\n    expires_at: Tick,\n}\n";
        assert_eq!(lease_types(text), ["A", "C"]);
    }

    #[test]
    fn private_word_matches_whole_name_parts_only() {
        let words = BTreeSet::from(["asked".to_owned()]);
        let text =
            "pub(crate) async fn was_asked() {}\nfn basked() {}\nconst fn asked() {}\nlet asked = 1;\n";
        assert_eq!(private_functions(text, &words), ["was_asked", "asked"]);
    }

    #[test]
    fn tests_benchmarks_and_the_testing_folder_are_not_the_product() {
        let lines = |path: &str| {
            let file =
                RustFile { path: path.into(), text: "fn a() {}\n#[cfg(test)]\nmod tests {\n}\n".into() };
            (file.kind() == RustFileKind::Product, file.lines())
        };
        assert_eq!(lines("crates/a/src/b.rs"), (true, 1));
        for path in
            ["crates/a/tests/b.rs", "crates/a/benches/b.rs", "testing/kit/src/lib.rs", "bench/src/a.rs"]
        {
            assert!(!lines(path).0, "{path}");
        }
    }
}
