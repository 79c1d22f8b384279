//! What a person sees of files, and may do.

use std::fs;

use serde_json::json;
use tenure_testkit::{FakeAgent, TestRepository};

/// An agent that has `a`.
fn owned() -> (TestRepository, FakeAgent) {
    let repo = TestRepository::with_retry_after(1);
    let mut agent = FakeAgent::start(&repo, "one");
    let result = agent.run_hook(&repo.edit_payload("session-one", "a"));
    assert!(result.is_allowed(), "{result:?}");
    (repo, agent)
}

#[test]
fn files_and_reports_are_listed_with_their_owner() {
    let (repo, agent) = owned();
    let pid = agent.process_id();
    let holder = repo.run(&["who", "a"]);
    let begin = format!("claude session-one (pid {pid}) has a for ");
    assert!(holder.code == Some(0) && holder.output.starts_with(&begin), "{holder:?}");
    let free = repo.run(&["who", "b"]);
    assert_eq!((free.code, free.output.as_str()), (Some(1), "Nobody has b.\n"), "{free:?}");
    let table = repo.run(&["files"]);
    let heads = "FILE  OWNER";
    assert!(table.code == Some(0) && table.output.starts_with(heads), "{table:?}");
    let owner = format!("a     claude session-one (pid {pid})");
    assert!(table.output.contains(&owner), "{table:?}");
    assert_eq!(repo.run(&["report", "list"]).output, "No reports.\n");
    assert_eq!(repo.run(&["report", "show", "R-99"]).code, Some(1));
    let files = repo.json(&["files", "--json"]);
    for field in ["path", "owner", "heldMs", "idleMs", "waiters"] {
        assert!(files[0].get(field).is_some(), "{field}: {files}");
    }
}

#[test]
fn commands_without_a_server_report_that_none_answers() {
    let repo = TestRepository::new();
    for arguments in [&["files"][..], &["who", "a"], &["blame", "a"], &["report", "list"], &["stop"]] {
        let result = repo.run(arguments);
        assert_eq!(result.code, Some(69), "{arguments:?}: {result:?}");
        assert!(result.errors.contains("no Tenure server answers on this machine"), "{result:?}");
    }
    assert!(repo.server_pids().is_empty(), "asking starts nothing");
}

// S4-54
#[test]
fn human_can_transfer_release_and_resume_and_an_agent_cannot() {
    let (repo, mut one) = owned();
    let mut two = FakeAgent::start(&repo, "two");
    let blocked = two.run_hook(&repo.edit_payload("session-two", "a"));
    assert!(!blocked.is_allowed(), "{blocked:?}");
    let report = repo.json(&["report", "list", "--json"])["reports"][0]["id"].as_str().unwrap().to_owned();
    // What an agent runs is refused, whatever it is.
    for line in [
        "\"$TENURE\" force-release a".to_owned(),
        "\"$TENURE\" give a --to session-two".to_owned(),
        format!("\"$TENURE\" report resume {report}"),
        "\"$TENURE\" stop".to_owned(),
        "\"$TENURE\" install claude".to_owned(),
    ] {
        let result = two.run_line(&line);
        assert!(result.code == Some(77) && result.errors.contains("only a person"), "{line}: {result:?}");
    }
    assert!(!repo.file(".claude").exists());
    assert_eq!(repo.run(&["report", "resume", &report]).code, Some(75), "it is still held");
    let shown = repo.run(&["report", "show", &report]);
    assert!(shown.output.contains("waiting_for_instruction"), "{shown:?}");
    let taken = repo.run(&["force-release", "a", "--reason", "a test"]);
    assert!(
        taken.code == Some(0) && taken.output.starts_with("a was taken from claude session-one"),
        "{taken:?}"
    );
    let resumed = repo.run(&["report", "resume", &report]);
    assert!(resumed.code == Some(0) && resumed.output.starts_with("claude session-two"), "{resumed:?}");
    assert_eq!(repo.run(&["force-release", "b"]).code, Some(1), "nobody has it");
    let transferred = repo.run(&["give", "a", "--to", "session-one"]);
    assert!(transferred.code == Some(0) && transferred.output.contains("session-one"), "{transferred:?}");
    assert!(one.run_hook(&repo.edit_payload("session-one", "a")).is_allowed());
    assert_eq!(repo.run(&["stop"]).output, "The server stops.\n");
    tenure_testkit::wait_until("it is gone", || repo.server_pids().is_empty());
}

