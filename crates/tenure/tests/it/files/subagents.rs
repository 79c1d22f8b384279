//! Subagents: they may what those above them may, and are in each other's way.

use serde_json::{Value, json};
use tenure_testkit::{FakeAgent, TestRepository};

/// A subagent of this session says something.
fn as_subagent(mut payload: Value, subagent: &str) -> Value {
    payload["agent_id"] = json!(subagent);
    payload["agent_type"] = json!("general-purpose");
    payload
}

#[test]
fn subagent_may_edit_files_of_its_parent_but_not_of_siblings() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    let mut agent = FakeAgent::start(&repo, "one");
    assert!(agent.run_hook(&repo.edit_payload("s1", "a")).is_allowed());
    let result = agent.run_hook(&as_subagent(repo.edit_payload("s1", "a"), "left"));
    assert!(result.is_allowed() && !result.errors.contains("contention"), "{result:?}");
    assert!(agent.run_hook(&as_subagent(repo.edit_payload("s1", "b"), "left")).is_allowed());
    let result = agent.run_hook(&as_subagent(repo.edit_payload("s1", "b"), "right"));
    assert!(result.denial_reason().contains("`b`"), "{result:?}");
    let report = &repo.json(&["report", "list", "--json"])["reports"][0];
    assert!(report["owner"]["holder"].as_str().unwrap().ends_with("/left"), "{report}");
    assert!(report["blocked"]["holder"].as_str().unwrap().ends_with("/right"), "{report}");
}

#[test]
fn files_of_a_finished_subagent_return_to_its_parent() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    let mut agent = FakeAgent::start(&repo, "one");
    assert!(agent.run_hook(&as_subagent(repo.edit_payload("s1", "b"), "left")).is_allowed());
    let holder = |repo: &TestRepository| {
        repo.json(&["who", "b", "--json"])["file"]["owner"]["holder"].as_str().unwrap_or_default().to_owned()
    };
    assert!(holder(&repo).ends_with("/left"));
    let mut stop = as_subagent(repo.event_payload("s1", "SubagentStop"), "left");
    stop["background_tasks"] = json!([{"id": "left", "type": "subagent", "status": "running"}]);
    agent.run_hook(&stop);
    let parent = holder(&repo);
    assert!(parent.starts_with("claude/s1@") && !parent.ends_with("/left"), "{parent}");
    // A sibling may now, because its parent may.
    assert!(agent.run_hook(&as_subagent(repo.edit_payload("s1", "b"), "right")).is_allowed());
    // Another agent may not.
    let mut two = FakeAgent::start(&repo, "two");
    assert!(!two.run_hook(&repo.edit_payload("s2", "b")).is_allowed());
}

#[test]
fn commit_of_the_session_releases_files_of_its_subagents() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    assert_eq!(repo.run(&["install", "git"]).code, Some(0));
    let mut agent = FakeAgent::start(&repo, "one");
    assert!(agent.run_hook(&as_subagent(repo.edit_payload("s1", "a"), "left")).is_allowed());
    agent.write_file(&repo.file("a"), "two\n");
    let result = agent.run_line("git commit --quiet --all --message two");
    assert_eq!((result.code, result.errors.as_str()), (Some(0), ""), "{result:?}");
    assert!(repo.held_files().is_empty(), "{:?}", repo.held_files());
    assert_eq!(repo.ledger_events("file.violated"), [] as [Value; 0]);
}

// S4-31, S4-51
#[test]
fn session_end_ends_its_subagents() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    let mut agent = FakeAgent::start(&repo, "one");
    assert!(agent.run_hook(&repo.edit_payload("s1", "a")).is_allowed());
    assert!(agent.run_hook(&as_subagent(repo.edit_payload("s1", "b"), "left")).is_allowed());
    assert_eq!(repo.held_files(), ["a", "b"]);
    agent.run_hook(&repo.event_payload("s1", "SessionEnd"));
    assert!(repo.held_files().is_empty(), "{:?}", repo.held_files());
}
