//! Figures of the code's size and shape, each with a limit that only ever falls. Reads the sources as text: `rustfmt`
//! fixes their layout.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

use crate::language::{self, CodeAndProse, FileLanguage, Occurrence, WordKind, descriptions};
use crate::process::{TaskError, print_line};
use crate::source_lines::{SourceLines, is_test_file};
use crate::workspace::Workspace;

/// Print each figure of the code's size and shape beside its limit
///
/// The limits are in xtask/figures.toml. Exits with 1 if a figure is above its limit.
#[derive(clap::Args)]
pub struct Arguments {
    /// Also list what was counted, such as short files, lease types and private names
    #[arg(long)]
    pub list: bool,
}

/// xtask/figures.toml.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureConfig {
    limits: BTreeMap<String, u64>,
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
    let figures = count(workspace)?;
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

const OPENAPI: &str = "docs/openapi.json";

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
fn count(workspace: &Workspace) -> Result<Vec<CodeMetric>, TaskError> {
    let sources = workspace.sources("", &["rs"])?;
    let files: Vec<_> = sources.into_iter().map(|(path, text)| RustFile { path, text }).collect();
    let of = |kind: RustFileKind| files.iter().filter(move |file| file.kind() == kind);
    let lines = |kind: RustFileKind| of(kind).map(RustFile::lines).sum::<usize>();
    let openapi = workspace.shell.read_file(OPENAPI)?;
    let short = of(RustFileKind::Product).filter(|file| file.lines() < SHORT).map(RustFile::display_path);
    let embedded = files.iter().filter(|file| file.names_embedded_ledger()).map(RustFile::display_path);
    let lease_types = of(RustFileKind::Product).flat_map(|file| file.listed(lease_types(&file.text)));
    let (mut checker, _) = language::load(workspace)?;
    let private = checker.occurrences(workspace)?;
    let private = |kind| private.iter().filter(move |found| found.kind == kind);
    let places = |kind| private(kind).map(Occurrence::to_string);
    let in_openapi = private(WordKind::Prose).filter(|found| found.path == Path::new(OPENAPI));
    let poor_descriptions =
        short_descriptions(&openapi).into_iter().chain(in_openapi.map(Occurrence::to_string));
    let types = files
        .iter()
        .map(|file| CodeAndProse::new(FileLanguage::Rust, &file.text))
        .flat_map(|parts| parts.type_names().into_iter().map(str::to_owned).collect::<Vec<_>>());
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
        list("private_identifiers", places(WordKind::Identifiers)),
        list("private_file_names", places(WordKind::Files)),
        list("repeated_type_names", repeated_types(types).into_iter()),
        list("openapi_descriptions", poor_descriptions),
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
            // A remaining budget is not a time.
            *ends |= !line.ends_with(": Budget,")
                && ["expires", "remaining"].iter().any(|prefix| field.starts_with(prefix));
            if line.trim_start() == "}" {
                found.extend((*is_identified && *ends).then_some(*struct_name));
                current = None;
            }
        }
    }
    found
}

/// A type name that is defined more often than this says too little.
const REPEATED: usize = 4;

/// Names of the same part of many modules.
const COMMON_TYPES: [&str; 3] = ["Arguments", "Error", "Settings"];

/// The names in `types` that are defined too often, each with how often.
fn repeated_types(types: impl Iterator<Item = String>) -> Vec<String> {
    let mut definitions: BTreeMap<String, usize> = BTreeMap::new();
    for name in types.filter(|name| !COMMON_TYPES.contains(&name.as_str())) {
        *definitions.entry(name).or_default() += 1;
    }
    definitions.retain(|_, count| *count > REPEATED);
    definitions.iter().map(|(name, count)| format!("{name} ({count} definitions)")).collect()
}

/// The descriptions that say too little: fewer than three words.
fn short_descriptions(openapi: &str) -> Vec<String> {
    let mut short = Vec::new();
    for (offset, description) in descriptions(openapi) {
        if description.replace("\\n", " ").split_whitespace().count() < 3 {
            let line = 1 + openapi[..offset].matches('\n').count();
            short.push(format!("{OPENAPI}:{line}: {description}"));
        }
    }
    short
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
                    struct E {\n    lease_id: String,\n    remaining: Budget,\n}\n\
                    #[cfg(test)]\nstruct D {\n    fence: Fence,\n    expires_at: Tick,\n}\n";
        assert_eq!(lease_types(text), ["A", "C"]);
    }

    #[test]
    fn type_names_defined_more_than_four_times_are_repeated() {
        let types = |name: &str, times: usize| vec![name.to_owned(); times];
        let all = [types("A", 5), types("B", 4), types("Error", 9)].concat();
        assert_eq!(repeated_types(all.into_iter()), ["A (5 definitions)"]);
    }

    #[test]
    fn descriptions_with_fewer_than_three_words_are_short() {
        let text = "{\n\"description\": \"The lease.\",\n\"description\": \"Time until it expires.\"\n}";
        assert_eq!(short_descriptions(text), ["docs/openapi.json:2: The lease."]);
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
