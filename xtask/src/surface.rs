//! The surface: everything that users' scripts, programs and stored data rely on, as text files in docs/surface.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::dereferenced::dereferenced;
use crate::problem::Problem;
use crate::process::{self, say};
use crate::source::{Source, is_test_file};
use crate::workspace::{Workspace, files_below};

/// Compare the surface with docs/surface: routes, error codes, exit codes, environment variables, stored events
///
/// Descriptions and the names of OpenAPI components are not part of it. A test of the program compares
/// docs/surface/command-line.txt: commands, flags and configuration keys.
#[derive(clap::Args)]
pub struct Arguments {
    /// Write the files instead of comparing them
    #[arg(long)]
    write: bool,
    /// Show where docs/openapi.json promises something else than at this commit
    #[arg(long, value_name = "COMMIT", conflicts_with = "write")]
    since: Option<String>,
}

/// Compares, writes or explains.
pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<(), Problem> {
    if let Some(commit) = &arguments.since {
        return explain(workspace, commit);
    }
    for (name, text) in files(workspace)? {
        let path = workspace.root.join("docs/surface").join(name);
        if arguments.write {
            fs::write(&path, text).map_err(|error| Problem::file(&path, &error))?;
        } else {
            compare(&path, &text)?;
        }
    }
    Ok(())
}

/// Compares every file.
pub fn check(workspace: &Workspace) -> Result<(), Problem> {
    run(workspace, &Arguments { write: false, since: None })
}

fn compare(path: &Path, now: &str) -> Result<(), Problem> {
    let committed = fs::read_to_string(path).map_err(|error| Problem::file(path, &error))?;
    let (before, after): (BTreeSet<_>, BTreeSet<_>) = (committed.lines().collect(), now.lines().collect());
    let removed = before.difference(&after).map(|line| format!("- {line}"));
    let added = after.difference(&before).map(|line| format!("+ {line}"));
    let changes: Vec<_> = removed.chain(added).collect();
    if committed == now {
        return Ok(());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Err(Problem::new(
        format!("the surface is not that of docs/surface/{name}:\n  {}", changes.join("\n  ")),
        "what users rely on has changed: `-` may break them",
        "undo the change, or write the files with `cargo xtask surface --write` and say it in CHANGELOG.md; \
         `cargo xtask surface --since HEAD` shows what changed in a route",
    ))
}

/// The files below docs/surface, with what the sources say now.
fn files(workspace: &Workspace) -> Result<Vec<(&'static str, String)>, Problem> {
    let openapi = document(&workspace.read("docs/openapi.json")?)?;
    Ok(vec![
        ("http.txt", routes(&dereferenced(&openapi))),
        ("error-codes.txt", error_codes(workspace)?),
        ("exit-codes.txt", exit_codes(&workspace.read("crates/tenure/src/exit.rs")?)),
        ("environment.txt", lines(literals(workspace, "crates", is_environment_variable)?)),
        ("event-types.txt", lines(literals(workspace, "crates/tenure-core/src", is_event_type)?)),
        ("stored.txt", stored(&workspace.read("proto/tenure.proto")?)),
    ])
}

fn document(text: &str) -> Result<Value, Problem> {
    serde_json::from_str(text).map_err(|error| {
        let remedy = "write it anew with `cargo xtask openapi --write`";
        Problem::new(format!("docs/openapi.json: {error}"), "the routes are not known", remedy)
    })
}

/// One line per operation: method, path, statuses, and a digest of everything that it promises.
fn routes(document: &Value) -> String {
    let mut text = String::new();
    for (path, operations) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in operations.as_object().into_iter().flatten() {
            let statuses =
                operation["responses"].as_object().into_iter().flatten().map(|(status, _)| status.as_str());
            let statuses = statuses.collect::<Vec<_>>().join(" ");
            let digest = blake3::hash(operation.to_string().as_bytes()).to_hex();
            writeln!(text, "{} {path}  {statuses}  {}", method.to_uppercase(), &digest[..16])
                .expect("a string");
        }
    }
    text
}

