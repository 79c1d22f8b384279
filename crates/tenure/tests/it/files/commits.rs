//! What a commit lets go of, and what it does not.

use std::fs;

use serde_json::Value;
use tenure_testkit::{FakeAgent, TestRepository};

/// A repository with the hooks of git in it, and an agent that has edited `a`.
fn edited() -> (TestRepository, FakeAgent) {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    let installed = repo.run(&["install", "git"]);
    assert_eq!(installed.code, Some(0), "{installed:?}");
    let mut agent = FakeAgent::start(&repo, "one");
    agent.edit_file(&repo, "s1", "a", "two\n");
    assert_eq!(repo.held_files(), ["a"]);
    (repo, agent)
}

/// Runs lines of shell, each to a good end.
fn runs(agent: &mut FakeAgent, lines: &[&str]) {
    for line in lines {
        let result = agent.run_line(&format!("{{ {line}; }}"));
        assert_eq!(result.code, Some(0), "{line}: {result:?}");
    }
}

// S4-10, S4-29, S4-50, S4-61
#[test]
fn every_way_to_commit_releases_the_committed_files() {
    for lines in [
        &["git add a", "git commit --quiet --message two"][..],
        &["git commit --quiet --all --no-verify --message two"],
        &["git commit --quiet --message two -- a"],
        &["git commit --quiet --all --amend --no-edit"],
        &["git add a", "git update-ref HEAD $(git commit-tree -p HEAD -m two $(git write-tree))"],
        &["git checkout --quiet --detach", "git commit --quiet --all --message two"],
        &["git checkout --quiet -b other", "git commit --quiet --all --message two"],
    ] {
        let (repo, mut agent) = edited();
        runs(&mut agent, lines);
        assert!(repo.held_files().is_empty(), "{lines:?}: {:?}", repo.held_files());
        let released = repo.ledger_events("lease.released");
        assert_eq!(released.len(), 1, "{lines:?}: {released:?}");
        assert_eq!(repo.shell("git status --porcelain").output, "", "{lines:?}");
        assert_eq!(repo.ledger_events("file.violated"), [] as [Value; 0], "{lines:?}");
    }
}

// S4-29, S4-61
#[test]
fn partial_commit_keeps_the_uncommitted_files() {
    let (repo, mut agent) = edited();
    agent.edit_file(&repo, "s1", "b", "two\n");
    runs(&mut agent, &["git commit --quiet --message two -- a"]);
    assert_eq!(repo.held_files(), ["b"]);
    runs(&mut agent, &["git add b", "git commit --quiet --message three"]);
    assert!(repo.held_files().is_empty());
}

#[test]
fn committed_file_that_is_dirty_again_is_kept() {
    let (repo, mut agent) = edited();
    runs(&mut agent, &["git add a", "echo three > a", "git commit --quiet --message two"]);
    assert_eq!(repo.held_files(), ["a"]);
    runs(&mut agent, &["git commit --quiet --all --message three"]);
    assert!(repo.held_files().is_empty());
}

#[test]
fn file_open_for_writing_is_kept() {
    let (repo, mut agent) = edited();
    runs(&mut agent, &["exec 3>> a", "git commit --quiet --all --message two"]);
    assert_eq!(repo.held_files(), ["a"]);
}

// S4-40
#[test]
fn commit_by_another_agent_releases_nothing_and_is_a_violation() {
    let (repo, _one) = edited();
    let mut two = FakeAgent::start(&repo, "two");
    two.edit_file(&repo, "s2", "b", "two\n");
    let result = two.run_line("git commit --all --message two");
    assert_eq!(result.code, Some(0), "{result:?}");
    assert!(result.errors.contains("`a` was committed, but claude (session s1"), "{result:?}");
    assert_eq!(repo.held_files(), ["a"], "its own file is free, the other one's is not");
    let violations = repo.ledger_events("file.violated");
    // Git tells of one commit twice: when the branch moves, and when it is done.
    assert_eq!(violations.len(), 1, "{violations:?}");
    for violation in &violations {
        let file = &violation["file"];
        assert!(file["owner"].as_str().unwrap().starts_with("claude/s1@"), "{violation}");
        assert!(file["id"].as_str().unwrap().starts_with("claude/s2@"), "{violation}");
    }
}

