//! A write over what somebody else wrote in between objects, once.

use serde_json::{Value, json};
use tenure_testkit::{FakeAgent, TestRepository};

fn whole(repo: &TestRepository, session: &str, file: &str) -> Value {
    let mut payload = repo.edit_payload(session, file);
    payload["tool_name"] = json!("Write");
    payload["tool_input"] = json!({"file_path": repo.file(file), "content": "mine\n"});
    payload
}

fn read(repo: &TestRepository, session: &str, file: &str) -> Value {
    let mut payload = repo.post_edit_payload(session, file);
    payload["tool_name"] = json!("Read");
    payload["tool_input"] = json!({"file_path": repo.file(file)});
    payload
}

/// `one` has read `a`, and `two` has changed it since, and let go.
fn changed() -> (TestRepository, FakeAgent) {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    let (mut one, mut two) = (FakeAgent::start(&repo, "one"), FakeAgent::start(&repo, "two"));
    one.run_hook(&repo.event_payload("s1", "SessionStart"));
    one.run_hook(&read(&repo, "s1", "a"));
    two.edit_file(&repo, "s2", "a", "theirs\n");
    two.run_hook(&repo.event_payload("s2", "SessionEnd"));
    (repo, one)
}

#[test]
fn write_of_a_stale_file_is_denied_until_it_is_read_again() {
    let (repo, mut one) = changed();
    let result = one.run_hook(&whole(&repo, "s1", "a"));
    let reason = result.denial_reason();
    assert!(reason.contains("has changed since") && reason.contains("Read the file again"), "{reason}");
    assert!(!result.output.contains("\"continue\""), "the turn goes on: {result:?}");
    one.run_hook(&read(&repo, "s1", "a"));
    let result = one.run_hook(&whole(&repo, "s1", "a"));
    assert!(result.is_allowed(), "{result:?}");
}

#[test]
fn stale_write_is_denied_only_once() {
    let (repo, mut one) = changed();
    assert!(!one.run_hook(&whole(&repo, "s1", "a")).is_allowed());
    assert!(one.run_hook(&whole(&repo, "s1", "a")).is_allowed());
}

#[test]
fn partial_edit_and_write_of_an_unread_file_are_allowed() {
    let (repo, mut one) = changed();
    assert!(one.run_hook(&repo.edit_payload("s1", "a")).is_allowed(), "it names what it replaces");
    let mut three = FakeAgent::start(&repo, "three");
    assert!(three.run_hook(&whole(&repo, "s3", "b")).is_allowed(), "nothing is known of it");
}

#[test]
fn own_writes_of_a_session_are_not_stale() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    let mut one = FakeAgent::start(&repo, "one");
    one.edit_file(&repo, "s1", "a", "mine\n");
    assert!(one.run_hook(&whole(&repo, "s1", "a")).is_allowed());
    // A person changed it since.
    std::fs::write(repo.file("a"), "a person's\n").unwrap();
    assert!(!one.run_hook(&whole(&repo, "s1", "a")).is_allowed());
}