/// One page per code; a test of the server compares the pages with the code.
fn error_codes(workspace: &Workspace) -> Result<String, Problem> {
    let pages = files_below(&workspace.root.join("docs/errors"))?;
    let names = pages.iter().filter_map(|page| Some(page.file_stem()?.to_str()?.to_owned()));
    Ok(lines(
        names
            .filter(|name| name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_'))
            .collect(),
    ))
}

fn exit_codes(text: &str) -> String {
    let codes = text.lines().filter_map(|line| {
        let (_, code) = line.strip_prefix("pub const ")?.split_once(": u8 = ")?;
        code.strip_suffix(';')?.parse::<u8>().ok()
    });
    codes.collect::<BTreeSet<_>>().iter().map(|code| format!("{code}\n")).collect()
}

/// The string literals of the program below `folder` that `is_wanted` accepts.
fn literals(
    workspace: &Workspace,
    folder: &str,
    is_wanted: fn(&str) -> bool,
) -> Result<BTreeSet<String>, Problem> {
    let mut found = BTreeSet::new();
    for path in files_below(&workspace.root.join(folder))? {
        let below = path.strip_prefix(&workspace.root).unwrap_or(&path);
        if below.extension().is_none_or(|extension| extension != "rs") || is_test_file(below) {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(|error| Problem::file(&path, &error))?;
        for (_, line) in Source::parse(&text).program {
            found
                .extend(line.split('"').skip(1).step_by(2).filter(|word| is_wanted(word)).map(str::to_owned));
        }
    }
    Ok(found)
}

fn is_environment_variable(word: &str) -> bool {
    let is_name = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
    ["TENURE_", "XG2G_"].iter().any(|prefix| word.starts_with(prefix)) && word.chars().all(is_name)
}

fn is_event_type(word: &str) -> bool {
    let is_name = |part: &str| {
        !part.is_empty() && part.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_')
    };
    // `scope.tools` and its like are fields that an error names.
    word.split_once('.').is_some_and(|(family, name)| is_name(family) && is_name(name) && family != "scope")
}

/// The protobuf definition without comments.
fn stored(text: &str) -> String {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default().trim_end());
    code.filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect()
}

fn lines(words: BTreeSet<String>) -> String {
    words.iter().map(|word| format!("{word}\n")).collect()
}

/// Prints each place where the OpenAPI document differs from the one of `commit`, both without references.
fn explain(workspace: &Workspace, commit: &str) -> Result<(), Problem> {
    let mut git = process::command("git");
    git.args(["show", &format!("{commit}:docs/openapi.json")]).current_dir(&workspace.root);
    let before =
        process::output(&mut git, "there is nothing to compare with", "name a commit of this repository")?;
    let (before, now) =
        (dereferenced(&document(&before)?), dereferenced(&document(&workspace.read("docs/openapi.json")?)?));
    let mut places = Vec::new();
    differences("", &before, &now, &mut places);
    places.iter().for_each(|place| say(place));
    say(&format!("{} differences", places.len()));
    Ok(())
}

fn differences(place: &str, before: &Value, now: &Value, places: &mut Vec<String>) {
    match (before, now) {
        (Value::Object(old), Value::Object(new)) => {
            let keys: BTreeSet<_> = old.keys().chain(new.keys()).collect();
            for key in keys {
                let place = format!("{place}/{key}");
                differences(
                    &place,
                    old.get(key).unwrap_or(&Value::Null),
                    new.get(key).unwrap_or(&Value::Null),
                    places,
                );
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                differences(&format!("{place}/{index}"), old, new, places);
            }
        }
        _ if before == now => {}
        _ => places.push(format!("{place}: {} -> {}", shortened(before), shortened(now))),
    }
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 80 { text } else { text.chars().take(77).chain("...".chars()).collect() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_changed_response_changes_the_line_of_its_route_alone() {
        let document = |kind: &str| {
            json!({"paths": {
                "/a": {"get": {"responses": {"200": {"type": kind}}}},
                "/b": {"post": {"responses": {"201": {}, "400": {}}}},
            }})
        };
        let (before, now) = (routes(&document("string")), routes(&document("integer")));
        assert!(before.starts_with("GET /a  200  "), "{before}");
        assert!(before.contains("\nPOST /b  201 400  "), "{before}");
        assert_ne!(before.lines().next(), now.lines().next());
        assert_eq!(before.lines().last(), now.lines().last());
        let mut places = Vec::new();
        differences("", &document("string"), &document("integer"), &mut places);
        assert_eq!(places, [r#"/paths/~a/get/responses/200/type: "string" -> "integer""#.replace("~", "/")]);
    }

    #[test]
    fn literals_are_told_apart() {
        assert!(is_environment_variable("TENURE_URL") && is_environment_variable("XG2G_IDEM_SECRET"));
        assert!(!is_environment_variable("TENURE_url") && !is_environment_variable("HOME"));
        assert!(is_event_type("lease.issue_denied"));
        assert!(
            ["lease", "lease.", ".issued", "Lease.issued", "a.b.c", "a b.c"]
                .iter()
                .all(|word| !is_event_type(word))
        );
    }

    #[test]
    fn comments_are_not_stored() {
        assert_eq!(
            stored("// a\nmessage A { // b\n\n  string c = 1;\n}\n"),
            "message A {\n  string c = 1;\n}\n"
        );
        assert_eq!(
            exit_codes("/// a\npub const A: u8 = 64;\npub const B: u8 = 1;\nconst C: u16 = 2;\n"),
            "1\n64\n"
        );
    }
}
