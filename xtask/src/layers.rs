//! Which crate links which, and what the pure crates must not mention.

use cargo_metadata::{DependencyKind, Package};
use regex::Regex;

use crate::process::TaskError;
use crate::source_lines::{SourceLines, is_test_file};
use crate::workspace::Workspace;

/// Compare the dependencies of each crate with ARCHITECTURE.md and docs/dependencies.md
///
/// Fails if a crate under crates/ links one under testing/ other than for its tests, if a dependency between crates is not in
/// ARCHITECTURE.md, if an external dependency has no purpose in docs/dependencies.md, and if a pure crate is not pure.
#[derive(clap::Args)]
pub struct Arguments {}

/// Pages with a table each, between comments such as `<!-- layers:begin -->` and `<!-- layers:end -->`.
const ARCHITECTURE: &str = "ARCHITECTURE.md";
const DEPENDENCIES: &str = "docs/dependencies.md";

/// Their programs must not mention a clock, a disk, a network, a thread or a random source.
const PURE: &[&str] = &["tenure-core", "tenure-control", "tenure-device"];

/// The external crates that these may link, named one by one: a dependency that reads a clock, a disk or a random
/// source would end replay, and every client links tenure-api.
const EXTERNAL: &[(&str, &[&str])] = &[
    ("tenure-core", &["blake3", "prost", "siphasher", "thiserror"]),
    ("tenure-control", &["blake3", "serde", "subtle"]),
    ("tenure-device", &["base64", "hex", "serde", "serde_json", "sha2"]),
    ("tenure-api", &["serde", "serde_json", "utoipa"]),
];

/// A row of the table of crates.
struct Layer<'a> {
    name: &'a str,
    links: Vec<&'a str>,
    tests_link: Vec<&'a str>,
    reason: &'a str,
}

impl<'a> Layer<'a> {
    fn parse(cells: &[&'a str]) -> Result<Self, TaskError> {
        let [name, _content, links, reason] = *cells else {
            return Err(TaskError::new(
                format!("a row of the table of crates has {} cells: {}", cells.len(), cells.join(" | ")),
                "a row has the crate, its content, the crates that it links, and why it is a crate",
            ));
        };
        let (links, tests_link) = links.split_once("tests:").unwrap_or((links, ""));
        let names = |cell: &'a str| cell.split('`').skip(1).step_by(2).collect();
        Ok(Self { name: name.trim_matches('`'), links: names(links), tests_link: names(tests_link), reason })
    }
}

/// Checks everything that the two tables and the constants above promise.
pub fn check(workspace: &Workspace) -> Result<(), TaskError> {
    let mut wrong = violations(&layers(&workspace.shell.read_file(ARCHITECTURE)?)?, &workspace.packages);
    wrong.extend(unlisted_externals(&workspace.packages));
    for name in PURE {
        for (path, text) in workspace.sources(&format!("crates/{name}/src"), &["rs"])? {
            let found = if is_test_file(&path) { Vec::new() } else { forbidden_words(&text) };
            wrong.extend(found.iter().map(|(line, word, reason)| {
                format!("{}:{line} mentions `{word}`: {reason}", path.display())
            }));
        }
    }
    let text = workspace.shell.read_file(DEPENDENCIES)?;
    let table = rows(&text, DEPENDENCIES, "dependencies")?;
    wrong.extend(dependency_table_errors(&table, &external(&workspace.packages)));
    if wrong.is_empty() {
        return Ok(());
    }
    Err(TaskError::new(
        format!("the crates differ from the tables about them:\n  {}", wrong.join("\n  ")),
        "remove the dependency or the call; for a new promise, change the table in ARCHITECTURE.md or in \
         docs/dependencies.md, or the constants in xtask/src/layers.rs, and record the decision in docs/adr",
    ))
}

/// The cells of each row in the table called `name` on `page`, without its header.
fn rows<'a>(text: &'a str, page: &str, name: &str) -> Result<Vec<Vec<&'a str>>, TaskError> {
    let (begin, end) = (format!("<!-- {name}:begin -->"), format!("<!-- {name}:end -->"));
    let after_begin = text.split_once(&begin).map(|(_, rest)| rest);
    let Some((table, _)) = after_begin.and_then(|rest| rest.split_once(&end)) else {
        return Err(TaskError::new(
            format!("{page} does not have `{begin}` and, below it, `{end}`"),
            "put both comments around the table, each on a line of its own",
        ));
    };
    let lines = table.lines().filter_map(|line| line.trim().strip_prefix('|')?.strip_suffix('|')).skip(2);
    Ok(lines.map(|row| row.split('|').map(str::trim).collect()).collect())
}

