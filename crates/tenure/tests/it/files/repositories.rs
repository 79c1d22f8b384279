//! Repositories that are not the plain one: git goes on working, and files have their owners.

use std::path::Path;

use serde_json::{Value, json};
use tenure_testkit::{CommandOutput, FakeAgent, TestRepository};

fn installed() -> (TestRepository, FakeAgent) {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    let installed = repo.run(&["install", "git"]);
    assert_eq!(installed.code, Some(0), "{installed:?}");
    let agent = FakeAgent::start(&repo, "one");
    (repo, agent)
}

fn runs(agent: &mut FakeAgent, lines: &[&str]) {
    for line in lines {
        let result = agent.run_line(&format!("{{ {line}; }}"));
        assert_eq!(result.code, Some(0), "{line}: {result:?}");
    }
}

/// Asks for a file anywhere.
fn edit(agent: &mut FakeAgent, session: &str, path: &Path) -> CommandOutput {
    agent.run_hook(&json!({
        "session_id": session, "cwd": path.parent().unwrap(), "hook_event_name": "PreToolUse", "tool_name": "Edit",
        "tool_input": {"file_path": path, "old_string": "one", "new_string": "two"}, "tool_use_id": "call-1",
    }))
}

// S4-7, S4-8
#[test]
fn linked_work_tree_has_its_own_files() {
    let (repo, mut one) = installed();
    runs(&mut one, &["git worktree add --quiet ../linked"]);
    let mut two = FakeAgent::start(&repo, "two");
    assert!(edit(&mut one, "s1", &repo.file("a")).is_allowed());
    assert!(edit(&mut two, "s2", &repo.path("linked/a")).is_allowed(), "it is another file");
    two.write_file(&repo.path("linked/a"), "two\n");
    let committed = two.run_line("git -C ../linked commit --quiet --all --message two");
    assert_eq!((committed.code, committed.errors.as_str()), (Some(0), ""), "{committed:?}");
    let files = repo.json(&["files", "--json"]);
    assert_eq!(files.as_array().unwrap().len(), 1, "{files}");
    assert_eq!(files[0]["owner"]["session"], "s1", "{files}");
    assert_eq!(repo.ledger_events("file.violated"), [] as [Value; 0]);
}

#[test]
fn submodule_has_its_own_files() {
    let (repo, mut one) = installed();
    runs(
        &mut one,
        &[
            "git init --quiet --initial-branch main ../library",
            "echo one > ../library/a",
            "git -C ../library add a",
            "git -C ../library commit --quiet --message begin",
            "git -c protocol.file.allow=always submodule --quiet add ../library part",
            "git commit --quiet --message part",
        ],
    );
    let mut two = FakeAgent::start(&repo, "two");
    assert!(edit(&mut one, "s1", &repo.file("a")).is_allowed());
    assert!(edit(&mut two, "s2", &repo.file("part/a")).is_allowed());
    let result = edit(&mut one, "s1", &repo.file("part/a"));
    assert!(result.denial_reason().contains("session s2"), "{result:?}");
    two.write_file(&repo.file("part/a"), "two\n");
    runs(
        &mut two,
        &[
            "git -C part commit --quiet --all --message two",
            "git add part",
            "git commit --quiet --message up",
        ],
    );
    assert_eq!(repo.owner_session("a").as_deref(), Some("s1"));
}

#[test]
fn files_are_leased_during_a_rebase() {
    let (repo, mut agent) = installed();
    runs(
        &mut agent,
        &[
            "git checkout --quiet -b side",
            "echo side > a",
            "git commit --quiet --all --message side",
            "echo more > b",
            "git commit --quiet --all --message more",
            "git checkout --quiet main",
            "echo main > a",
            "git commit --quiet --all --message main",
            "git checkout --quiet side",
            "! git rebase --quiet main",
        ],
    );
    agent.edit_file(&repo, "s1", "a", "both\n");
    assert_eq!(repo.held_files(), ["a"]);
    let mut two = FakeAgent::start(&repo, "two");
    assert!(!two.run_hook(&repo.edit_payload("s2", "a")).is_allowed());
    runs(&mut agent, &["git add a", "GIT_EDITOR=true git rebase --continue"]);
    assert_eq!(repo.shell("git log --format=%s").output, "more\nside\nmain\nbegin\n");
    assert!(repo.held_files().is_empty(), "the commit of the rebase was a commit: {:?}", repo.held_files());
}

#[test]
fn files_are_leased_during_a_merge() {
    let (repo, mut agent) = installed();
    runs(
        &mut agent,
        &[
            "git checkout --quiet -b side",
            "echo side > a",
            "git commit --quiet --all --message side",
            "git checkout --quiet main",
            "echo main > a",
            "git commit --quiet --all --message main",
            "! git merge --quiet side",
        ],
    );
    agent.edit_file(&repo, "s1", "a", "both\n");
    runs(&mut agent, &["git add a", "git commit --quiet --message merge"]);
    assert_eq!(repo.shell("git log --merges --format=%s").output, "merge\n");
    assert!(repo.held_files().is_empty(), "{:?}", repo.held_files());
    assert_eq!(repo.shell("git status --porcelain").output, "");
}

// S4-17
#[test]
fn one_file_has_one_owner_under_all_its_paths() {
    let (repo, mut one) = installed();
    runs(&mut one, &["mkdir sub", "ln -s ../a sub/link", "ln a hard", "ln -s repository ../elsewhere"]);
    assert!(edit(&mut one, "s1", &repo.file("a")).is_allowed());
    let mut two = FakeAgent::start(&repo, "two");
    for (number, name) in
        ["sub/../a", "./a", "sub/link", "hard", "../elsewhere/a", "sub//..//a"].iter().enumerate()
    {
        let result = edit(&mut two, &format!("s2-{number}"), &repo.file(name));
        assert!(result.denial_reason().contains("session s1"), "{name}: {result:?}");
    }
    assert_eq!(repo.json(&["files", "--json"])[0]["path"], "a");
}

#[test]
fn files_outside_of_a_work_tree_require_no_lease() {
    let (repo, mut agent) = installed();
    runs(&mut agent, &["git clone --quiet --bare . ../bare.git"]);
    for path in ["elsewhere", "bare.git/config", "bare.git/new", "repository/.git/info/exclude"] {
        let result = edit(&mut agent, "s1", &repo.path(path));
        assert!(result.is_allowed(), "{path}: {result:?}");
    }
    assert!(repo.held_files().is_empty());
}