#[test]
fn blame_shows_the_session_of_uncommitted_lines() {
    let (repo, mut agent) = owned();
    agent.write_file(&repo.file("a"), "one\ntwo\n");
    let mut wrote = repo.edit_payload("session-one", "a");
    wrote["hook_event_name"] = json!("PostToolUse");
    wrote["tool_response"] = json!({});
    agent.run_hook(&wrote);
    let result = repo.run(&["blame", "a"]);
    assert_eq!(result.output, "committed           1  one\nclaude session-one  2  two\n", "{result:?}");
    assert_eq!(repo.json(&["blame", "a", "--json"])["lines"][1]["session"], "session-one");
}

// S4-29, S4-40, S4-60
#[test]
fn commit_by_the_agent_releases_its_files_after_install() {
    let (repo, mut agent) = owned();
    let before = repo.shell("ls -A .git/hooks").output;
    let dry = repo.run(&["install", "claude", "--dry-run"]);
    assert!(dry.code == Some(0) && dry.output.contains("would create"), "{dry:?}");
    assert!(!repo.file(".claude").exists());
    let installed = repo.run(&["install", "claude"]);
    assert!(installed.code == Some(0) && installed.output.contains(".claude/settings.json"), "{installed:?}");
    assert!(repo.run(&["install", "claude"]).output.starts_with("Nothing to do: "));
    let settings = fs::read_to_string(repo.file(".claude/settings.json")).unwrap();
    assert!(settings.contains("hook claude"), "{settings}");
    agent.write_file(&repo.file("a"), "two\n");
    let committed = agent.run_line("git commit --quiet --all --message two");
    assert_eq!((committed.code, committed.errors.as_str()), (Some(0), ""), "{committed:?}");
    assert_eq!(repo.json(&["files", "--json"]), json!([]));
    for what in ["claude", "git"] {
        let gone = repo.run(&["uninstall", what]);
        assert_eq!(gone.code, Some(0), "{gone:?}");
    }
    assert!(!repo.file(".claude").exists());
    assert_eq!(repo.shell("ls -A .git/hooks").output, before);
}

// S4-29
#[test]
fn commit_of_very_many_files_releases_all_of_them() {
    let repo = TestRepository::new();
    assert_eq!(repo.run(&["install", "git"]).code, Some(0));
    let mut agent = FakeAgent::start(&repo, "one");
    for name in ["a", "zz"] {
        assert!(agent.run_hook(&repo.edit_payload("s1", name)).is_allowed());
    }
    let result = agent.run_line(
        "{ mkdir many; (cd many; seq 12000 | split -l 1 -a 4 - many-); echo two > a; echo two > zz; git add .; git commit \
         --quiet --message many; }",
    );
    assert_eq!((result.code, result.errors.as_str()), (Some(0), ""), "{result:?}");
    assert_eq!(repo.json(&["files", "--json"]), json!([]));
}

#[test]
fn commit_of_a_file_held_by_an_agent_warns_and_succeeds() {
    let (repo, agent) = owned();
    assert_eq!(repo.run(&["install", "git"]).code, Some(0));
    let committed = repo.shell("echo two > a; git commit --quiet --all --message two");
    assert_eq!(committed.code, Some(0), "{committed:?}");
    let warning =
        format!("`a` is staged, but claude (session session-one, pid {}) is editing it", agent.process_id());
    assert!(committed.errors.contains(&warning), "{committed:?}");
    assert_eq!(repo.json(&["who", "a", "--json"])["file"]["owner"]["session"], "session-one");
}