fn layers(text: &str) -> Result<Vec<Layer<'_>>, TaskError> {
    rows(text, ARCHITECTURE, "layers")?.iter().map(|cells| Layer::parse(cells)).collect()
}

/// Where the table of crates and the Cargo.toml files differ, and what no table can allow.
fn violations(layers: &[Layer<'_>], packages: &[Package]) -> Vec<String> {
    let mut wrong = Vec::new();
    for package in packages {
        let name = package.name.as_str();
        let Some(layer) = layers.iter().find(|layer| layer.name == name) else {
            wrong.push(format!("{name} has no row in {ARCHITECTURE}"));
            continue;
        };
        if layer.reason.is_empty() {
            wrong.push(format!("the row of {name} does not say why it is a crate"));
        }
        let own = package.dependencies.iter().filter(|dependency| is_own(packages, &dependency.name));
        let (tested, linked): (Vec<_>, Vec<_>) =
            own.partition(|dependency| dependency.kind == DependencyKind::Development);
        for (found, listed, user) in
            [(&linked, &layer.links, ""), (&tested, &layer.tests_link, "the tests of ")]
        {
            let found: Vec<_> = found.iter().map(|dependency| dependency.name.as_str()).collect();
            let new = found.iter().filter(|other| !listed.contains(other));
            wrong.extend(
                new.map(|other| format!("{other} is a dependency of {user}{name}; its row does not list it")),
            );
            let gone = listed.iter().filter(|other| !found.contains(other));
            wrong.extend(
                gone.map(|other| format!("the row of {name} lists {other}; its Cargo.toml does not")),
            );
        }
        if folder(package) == "crates" {
            let is_linked =
                |other: &&Package| linked.iter().any(|dependency| dependency.name == other.name.as_str());
            let testing = packages.iter().filter(|other| folder(other) == "testing").filter(is_linked);
            wrong
                .extend(testing.map(|other| format!("{name} links {}, which is under testing/", other.name)));
        }
    }
    let gone = layers.iter().filter(|layer| !is_own(packages, layer.name));
    wrong.extend(gone.map(|layer| format!("{} has a row, but is not in the workspace", layer.name)));
    wrong
}

fn is_own(packages: &[Package], name: &str) -> bool {
    packages.iter().any(|package| package.name.as_str() == name)
}

/// The folder beside whose other crates this one is: `crates` or `testing`.
fn folder(package: &Package) -> &str {
    package.manifest_path.ancestors().nth(2).and_then(|folder| folder.file_name()).unwrap_or_default()
}

/// Links to external crates that [`EXTERNAL`] does not list.
fn unlisted_externals(packages: &[Package]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, allowed) in EXTERNAL {
        let Some(package) = packages.iter().find(|package| package.name.as_str() == *name) else {
            wrong.push(format!("{name} has a list of external crates, but is not in the workspace"));
            continue;
        };
        let linked = package.dependencies.iter().filter(|dependency| {
            dependency.kind == DependencyKind::Normal && !is_own(packages, &dependency.name)
        });
        let unlisted = linked.filter(|dependency| !allowed.contains(&dependency.name.as_str()));
        wrong.extend(unlisted.map(|dependency| format!("{name} must not link {}", dependency.name)));
    }
    wrong
}

