//! Subagents: they may what those above them may, and are in each other's way.

use serde_json::{Value, json};
use tenure_testkit::{FakeAgent, Repository};

/// A subagent of this session says something.
fn as_subagent(mut payload: Value, subagent: &str) -> Value {
    payload["agent_id"] = json!(subagent);
    payload["agent_type"] = json!("general-purpose");
    payload
}

#[test]
fn subagent_may_edit_files_of_its_parent_but_not_of_siblings() {
    let repo = Repository::with_seconds(1, 30);
    let mut agent = FakeAgent::start(&repo, "one");
    assert!(agent.hook(&repo.edit("s1", "a")).allows());
    let said = agent.hook(&as_subagent(repo.edit("s1", "a"), "left"));
    assert!(said.allows() && !said.errors.contains("contention"), "{said:?}");
    assert!(agent.hook(&as_subagent(repo.edit("s1", "b"), "left")).allows());
    let said = agent.hook(&as_subagent(repo.edit("s1", "b"), "right"));
    assert!(said.reason().contains("`b`"), "{said:?}");
    let report = &repo.json(&["report", "list", "--json"])["reports"][0];
    assert!(report["owner"]["holder"].as_str().unwrap().ends_with("/left"), "{report}");
    assert!(report["blocked"]["holder"].as_str().unwrap().ends_with("/right"), "{report}");
}

#[test]
fn files_of_a_finished_subagent_return_to_its_parent() {
    let repo = Repository::with_seconds(1, 30);
    let mut agent = FakeAgent::start(&repo, "one");
    assert!(agent.hook(&as_subagent(repo.edit("s1", "b"), "left")).allows());
    let holder = |repo: &Repository| {
        repo.json(&["who", "b", "--json"])["file"]["owner"]["holder"].as_str().unwrap_or_default().to_owned()
    };
    assert!(holder(&repo).ends_with("/left"));
    let mut stop = as_subagent(repo.event("s1", "SubagentStop"), "left");
    stop["background_tasks"] = json!([{"id": "left", "type": "subagent", "status": "running"}]);
    agent.hook(&stop);
    let parent = holder(&repo);
    assert!(parent.starts_with("claude/s1@") && !parent.ends_with("/left"), "{parent}");
    // A sibling may now, because its parent may.
    assert!(agent.hook(&as_subagent(repo.edit("s1", "b"), "right")).allows());
    // Another agent may not.
    let mut two = FakeAgent::start(&repo, "two");
    assert!(!two.hook(&repo.edit("s2", "b")).allows());
}

#[test]
fn commit_of_the_session_releases_files_of_its_subagents() {
    let repo = Repository::with_seconds(1, 30);
    assert_eq!(repo.run(&["install", "git"]).code, Some(0));
    let mut agent = FakeAgent::start(&repo, "one");
    assert!(agent.hook(&as_subagent(repo.edit("s1", "a"), "left")).allows());
    agent.writes(&repo.file("a"), "two\n");
    let said = agent.run("git commit --quiet --all --message two");
    assert_eq!((said.code, said.errors.as_str()), (Some(0), ""), "{said:?}");
    assert!(repo.held().is_empty(), "{:?}", repo.held());
    assert_eq!(repo.ledger("file.violated"), [] as [Value; 0]);
}

// S4-31, S4-51
#[test]
fn session_end_ends_its_subagents() {
    let repo = Repository::with_seconds(1, 30);
    let mut agent = FakeAgent::start(&repo, "one");
    assert!(agent.hook(&repo.edit("s1", "a")).allows());
    assert!(agent.hook(&as_subagent(repo.edit("s1", "b"), "left")).allows());
    assert_eq!(repo.held(), ["a", "b"]);
    agent.hook(&repo.event("s1", "SessionEnd"));
    assert!(repo.held().is_empty(), "{:?}", repo.held());
}