#[test]
fn commit_by_a_human_releases_nothing() {
    let (repo, mut agent) = edited();
    let result = repo.shell("git commit --quiet --all --message two");
    assert_eq!(result.code, Some(0), "{result:?}");
    assert_eq!(repo.held_files(), ["a"]);
    let violations = repo.ledger_events("file.violated");
    assert!(
        !violations.is_empty() && violations.iter().all(|event| event["file"]["id"].is_null()),
        "{violations:?}"
    );
    // The owner goes on, and its own next commit lets go.
    agent.edit_file(&repo, "s1", "a", "three\n");
    runs(&mut agent, &["git commit --quiet --all --message three"]);
    assert!(repo.held_files().is_empty());
}

#[test]
fn git_commands_that_commit_nothing_release_nothing() {
    let (repo, mut agent) = edited();
    for lines in [
        &["git stash --quiet", "git stash pop --quiet"][..],
        &["git checkout --quiet -b side", "git checkout --quiet main"],
        &["git branch other", "git tag v1", "git branch --delete --quiet other"],
        &["git add a", "git reset --quiet"],
        &["git commit --quiet --allow-empty --message empty", "git reset --quiet --soft HEAD^"],
    ] {
        runs(&mut agent, lines);
        assert_eq!(repo.held_files(), ["a"], "{lines:?}");
        assert_eq!(fs::read_to_string(repo.file("a")).unwrap(), "two\n");
    }
    // Going back behind one's own commit commits nothing either.
    runs(&mut agent, &["git commit --quiet --all --message two"]);
    agent.edit_file(&repo, "s1", "a", "three\n");
    runs(&mut agent, &["git reset --quiet --soft HEAD^"]);
    assert_eq!(repo.held_files(), ["a"]);
    assert_eq!(repo.ledger_events("file.violated"), [] as [Value; 0]);
}

#[test]
fn failed_commit_releases_nothing() {
    let (repo, mut agent) = edited();
    fs::write(repo.file(".git/hooks/commit-msg"), "#!/bin/sh\nexit 1\n").unwrap();
    runs(&mut agent, &["chmod +x .git/hooks/commit-msg", "! git commit --quiet --all --message two"]);
    assert_eq!(repo.held_files(), ["a"]);
}

// S4-29
#[test]
fn commit_with_very_many_long_paths_releases_all_of_them() {
    let (repo, mut agent) = edited();
    // Names so long that they do not fit into one request, and more of them than fit.
    runs(
        &mut agent,
        &[
            "name=$(printf 'x%.0s' $(seq 200))",
            "mkdir -p many/$name && for i in $(seq 10500); do : > many/$name/$name-$i; done",
            "git add .",
            "git commit --quiet --message many",
        ],
    );
    assert!(repo.held_files().is_empty(), "{:?}", repo.held_files());
}

#[test]
fn deleted_and_renamed_files_are_released_by_their_commit() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    assert_eq!(repo.run(&["install", "git"]).code, Some(0));
    let mut agent = FakeAgent::start_kind(&repo, "one", "codex");
    let mut patch = repo.patch_payload("s1", "a");
    let text = "*** Begin Patch\n*** Delete File: a\n*** Update File: b\n*** Move to: c\n@@\n-one\n+two\n*** End Patch\n";
    patch["tool_input"]["command"] = text.into();
    assert!(agent.run_hook(&patch).is_allowed());
    assert_eq!(repo.held_files(), ["a", "b", "c"]);
    runs(&mut agent, &["rm a", "mv b c", "echo two > c"]);
    assert_eq!(repo.held_files(), ["a", "b", "c"]);
    runs(&mut agent, &["git add --all", "git commit --quiet --message moved"]);
    assert!(repo.held_files().is_empty(), "{:?}", repo.held_files());
}