/// The external crates that some Cargo.toml names, each once.
fn external(packages: &[Package]) -> Vec<&str> {
    let all = packages.iter().flat_map(|package| &package.dependencies);
    let mut names: Vec<_> =
        all.map(|dependency| dependency.name.as_str()).filter(|name| !is_own(packages, name)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Errors of the table of external crates, which has one row for each of `names`, with a purpose.
fn dependency_table_errors<'a>(rows: &[Vec<&'a str>], names: &[&str]) -> Vec<String> {
    let name_and_purpose =
        |cells: &Vec<&'a str>| (cells[0].trim_matches('`'), cells.get(1).copied().unwrap_or_default());
    let rows: Vec<_> = rows.iter().map(name_and_purpose).collect();
    let missing = names.iter().filter(|name| !rows.iter().any(|(listed, _)| listed == *name));
    let mut wrong: Vec<_> = missing.map(|name| format!("`{name}` has no row in {DEPENDENCIES}")).collect();
    for (index, (name, purpose)) in rows.iter().enumerate() {
        if !names.contains(name) {
            wrong.push(format!("`{name}` has a row in {DEPENDENCIES}, but no Cargo.toml names it"));
        }
        if purpose.is_empty() {
            wrong.push(format!("the row of `{name}` in {DEPENDENCIES} has no purpose"));
        }
        if rows[..index].iter().any(|(earlier, _)| earlier == name) {
            wrong.push(format!("`{name}` has two rows in {DEPENDENCIES}"));
        }
    }
    wrong
}

/// Words, and the reason against them. Clippy knows methods and types; this knows words, and so sees a whole module or a
/// macro before anything in it is used. A clippy.toml of the crate would also count for its benchmarks and build script.
const FORBIDDEN: &[(&str, &str)] = &[
    (
        r"\b(std::time|SystemTime|Instant)\b",
        "time comes in as an argument, so that a replay sees the same time",
    ),
    // `fs::` stands beside `std::fs` because of `use std::{fs, io}`.
    (
        r"\b(std::(fs|net|env|process)\b|(fs|net|env|process)::)",
        "what is outside comes in as an argument and goes out as a value, so that a simulation can be both",
    ),
    (
        r"\b(std::thread\b|thread::|(tokio|async fn)\b)",
        "one thread decides in one order, so that the same commands always lead to the same events",
    ),
    (
        r"\b(rand|getrandom|RandomState)\b",
        "a random value comes in as an argument, so that a seed repeats everything",
    ),
    (r"\be?print(ln)?!", "a library speaks in values; its caller decides what is shown"),
];

/// The first forbidden word of each line in the program of `text`: line, word, reason.
fn forbidden_words(text: &str) -> Vec<(usize, &str, &'static str)> {
    let forbidden = FORBIDDEN.iter().map(|(words, reason)| (Regex::new(words).expect("a pattern"), *reason));
    let forbidden: Vec<_> = forbidden.collect();
    let lines = SourceLines::parse(text).program.into_iter();
    let found = lines.filter_map(|(number, line)| {
        forbidden.iter().find_map(|(words, reason)| Some((number, words.find(line)?.as_str(), *reason)))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A package as `cargo metadata` prints it.
    fn package(path: &str, dependencies: &[(&str, &str)]) -> Package {
        let dependency = |(name, kind): &(&str, &str)| {
            json!({ "name": name, "kind": kind, "req": "*", "optional": false, "uses_default_features": true,
                    "features": [], "target": null, "rename": null, "registry": null, "source": null })
        };
        let name = path.rsplit('/').next().expect("a name");
        let value = json!({
            "name": name, "version": "0.1.0", "id": name, "manifest_path": format!("/w/{path}/Cargo.toml"),
            "targets": [], "features": {}, "dependencies": dependencies.iter().map(dependency).collect::<Vec<_>>(),
        });
        serde_json::from_value(value).expect("a package")
    }

    /// What is wrong with `core`, `server` and `kit`, where the server has these dependencies and this row.
    fn server_violations(dependencies: &[(&str, &str)], row: &str) -> Vec<String> {
        let packages = [
            package("crates/core", &[("prost", "normal"), ("proptest", "dev")]),
            package("crates/server", dependencies),
            package("testing/kit", &[("core", "normal"), ("server", "normal")]),
        ];
        let text = format!(
            "<!-- layers:begin -->\n| crate | content | links | why |\n|---|---|---|---|\n| `core` | `a.rs` | – | pure |\n\
             {row}\n| `kit` | servers | `core`, `server` | a fixture |\n<!-- layers:end -->\n"
        );
        violations(&layers(&text).expect("a table"), &packages)
    }

    #[test]
    fn dependencies_in_the_table_are_allowed() {
        let dependencies = [("core", "normal"), ("kit", "dev"), ("rustix", "normal")];
        assert_eq!(
            server_violations(&dependencies, "| `server` | routes | `core`; tests: `kit` | why |"),
            [""; 0]
        );
    }

    #[test]
    fn product_crate_may_use_testing_crate_only_for_its_tests() {
        for kind in ["normal", "build"] {
            // Even a row that lists it does not allow it.
            let wrong = server_violations(&[("kit", kind)], "| `server` | routes | `kit` | why |");
            assert_eq!(wrong, ["server links kit, which is under testing/"]);
        }
    }

    #[test]
    fn differences_between_row_and_manifest_are_named() {
        let unlisted = "core is a dependency of server; its row does not list it";
        for (dependencies, row, expected) in [
            (&[("core", "normal")][..], "– | why", unlisted),
            (&[("core", "build")], "tests: `core` | why", unlisted),
            (
                &[("core", "dev")],
                "– | why",
                "core is a dependency of the tests of server; its row does not list it",
            ),
            (&[], "`core` | why", "the row of server lists core; its Cargo.toml does not"),
            (&[], "– | ", "the row of server does not say why it is a crate"),
        ] {
            let wrong = server_violations(dependencies, &format!("| `server` | routes | {row} |"));
            assert_eq!(wrong.first().map(String::as_str), Some(expected), "{wrong:?}");
        }
    }

    #[test]
    fn crate_and_table_mismatches_are_named() {
        assert_eq!(
            server_violations(&[], "| `gone` | routes | – | why |"),
            ["server has no row in ARCHITECTURE.md", "gone has a row, but is not in the workspace"]
        );
    }

    #[test]
    fn crates_with_a_list_link_no_other_external_crate() {
        let core = [("prost", "normal"), ("protox", "build"), ("proptest", "dev"), ("tokio", "normal")];
        let packages = [
            package("crates/tenure-core", &core),
            package("crates/tenure-control", &[]),
            package("crates/tenure-device", &[]),
        ];
        assert_eq!(
            unlisted_externals(&packages),
            [
                "tenure-core must not link tokio",
                "tenure-api has a list of external crates, but is not in the workspace"
            ]
        );
        assert_eq!(external(&packages), ["proptest", "prost", "protox", "tokio"]);
    }

    #[test]
    fn a_missing_comment_or_cell_is_named() {
        for text in ["", "<!-- layers:begin -->", "<!-- layers:end --> <!-- layers:begin -->"] {
            let problem = rows(text, ARCHITECTURE, "layers").expect_err(text).to_string();
            assert!(problem.contains("`<!-- layers:begin -->`"), "{problem}");
        }
        let text = "<!-- layers:begin -->\n| a | b |\n|---|---|\n| `x` | why |\n<!-- layers:end -->\n";
        let problem = layers(text).err().expect("two cells").to_string();
        assert!(problem.contains("has 2 cells"), "{problem}");
    }

    #[test]
    fn each_dependency_has_one_line_with_its_purpose() {
        let wrong = |table: &[&[&str]]| {
            let table: Vec<_> = table.iter().map(|cells| cells.to_vec()).collect();
            dependency_table_errors(&table, &["clap", "prost"])
        };
        assert_eq!(wrong(&[&["`prost`", "stored events"], &["clap", "the command line"]]), [""; 0]);
        for (table, expected) in [
            (&[&["`prost`", "stored events"][..]][..], "`clap` has no row in docs/dependencies.md"),
            (
                &[&["prost", "a"], &["clap", "b"], &["tokio", "c"]],
                "`tokio` has a row in docs/dependencies.md, but no Cargo.toml names it",
            ),
            (&[&["prost", "a"], &["clap", ""]], "the row of `clap` in docs/dependencies.md has no purpose"),
            (
                &[&["prost", "a"], &["clap", "b"], &["`clap`", "c"]],
                "`clap` has two rows in docs/dependencies.md",
            ),
        ] {
            assert_eq!(wrong(table), [expected]);
        }
    }

    #[test]
    fn repository_matches_its_tables() {
        let problem = check(&Workspace::find().expect("the repository")).err();
        assert!(problem.is_none(), "{}", problem.expect("a problem"));
    }

    #[test]
    fn a_forbidden_word_is_found_with_its_line_and_reason() {
        let found = forbidden_words("fn a() {\n    let now = std::time::Instant::now();\n}\n");
        assert_eq!(found, [(2, "std::time", FORBIDDEN[0].1)]);
        for line in [
            "let a = fs::read(b);",
            "use std::{fs, io}; fs::read(a)",
            "use std::env;",
            "process::exit(1)",
            "std::thread::spawn(a)",
            "tokio::spawn(a)",
            "pub async fn a() {}",
            "println!(\"a\");",
            "eprint!(\"a\");",
            "use rand::Rng;",
            "let a: RandomState;",
            "fn a(b: SystemTime) {}",
            "use std::net;",
        ] {
            assert_eq!(forbidden_words(line).len(), 1, "{line}");
        }
    }

    #[test]
    fn comments_tests_and_longer_words_do_not_count() {
        for text in [
            "// no std::time here\n",
            "/// Never calls println!\nfn a() {}\n",
            "let operand = strand(Instantly, offs::et, rules::time::is_over);\n",
            "fn a() {}\n#[cfg(test)]\nmod tests {\n    use std::time::Instant;\n}\n",
        ] {
            assert_eq!(forbidden_words(text).len(), 0, "{text}");
        }
    }
}
