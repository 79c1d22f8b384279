//! Who may depend on whom, and what the pure crates must not mention.

use std::fmt::Write;
use std::ops::Range;

use cargo_metadata::{DependencyKind, Package};
use regex::Regex;
use serde::Deserialize;

use crate::process::TaskError;
use crate::source_lines::{SourceLines, is_test_file};
use crate::workspace::Workspace;

/// Checks who depends on whom against the table in xtask/layers.toml
///
/// Compares that table with every Cargo.toml and with the table in ARCHITECTURE.md, compares the
/// external dependencies with the list in ARCHITECTURE.md, and sees that the pure crates are pure.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write the table into ARCHITECTURE.md instead of comparing it
    #[arg(long)]
    write: bool,
}

/// xtask/layers.toml, which explains its fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Layers {
    layer: Vec<Layer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Layer {
    name: String,
    uses: Vec<String>,
    external: Option<Vec<String>>,
    reason: String,
    #[serde(default)]
    pure: bool,
    #[serde(default)]
    for_tests: bool,
}

/// Checks everything, or writes the table.
pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<(), TaskError> {
    if !arguments.write {
        return check(workspace);
    }
    let mut text = workspace.shell.read_file(ARCHITECTURE)?;
    let place = marked_range(&text, "layers")?;
    text.replace_range(place, &format!("\n{}", table(&layers(workspace)?)));
    Ok(workspace.shell.write_file(ARCHITECTURE, text)?)
}

/// Checks everything that the table promises.
pub fn check(workspace: &Workspace) -> Result<(), TaskError> {
    let layers = layers(workspace)?;
    let mut wrong = violations(&layers, &workspace.packages);
    for layer in layers.iter().filter(|layer| layer.pure) {
        for (path, text) in workspace.sources(&format!("crates/{}/src", layer.name), &["rs"])? {
            let found = if is_test_file(&path) { Vec::new() } else { forbidden_words(&text) };
            wrong.extend(found.iter().map(|(line, word, reason)| {
                format!("{}:{line} mentions `{word}`: {reason}", path.display())
            }));
        }
    }
    if !wrong.is_empty() {
        return Err(TaskError::new(
            format!("a layer does what it must not:\n  {}", wrong.join("\n  ")),
            "take the dependency or the call out; if the promise shall change, change xtask/layers.toml or \
             xtask/src/layers.rs, and record the decision in docs/adr",
        ));
    }
    let text = workspace.shell.read_file(ARCHITECTURE)?;
    check_table(&text, &table(&layers))?;
    let wrong =
        dependency_table_errors(&text[marked_range(&text, "dependencies")?], &external(&workspace.packages));
    if wrong.is_empty() {
        return Ok(());
    }
    Err(TaskError::new(
        format!("the table of dependencies in ARCHITECTURE.md is wrong:\n  {}", wrong.join("\n  ")),
        "mend the lines `| name | what it is for |` in ARCHITECTURE.md, or take the dependency out",
    ))
}

fn layers(workspace: &Workspace) -> Result<Vec<Layer>, TaskError> {
    Ok(workspace.read_toml::<Layers>("xtask/layers.toml")?.layer)
}

/// What the Cargo.toml files say and the table does not allow.
fn violations(layers: &[Layer], packages: &[Package]) -> Vec<String> {
    let mut wrong = Vec::new();
    let named = |name: &str| layers.iter().find(|layer| layer.name == name);
    for package in packages {
        let Some(layer) = named(&package.name) else {
            wrong.push(format!("{} has no line in the table", package.name));
            continue;
        };
        for dependency in &package.dependencies {
            let name = &dependency.name;
            let is_allowed = if named(name).is_some_and(|layer| layer.for_tests) {
                dependency.kind == DependencyKind::Development
            } else if is_ours(packages, name) {
                layer.uses.contains(name)
            } else {
                dependency.kind != DependencyKind::Normal
                    || layer.external.as_ref().is_none_or(|allowed| allowed.contains(name))
            };
            if !is_allowed {
                wrong.push(format!("{} depends on {name}; {}", layer.name, layer.reason));
            }
        }
    }
    let missing = layers.iter().filter(|layer| !is_ours(packages, &layer.name));
    wrong.extend(missing.map(|layer| format!("{} is in the table, but not in the workspace", layer.name)));
    wrong
}

fn is_ours(packages: &[Package], name: &str) -> bool {
    packages.iter().any(|package| package.name.as_str() == name)
}

