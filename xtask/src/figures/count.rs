//! Counts the figures. Reads the sources as text: `rustfmt` fixes their layout.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::figures::Figure;
use crate::problem::Problem;
use crate::source::{Source, is_test_file};
use crate::workspace::{Workspace, files_below};

/// A file shorter than this belongs in its neighbour.
const SHORT: usize = 60;

/// One Rust file of the repository, with its path below the root.
struct RustFile {
    path: PathBuf,
    text: String,
}

/// Where a Rust file counts.
#[derive(PartialEq, Eq)]
enum Kind {
    Product,
    Testing,
    Bench,
    Test,
}

impl RustFile {
    fn kind(&self) -> Kind {
        let has = |name: &str| self.path.iter().any(|part| part == name);
        if self.path.starts_with("testing") && !is_test_file(&self.path) {
            Kind::Testing
        } else if self.path.starts_with("bench") || has("benches") {
            Kind::Bench
        } else if is_test_file(&self.path) {
            Kind::Test
        } else {
            Kind::Product
        }
    }

    /// Its lines without items below `#[cfg(test)]`.
    fn lines(&self) -> usize {
        self.text.lines().count() - Source::parse(&self.text).test_item_lines
    }

    fn place(&self) -> String {
        self.path.display().to_string()
    }
}

/// Every figure, in the order in which they are printed.
pub fn all(workspace: &Workspace, words: &BTreeSet<String>) -> Result<Vec<Figure>, Problem> {
    let files = rust_files(workspace)?;
    let of = |kind: Kind| files.iter().filter(move |file| file.kind() == kind);
    let lines = |kind: Kind| of(kind).map(RustFile::lines).sum::<usize>();
    let openapi = workspace.read("docs/openapi.json")?;
    let short =
        of(Kind::Product).filter(|file| file.lines() < SHORT).map(RustFile::place).collect::<Vec<_>>();
    let embedded = files.iter().filter(|file| names_embedded_ledger(file)).map(RustFile::place).collect();
    let lease_types = of(Kind::Product).flat_map(|file| listed(file, lease_types(&file.text))).collect();
    let functions =
        files.iter().flat_map(|file| listed(file, private_functions(&file.text, words))).collect();
    let private_files = files.iter().filter(|file| has_private_word(&stem(&file.path), words));
    Ok(vec![
        number("rust_lines", lines(Kind::Product)),
        number("rust_files", of(Kind::Product).count()),
        list("short_files", short),
        number("testing_lines", lines(Kind::Testing)),
        number("bench_lines", lines(Kind::Bench)),
        number("openapi_lines", openapi.lines().count()),
        number("openapi_bytes", openapi.len()),
        list("embedded_ledger_files", embedded),
        list("lease_types", lease_types),
        list("private_function_names", functions),
        list("private_file_names", private_files.map(RustFile::place).collect()),
    ])
}

fn number(name: &'static str, value: usize) -> Figure {
    Figure { name, value: value as u64, items: Vec::new() }
}

fn list(name: &'static str, items: Vec<String>) -> Figure {
    Figure { name, value: items.len() as u64, items }
}

fn listed<'a>(file: &'a RustFile, names: Vec<&'a str>) -> impl Iterator<Item = String> + 'a {
    names.into_iter().map(|name| format!("{name} ({})", file.place()))
}

fn rust_files(workspace: &Workspace) -> Result<Vec<RustFile>, Problem> {
    let mut files = Vec::new();
    for path in files_below(&workspace.root)? {
        let below = path.strip_prefix(&workspace.root).unwrap_or(&path).to_owned();
        if below.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).map_err(|error| Problem::file(&path, &error))?;
            files.push(RustFile { path: below, text });
        }
    }
    Ok(files)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn names_embedded_ledger(file: &RustFile) -> bool {
    !file.path.starts_with("crates/tenure-ledger")
        && file.path.starts_with("crates")
        && file.text.contains("embedded::")
}

/// The structs in `text` that identify a lease and say when it ends.
fn lease_types(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut current: Option<(&str, bool, bool)> = None;
    for (_, line) in Source::parse(text).program {
        let code = line.trim_start();
        if let Some(rest) = without_visibility(code).strip_prefix("struct ")
            && code.ends_with('{')
        {
            current = Some((identifier(rest), false, false));
        } else if let Some((name, is_identified, ends)) = &mut current {
            let field = identifier(without_visibility(code));
            *is_identified |= ["fence", "lease_id", "renewals", "renewal_count"].contains(&field);
            *ends |= ["expires", "remaining"].iter().any(|prefix| field.starts_with(prefix));
            if code == "}" {
                if *is_identified && *ends {
                    found.push(*name);
                }
                current = None;
            }
        }
    }
    found
}

fn private_functions<'a>(text: &'a str, words: &BTreeSet<String>) -> Vec<&'a str> {
    let names = text.lines().filter_map(|line| {
        let code = without_visibility(line.trim_start());
        let code = ["const ", "async ", "unsafe "]
            .iter()
            .fold(code, |code, word| code.strip_prefix(word).unwrap_or(code));
        code.strip_prefix("fn ").map(identifier)
    });
    names.filter(|name| has_private_word(name, words)).collect()
}

fn has_private_word(name: &str, words: &BTreeSet<String>) -> bool {
    name.split('_').any(|part| words.contains(part))
}

fn without_visibility(code: &str) -> &str {
    match code.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ").map_or(code, |(_, rest)| rest),
        None => code.strip_prefix("pub ").unwrap_or(code),
    }
}

fn identifier(code: &str) -> &str {
    let end = code.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(code.len());
    &code[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_type_is_identified_and_ends() {
        let text = "pub struct A {\n    pub fence: Fence,\n    pub(crate) expires_at: Tick,\n}\n\
                    struct B {\n    fence: Fence,\n}\npub(crate) struct C<'a> {\n    lease_id: &'a str,\n    remaining_ms: u64,\n}\n\
                    #[cfg(test)]\nstruct D {\n    fence: Fence,\n    expires_at: Tick,\n}\n";
        assert_eq!(lease_types(text), ["A", "C"]);
    }

    #[test]
    fn a_private_word_is_a_whole_part_of_a_name() {
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
            (file.kind() == Kind::Product, file.lines())
        };
        assert_eq!(lines("crates/a/src/b.rs"), (true, 1));
        for path in
            ["crates/a/tests/b.rs", "crates/a/benches/b.rs", "testing/kit/src/lib.rs", "bench/src/a.rs"]
        {
            assert!(!lines(path).0, "{path}");
        }
    }
}
