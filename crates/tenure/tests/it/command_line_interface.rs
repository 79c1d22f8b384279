//! What scripts rely on: commands, arguments, flags and configuration keys, as docs/surface/command-line.txt has them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Set it to write the file instead of comparing it.
const WRITE: &str = "TENURE_WRITE_GOLDEN";

#[test]
fn commands_flags_and_configuration_keys_match_the_surface_file() {
    let mut lines = Vec::new();
    walk(&mut Vec::new(), &mut lines);
    assert!(lines.len() > 200, "the help was not understood: {lines:?}");
    lines.extend(configuration_keys().into_iter().map(|key| format!("configuration {key}")));
    let now = lines.join("\n") + "\n";
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/surface/command-line.txt");
    if std::env::var_os(WRITE).is_some() {
        fs::write(&path, now).expect("written");
        return;
    }
    let committed = fs::read_to_string(&path).expect("docs/surface/command-line.txt");
    let missing: Vec<_> = committed.lines().filter(|line| !lines.iter().any(|now| now == line)).collect();
    let added: Vec<_> =
        lines.iter().filter(|line| !committed.lines().any(|before| before == *line)).collect();
    assert!(
        committed == now,
        "removed: {missing:#?}\nadded: {added:#?}\n{WRITE}=1 writes the file; a removed line breaks users"
    );
}

/// Adds a line for the command at `path` and for each of its arguments and flags, and goes on with its subcommands.
fn walk(path: &mut Vec<String>, lines: &mut Vec<String>) {
    let help = run(&[path.iter().map(String::as_str).collect(), vec!["--help"]].concat());
    let name = std::iter::once("tenure").chain(path.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    lines.push(name.clone());
    let mut section = "";
    let mut commands = Vec::new();
    for line in help.lines() {
        if !line.starts_with(' ') {
            section = line.trim_end_matches(':');
        } else if section == "Commands" && line.starts_with("  ") && !line.starts_with("   ") {
            commands.extend(
                line.split_whitespace().next().filter(|command| *command != "help").map(str::to_owned),
            );
        } else if let Some(item) = item(line).filter(|_| !["Commands", "Usage"].contains(&section)) {
            lines.push(format!("{name} {item}"));
        }
    }
    for command in commands {
        path.push(command);
        walk(path, lines);
        path.pop();
    }
}

/// `-q, --quiet` or `--ttl <DURATION>` or `<RESOURCE>`, if the line begins with one: options are indented by two to six.
fn item(line: &str) -> Option<String> {
    let text = line.trim_start();
    let indentation = line.len() - text.len();
    if !(2..=6).contains(&indentation) || !text.starts_with(['-', '<', '[']) {
        return None;
    }
    let item = text.split("  ").next().unwrap_or(text).trim_end();
    (item != "-h, --help" && item != "-V, --version").then(|| item.to_owned())
}

/// The keys that the message about an unknown one names.
fn configuration_keys() -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tenure.toml");
    fs::write(&file, "[unknown_table]\nunknown_key = 1\n").expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .args(["serve", "--config"])
        .arg(&file)
        .arg("--data")
        .arg(folder.path().join("data"))
        .env("HOME", folder.path())
        .output()
        .expect("tenure runs");
    assert_eq!(output.status.code(), Some(78), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_key = |word: &&str| {
        word.split('.').all(|part| {
            !part.is_empty() && part.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_')
        })
    };
    let known = text.rsplit(": ").next().unwrap_or_default();
    let mut keys: Vec<_> = known.split([',', ' ', '\n', '`']).filter(is_key).map(str::to_owned).collect();
    keys.sort();
    keys.dedup();
    assert!(keys.len() > 40, "{text}");
    keys
}

fn run(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tenure")).args(arguments).output().expect("tenure runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}