/// The crates from elsewhere that some Cargo.toml names, each once.
fn external(packages: &[Package]) -> Vec<&str> {
    let all = packages.iter().flat_map(|package| &package.dependencies);
    let mut names: Vec<_> =
        all.map(|dependency| dependency.name.as_str()).filter(|name| !is_ours(packages, name)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The table as ARCHITECTURE.md shows it.
fn table(layers: &[Layer]) -> String {
    let mut table = String::from("| crate | may use | why |\n|---|---|---|\n");
    for layer in layers {
        let uses: Vec<_> = layer.uses.iter().map(|name| format!("`{name}`")).collect();
        let uses = if uses.is_empty() { "–".to_owned() } else { uses.join(", ") };
        writeln!(table, "| `{}` | {uses} | {} |", layer.name, layer.reason).expect("writing into a string");
    }
    table
}

/// Two tables of it are checked, each between two comments: `<!-- layers:begin -->` and `<!-- layers:end -->`.
const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// A problem unless `text` shows the table `right`.
fn check_table(text: &str, right: &str) -> Result<(), TaskError> {
    if text[marked_range(text, "layers")?].trim() == right.trim() {
        return Ok(());
    }
    Err(TaskError::new(
        format!("ARCHITECTURE.md shows another table of the layers than xtask/layers.toml:\n\n{right}"),
        "run `cargo xtask layers --write`",
    ))
}

/// Where the part called `name` is, without its two comments.
fn marked_range(text: &str, name: &str) -> Result<Range<usize>, TaskError> {
    let (begin, end) = (format!("<!-- {name}:begin -->"), format!("<!-- {name}:end -->"));
    let start = text.find(&begin).map(|position| position + begin.len());
    let stop = start.and_then(|start| Some(start + text[start..].find(&end)?));
    start.zip(stop).map(|(start, stop)| start..stop).ok_or_else(|| {
        TaskError::new(
            format!("ARCHITECTURE.md does not hold `{begin}` and, below it, `{end}`"),
            "put both comments around the table, each on a line of its own",
        )
    })
}

/// What is wrong with the table of dependencies: it has one line for each of `names`, which says what it is for.
fn dependency_table_errors(table: &str, names: &[&str]) -> Vec<String> {
    let lines = table.lines().filter_map(|line| line.trim().strip_prefix('|')).skip(2);
    let rows: Vec<_> = lines
        .map(|row| {
            let mut cells = row.split('|').map(str::trim);
            (cells.next().unwrap_or_default().trim_matches('`'), cells.next().unwrap_or_default())
        })
        .collect();
    let missing = names.iter().filter(|name| !rows.iter().any(|(listed, _)| listed == *name));
    let mut wrong: Vec<_> = missing.map(|name| format!("`{name}` has no line")).collect();
    for (index, (name, purpose)) in rows.iter().enumerate() {
        if !names.contains(name) {
            wrong.push(format!("`{name}` has a line, but no Cargo.toml names it"));
        }
        if purpose.is_empty() {
            wrong.push(format!("the line of `{name}` does not say what it is for"));
        }
        if rows[..index].iter().any(|(earlier, _)| earlier == name) {
            wrong.push(format!("`{name}` has two lines"));
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

    fn committed() -> Vec<Layer> {
        layers(&Workspace::find().expect("the repository")).expect("xtask/layers.toml")
    }

    /// A package as `cargo metadata` prints it.
    fn package(name: &str, dependencies: &[(&str, &str)]) -> Package {
        let dependency = |(name, kind): &(&str, &str)| {
            json!({ "name": name, "kind": kind, "req": "*", "optional": false, "uses_default_features": true,
                    "features": [], "target": null, "rename": null, "registry": null, "source": null })
        };
        let value = json!({
            "name": name, "version": "0.1.0", "id": name, "manifest_path": "/Cargo.toml", "targets": [], "features": {},
            "dependencies": dependencies.iter().map(dependency).collect::<Vec<_>>(),
        });
        serde_json::from_value(value).expect("a package")
    }

    /// The workspace as the table describes it, with what `more` adds.
    fn packages(more: &[(&str, &str, &'static str)]) -> Vec<Package> {
        let dependencies = |name: &str| {
            let added = more.iter().filter(|(from, ..)| *from == name);
            added.map(|(_, to, kind)| (*to, *kind)).collect::<Vec<_>>()
        };
        committed().iter().map(|layer| package(&layer.name, &dependencies(&layer.name))).collect()
    }

    #[test]
    fn dependencies_in_the_table_are_allowed() {
        let packages = packages(&[
            ("tenure-core", "prost", "normal"),
            ("tenure-core", "protox", "build"),
            ("tenure-core", "proptest", "dev"),
            ("tenure-registrar", "tenure-core", "normal"),
            ("tenure-registrar", "rustix", "normal"),
            ("tenure-server", "tenure-testkit", "dev"),
        ]);
        assert_eq!(violations(&committed(), &packages), [""; 0]);
        assert_eq!(external(&packages), ["proptest", "prost", "protox", "rustix"]);
    }

    #[test]
    fn a_dependency_that_is_not_in_the_table_is_named() {
        for (from, to, kind) in [
            ("tenure-core", "tokio", "normal"),
            ("tenure-core", "tenure-registrar", "normal"),
            ("tenure-core", "tenure-sim", "dev"),
            ("tenure-client", "tenure-registrar", "normal"),
            ("tenure", "tenure-sim", "build"),
            ("xtask", "tenure-sim", "normal"),
            ("tenure", "tenure-testkit", "normal"),
            ("tenure-server", "tenure-testkit", "build"),
        ] {
            let wrong = violations(&committed(), &packages(&[(from, to, kind)]));
            assert_eq!(wrong.len(), 1, "{wrong:?}");
            assert!(wrong[0].starts_with(&format!("{from} depends on {to}; ")), "{wrong:?}");
        }
    }

    #[test]
    fn crate_and_table_mismatches_are_named() {
        let mut packages = packages(&[]);
        packages[0] = package("tenure-other", &[]);
        assert_eq!(
            violations(&committed(), &packages),
            [
                "tenure-other has no line in the table",
                "tenure-core is in the table, but not in the workspace"
            ]
        );
    }

    #[test]
    fn each_layer_uses_only_layers_below_it() {
        let layers = committed();
        for (index, layer) in layers.iter().enumerate() {
            for used in &layer.uses {
                let is_below = layers[..index].iter().any(|below| below.name == *used);
                assert!(is_below, "{} uses {used}", layer.name);
            }
        }
    }

    #[test]
    fn layer_table_in_architecture_must_match() {
        let text = "a\n<!-- layers:begin -->\n| x |\n|---|\n<!-- layers:end -->\nb\n";
        assert!(check_table(text, "| x |\n|---|\n").is_ok());
        let problem = check_table(text, "| y |\n|---|\n").expect_err("x is not y").to_string();
        assert!(problem.contains("| y |"), "{problem}");
    }

    #[test]
    fn a_missing_comment_is_named() {
        for text in ["", "<!-- layers:begin -->", "<!-- layers:end --> <!-- layers:begin -->"] {
            let problem = marked_range(text, "layers").expect_err(text).to_string();
            assert!(problem.contains("`<!-- layers:begin -->`"), "{problem}");
        }
    }

    #[test]
    fn each_dependency_has_one_line_with_its_purpose() {
        let wrong = |rows: &str| {
            dependency_table_errors(&format!("| name | for |\n|---|---|\n{rows}\n"), &["clap", "prost"])
        };
        assert_eq!(wrong("| `prost` | stored events |\n| clap | the command line |"), [""; 0]);
        for (rows, expected) in [
            ("| `prost` | stored events |", "`clap` has no line"),
            ("| prost | a |\n| clap | b |\n| tokio | c |", "`tokio` has a line, but no Cargo.toml names it"),
            ("| prost | a |\n| clap | |", "the line of `clap` does not say what it is for"),
            ("| prost | a |\n| clap | b |\n| `clap` | c |", "`clap` has two lines"),
        ] {
            assert_eq!(wrong(rows), [expected]);
        }
    }

    #[test]
    fn writing_replaces_the_table_and_nothing_else() {
        let shell = xshell::Shell::new().expect("a shell");
        let folder = shell.create_temp_dir().expect("a folder");
        shell.change_dir(folder.path());
        let before = "a\n<!-- layers:begin -->\nold\n<!-- layers:end -->\nb\n";
        shell.write_file(ARCHITECTURE, before).expect("a file");
        let layers = "[[layer]]\nname = \"x\"\nuses = []\nreason = \"y\"\n";
        shell.write_file("xtask/layers.toml", layers).expect("a file");
        let workspace = Workspace { shell, root: "".into(), target: "".into(), packages: Vec::new() };
        run(&workspace, &Arguments { write: true }).expect("written");
        let table = "| crate | may use | why |\n|---|---|---|\n| `x` | – | y |\n";
        let after = workspace.shell.read_file(ARCHITECTURE).expect("a file");
        assert_eq!(after, format!("a\n<!-- layers:begin -->\n{table}<!-- layers:end -->\nb\n"));
    }

    #[test]
    fn repository_matches_the_layer_table() {
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