#[test]
fn install_shows_the_coverage_table() {
    let repo = TestRepository::new();
    let result = repo.run(&["install", "claude"]);
    let shell = repo.path(".local/state/tenure-installed/bin/tenure-bash");
    let program = fs::canonicalize(env!("CARGO_BIN_EXE_tenure")).unwrap();
    assert!(result.output.contains(&format!("make {} a link to ", shell.display())), "{result:?}");
    assert_eq!(fs::canonicalize(&shell).unwrap(), program);
    let settings = fs::read_to_string(repo.file(".claude/settings.json")).unwrap();
    assert!(settings.contains(&format!("\"CLAUDE_CODE_SHELL\": \"{}\"", shell.display())), "{settings}");
    assert!(result.output.contains("\n\nWHAT CHANGES FILES    COVERED BY"), "{result:?}");
    assert!(result.output.contains("\nshell commands        shim  "), "{result:?}");
    assert!(result.output.contains("\nshim: its shell is `tenure-bash`"), "{result:?}");
    let again = repo.run(&["install", "claude"]);
    assert!(again.output.contains("\nshell commands        shim  "), "also if nothing is to do: {again:?}");
    let gone = repo.run(&["uninstall", "claude"]);
    assert!(gone.code == Some(0) && !gone.output.contains("COVERED BY"), "{gone:?}");
    assert!(gone.output.contains("tenure-bash stays: "), "{gone:?}");
    assert!(shell.symlink_metadata().is_ok(), "settings of a clone or another tree may name it");

    let result = repo.run(&["install", "codex", "--dry-run"]);
    assert!(result.output.contains("\nshell commands        guard, else audit  "), "{result:?}");
    assert!(result.output.contains("start it with `tenure guard -- codex`"), "{result:?}");
    let git = repo.run(&["install", "git"]);
    assert!(git.code == Some(0) && !git.output.contains("COVERED BY"), "{git:?}");
}

#[test]
fn install_json_lists_changes_and_coverage() {
    let repo = TestRepository::new();
    let dry = repo.json(&["install", "opencode", "--dry-run", "--json"]);
    assert_eq!(dry["dryRun"], true);
    assert!(!repo.file(".opencode").exists());
    let done = repo.json(&["install", "opencode", "--json"]);
    assert_eq!(done["changes"], dry["changes"]);
    assert!(done["changes"][0].as_str().unwrap().ends_with("/tenure"), "{done}");
    let by = |way: &str| {
        let entries = done["coverage"].as_array().unwrap();
        entries.iter().find(|row| row["way"] == way).unwrap()["by"].clone()
    };
    assert_eq!(by("edit"), json!(["hook"]));
    assert_eq!(by("shell"), json!(["shim"]));
    assert_eq!(by("mcp"), json!(["hook", "guard", "audit"]));
    assert!(done["notes"].as_array().is_some_and(|notes| !notes.is_empty()), "{done}");
    assert_eq!(repo.json(&["install", "opencode", "--json"])["changes"], json!([]));
}

#[test]
fn exported_shell_of_the_user_is_kept() {
    let repo = TestRepository::new();
    let output = repo.command(&["install", "claude"]).env("CLAUDE_CODE_SHELL", "/bin/zsh").output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("`CLAUDE_CODE_SHELL` in your environment"), "{stdout}");
    let row =
        stdout.lines().find(|line| line.starts_with("shell commands        guard, else audit ")).unwrap();
    assert!(row.ends_with("  another shell is chosen"), "{row}");
    assert!(!fs::read_to_string(repo.file(".claude/settings.json")).unwrap().contains("\"env\""));
}

#[test]
fn invalid_target_or_scope_is_rejected() {
    let repo = TestRepository::new();
    assert_eq!(repo.run(&["install", "git", "--user"]).code, Some(64));
    assert_eq!(repo.run(&["install", "claud"]).code, Some(64));
    assert_eq!(repo.run(&["install", "codex", "--local"]).code, Some(1));
    let outside = repo.command(&["install", "claude"]).current_dir(repo.path("")).output().unwrap();
    assert_eq!(outside.status.code(), Some(1), "{outside:?}");
    fs::create_dir(repo.file(".claude")).unwrap();
    fs::write(repo.file(".claude/settings.json"), "{ // mine\n}").unwrap();
    let result = repo.run(&["install", "claude"]);
    assert!(
        result.code == Some(1) && result.errors.contains("cannot be read: it has comments"),
        "{result:?}"
    );
    assert!(!repo.file(".git/hooks/post-commit").exists(), "all or nothing");
}
