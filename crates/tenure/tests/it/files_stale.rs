//! A write over what somebody else wrote in between objects, once.

use serde_json::{Value, json};
use tenure_testkit::{FakeAgent, Repository};

fn whole(repo: &Repository, session: &str, file: &str) -> Value {
    let mut payload = repo.edit(session, file);
    payload["tool_name"] = json!("Write");
    payload["tool_input"] = json!({"file_path": repo.file(file), "content": "mine\n"});
    payload
}

fn read(repo: &Repository, session: &str, file: &str) -> Value {
    let mut payload = repo.wrote(session, file);
    payload["tool_name"] = json!("Read");
    payload["tool_input"] = json!({"file_path": repo.file(file)});
    payload
}

/// `one` has read `a`, and `two` has changed it since, and let go.
fn changed() -> (Repository, FakeAgent) {
    let repo = Repository::with_seconds(1, 30);
    let (mut one, mut two) = (FakeAgent::start(&repo, "one"), FakeAgent::start(&repo, "two"));
    one.hook(&repo.event("s1", "SessionStart"));
    one.hook(&read(&repo, "s1", "a"));
    two.edits(&repo, "s2", "a", "theirs\n");
    two.hook(&repo.event("s2", "SessionEnd"));
    (repo, one)
}

#[test]
fn write_of_a_stale_file_is_denied_until_it_is_read_again() {
    let (repo, mut one) = changed();
    let said = one.hook(&whole(&repo, "s1", "a"));
    let reason = said.reason();
    assert!(reason.contains("has changed since") && reason.contains("Read the file again"), "{reason}");
    assert!(!said.output.contains("\"continue\""), "the turn goes on: {said:?}");
    one.hook(&read(&repo, "s1", "a"));
    let said = one.hook(&whole(&repo, "s1", "a"));
    assert!(said.allows(), "{said:?}");
}

#[test]
fn stale_write_is_denied_only_once() {
    let (repo, mut one) = changed();
    assert!(!one.hook(&whole(&repo, "s1", "a")).allows());
    assert!(one.hook(&whole(&repo, "s1", "a")).allows());
}

#[test]
fn partial_edit_and_write_of_an_unread_file_are_allowed() {
    let (repo, mut one) = changed();
    assert!(one.hook(&repo.edit("s1", "a")).allows(), "it names what it replaces");
    let mut three = FakeAgent::start(&repo, "three");
    assert!(three.hook(&whole(&repo, "s3", "b")).allows(), "nothing is known of it");
}

#[test]
fn own_writes_of_a_session_are_not_stale() {
    let repo = Repository::with_seconds(1, 30);
    let mut one = FakeAgent::start(&repo, "one");
    one.edits(&repo, "s1", "a", "mine\n");
    assert!(one.hook(&whole(&repo, "s1", "a")).allows());
    // A person changed it since.
    std::fs::write(repo.file("a"), "a person's\n").unwrap();
    assert!(!one.hook(&whole(&repo, "s1", "a")).allows());
}
