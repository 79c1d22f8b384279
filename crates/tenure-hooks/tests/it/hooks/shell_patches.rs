//! A real shell is asked where it would apply a patch; the hook has to know that file, or deny the command.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;
use tempfile::TempDir;
use tenure_hooks::HookEvent;
use tenure_host::coding_agent::CodingAgent;

use super::{before, read_json};

/// Folders to go to, and an `apply_patch` that writes down where it was called.
fn playground() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["bin", "repo/a/b", "repo/b/a", "repo/a b"] {
        fs::create_dir_all(folder.path().join(name)).expect("a folder");
    }
    let program = folder.path().join("bin/apply_patch");
    fs::write(&program, "#!/bin/sh\npwd >> \"$LOG\"\n").expect("the program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("its mode");
    folder
}

/// Where a real shell calls `apply_patch`, from the folder in which it starts.
fn places(playground: &Path, script: &str) -> BTreeSet<PathBuf> {
    let log = playground.join("log");
    fs::write(&log, "").expect("the log");
    let path = format!("{}:/usr/bin:/bin", playground.join("bin").display());
    let mut shell = Command::new("/bin/sh");
    shell
        .arg("-c")
        .arg(script)
        .current_dir(playground.join("repo"))
        .env_clear()
        .env("PATH", path)
        .env("LOG", &log);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().expect("a shell");
    let text = fs::read_to_string(log).expect("the log");
    text.lines().map(|line| PathBuf::from(line).join("f")).collect()
}

fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    plain
}

/// A script of simple commands, some of which fail, in every order and with every operator.
fn any_script() -> impl Strategy<Value = String> {
    const PATCH: &str = "apply_patch '*** Begin Patch\n*** Update File: f\n-a\n+b\n*** End Patch'";
    let simple = prop_oneof![
        4 => Just(PATCH.to_owned()),
        4 => prop::sample::select(&["cd a", "cd b", "cd ..", "cd missing", "cd 'a b'", "cd -- \"a b\"", "cd ../a"][..])
            .prop_map(str::to_owned),
        2 => prop::sample::select(&["true", "false", "cd a 2>/dev/null", "X=1", "cd \"$PWD/a\"", "cd - >&2"][..])
            .prop_map(str::to_owned),
    ];
    let operator = prop::sample::select(
        &[" && ", " && ", " || ", "; ", "\n", " | ", " &&\n", " ||\n # so\n", " |\n"][..],
    );
    let joined = |part: BoxedStrategy<String>| {
        (part.clone(), vec((operator.clone(), part), 0..5)).prop_map(|(first, rest)| {
            rest.into_iter().fold(first, |script, (operator, part)| script + operator + &part)
        })
    };
    let body = joined(simple.clone().boxed()).boxed();
    let part = prop_oneof![
        6 => simple,
        1 => body.clone().prop_map(|script| format!("({script})")),
        1 => body.clone().prop_map(|script| format!("{{ {script}\n}}")),
        1 => body.clone().prop_map(|script| format!("if {script}\nthen {PATCH}\nfi")),
        1 => body.prop_map(|script| format!("sh -c '{}'", script.replace('\'', "'\"'\"'"))),
    ];
    joined(part.boxed())
}

// S4-15
#[test]
fn every_file_that_a_real_shell_patches_was_predicted_or_denied() {
    let playground = playground();
    let root = playground.path().canonicalize().expect("a folder");
    let (all, understood) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&any_script(), |script| {
        let mut payload = before(CodingAgent::Codex, "Bash", &json!({"command": script}));
        payload["cwd"] = json!(root.join("repo"));
        all.set(all.get() + 1);
        let payload = match read_json(CodingAgent::Codex, &payload) {
            Ok(payload) => payload,
            Err(unheard) => {
                prop_assert!(unheard.is_pre_tool_use());
                return Ok(());
            }
        };
        understood.set(understood.get() + 1);
        let known: BTreeSet<PathBuf> = match payload.event {
            HookEvent::BeforeWrite { paths, .. } => {
                paths.iter().map(|path| plain(&root.join("repo").join(path))).collect()
            }
            _ => BTreeSet::new(),
        };
        let found = places(&root, &script);
        prop_assert!(found.is_subset(&known), "{script}\napplied: {found:?}\nknown: {known:?}");
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    // Whoever denies everything is right as well, but of no use.
    assert!(understood.get() * 4 > all.get(), "{} of {}", understood.get(), all.get());
}
