//! The surface: everything that users' scripts, programs and stored data rely on, as text files in docs/surface.

use std::collections::BTreeSet;
use std::fmt::{Display, Write};

use regex::Regex;
use serde_json::{Map, Value};
use xshell::cmd;

use crate::openapi_references::resolve_references;
use crate::process::{self, TaskError, print_line};
use crate::source_lines::{SourceLines, is_test_file};
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
pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<(), TaskError> {
    if let Some(commit) = &arguments.since {
        return print_differences(workspace, commit);
    }
    for (name, text) in files(workspace)? {
        let path = format!("docs/surface/{name}");
        if arguments.write {
            workspace.shell.write_file(&path, text)?;
        } else {
            compare(&path, &workspace.shell.read_file(&path)?, &text)?;
        }
    }
    Ok(())
}

/// Compares every file.
pub fn check(workspace: &Workspace) -> Result<(), TaskError> {
    run(workspace, &Arguments { write: false, since: None })
}

fn compare(path: &str, committed: &str, now: &str) -> Result<(), TaskError> {
    if committed == now {
        return Ok(());
    }
    let (before, after): (BTreeSet<_>, BTreeSet<_>) = (committed.lines().collect(), now.lines().collect());
    let removed = before.difference(&after).map(|line| format!("- {line}"));
    let added = after.difference(&before).map(|line| format!("+ {line}"));
    let changes: Vec<_> = removed.chain(added).collect();
    Err(TaskError::new(
        format!("the surface is not that of {path}, `-` may break users:\n  {}", changes.join("\n  ")),
        "undo the change, or write the files with `cargo xtask surface --write` and say it in CHANGELOG.md; \
         `cargo xtask surface --since HEAD` shows what changed in a route",
    ))
}

/// The files below docs/surface, with what the sources say now.
fn files(workspace: &Workspace) -> Result<Vec<(&'static str, String)>, TaskError> {
    let read = |file: &str| workspace.shell.read_file(file);
    let environment = literals(workspace, "crates", ENVIRONMENT_VARIABLE)?;
    let mut event_types = literals(workspace, "crates/tenure-core/src", EVENT_TYPE)?;
    // `scope.tools` and its like are fields that an error names.
    event_types.retain(|name| !name.starts_with("scope."));
    Ok(vec![
        ("http.txt", routes(&document(&read("docs/openapi.json")?)?)),
        ("error-codes.txt", error_codes(workspace)?),
        ("exit-codes.txt", exit_codes(&read("crates/tenure/src/exit.rs")?)),
        ("environment.txt", to_lines(environment)),
        ("event-types.txt", to_lines(event_types)),
        ("protobuf.txt", protobuf_definition(&read("proto/tenure.proto")?)),
    ])
}

/// An OpenAPI document without references.
fn document(text: &str) -> Result<Value, TaskError> {
    let hint = "write it anew with `cargo xtask openapi --write`";
    let document = serde_json::from_str(text);
    let document = document.map_err(|error| TaskError::new(format!("docs/openapi.json: {error}"), hint))?;
    Ok(resolve_references(&document))
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
fn error_codes(workspace: &Workspace) -> Result<String, TaskError> {
    let pages = files_below(&workspace.shell, &workspace.root.join("docs/errors"))?;
    let names = pages.iter().filter_map(|page| Some(page.file_stem()?.to_str()?.to_owned()));
    let is_code = |name: &String| name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_');
    Ok(to_lines(names.filter(is_code).collect()))
}

fn exit_codes(text: &str) -> String {
    let codes = text.lines().filter_map(|line| {
        let (_, code) = line.strip_prefix("pub const ")?.split_once(": u8 = ")?;
        code.strip_suffix(';')?.parse::<u8>().ok()
    });
    to_lines(codes.collect())
}

const ENVIRONMENT_VARIABLE: &str = "^(TENURE|XG2G)_[A-Z0-9_]*$";
const EVENT_TYPE: &str = r"^[a-z_]+\.[a-z_]+$";

/// The string literals of the program below `folder` that match `pattern`.
fn literals(workspace: &Workspace, folder: &str, pattern: &str) -> Result<BTreeSet<String>, TaskError> {
    let pattern = Regex::new(pattern).expect("a pattern");
    let mut found = BTreeSet::new();
    for (_, text) in workspace.sources(folder, &["rs"])?.iter().filter(|(path, _)| !is_test_file(path)) {
        for (_, line) in SourceLines::parse(text).program {
            let literals = line.split('"').skip(1).step_by(2).filter(|word| pattern.is_match(word));
            found.extend(literals.map(str::to_owned));
        }
    }
    Ok(found)
}

/// The protobuf definition without comments.
fn protobuf_definition(text: &str) -> String {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default().trim_end());
    code.filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect()
}

fn to_lines<T: Display>(items: BTreeSet<T>) -> String {
    items.iter().map(|item| format!("{item}\n")).collect()
}

/// Prints each place where the OpenAPI document differs from the one of `commit`, both without references.
fn print_differences(workspace: &Workspace, commit: &str) -> Result<(), TaskError> {
    let show = cmd!(workspace.shell, "git show {commit}:docs/openapi.json");
    let before = process::output(show, "name a commit of this repository")?;
    let now = workspace.shell.read_file("docs/openapi.json")?;
    let mut places = Vec::new();
    differences("", &document(&before)?, &document(&now)?, &mut places);
    places.iter().for_each(|place| print_line(place));
    print_line(&format!("{} differences", places.len()));
    Ok(())
}

fn differences(place: &str, before: &Value, now: &Value, places: &mut Vec<String>) {
    match (before, now) {
        (Value::Object(old), Value::Object(new)) => {
            for key in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
                let value = |fields: &Map<String, Value>| fields.get(key).cloned().unwrap_or_default();
                differences(&format!("{place}/{key}"), &value(old), &value(new), places);
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
    fn literal_patterns_match_only_their_kind() {
        let is_match = |pattern: &str, word: &str| Regex::new(pattern).expect("a pattern").is_match(word);
        let is_environment_variable = |word: &str| is_match(ENVIRONMENT_VARIABLE, word);
        assert!(is_environment_variable("TENURE_URL") && is_environment_variable("XG2G_IDEM_SECRET"));
        assert!(!is_environment_variable("TENURE_url") && !is_environment_variable("HOME"));
        let is_event_type = |word: &str| is_match(EVENT_TYPE, word);
        assert!(is_event_type("lease.issue_denied"));
        for word in ["lease", "lease.", ".issued", "Lease.issued", "a.b.c", "a b.c"] {
            assert!(!is_event_type(word), "{word}");
        }
    }

    #[test]
    fn protobuf_comments_and_non_u8_exit_codes_are_omitted() {
        assert_eq!(
            protobuf_definition("// a\nmessage A { // b\n\n  string c = 1;\n}\n"),
            "message A {\n  string c = 1;\n}\n"
        );
        assert_eq!(
            exit_codes("/// a\npub const A: u8 = 64;\npub const B: u8 = 1;\nconst C: u16 = 2;\n"),
            "1\n64\n"
        );
    }
}
