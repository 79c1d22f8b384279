//! A command that read a file before somebody else changed it does not undo that.

use std::fs;

use tenure_testkit::{FakeAgent, TestRepository, wait_until};

// S4-15
#[test]
fn command_that_read_an_older_version_is_denied() {
    let repo = TestRepository::new();
    let mut person = FakeAgent::start_kind(&repo, "person", "terminal");
    let line = "text=$(cat a); touch ../read; while [ ! -e ../go ]; do sleep 0.02; done; echo \"$text more\" > a || exit 3";
    person.start_line(&format!("\"$TENURE\" guard -- sh -c '{line}'"));
    wait_until("it has read", || repo.path("read").exists());
    let mut other = FakeAgent::start(&repo, "other");
    other.edit_file(&repo, "s1", "a", "theirs\n");
    other.run_hook(&repo.event_payload("s1", "SessionEnd"));
    fs::write(repo.path("go"), "").unwrap();
    let result = person.finish_line();
    assert_ne!(result.code, Some(0), "{result:?}");
    assert!(result.errors.contains("somebody else changed it after this command began"), "{result:?}");
    assert_eq!(fs::read_to_string(repo.file("a")).unwrap(), "theirs\n");
}

#[test]
fn stale_write_is_denied_for_a_while_and_an_append_never() {
    let repo = TestRepository::new();
    let mut person = FakeAgent::start_kind(&repo, "person", "terminal");
    let line = "touch ../read; while [ ! -e ../go ]; do sleep 0.02; done; echo more >> b; echo 1 > a; echo 2 > a; sleep 6; echo 3 > a";
    person.start_line(&format!("\"$TENURE\" guard -- sh -c '{line}'"));
    wait_until("it runs", || repo.path("read").exists());
    let mut other = FakeAgent::start(&repo, "other");
    other.edit_file(&repo, "s1", "a", "theirs\n");
    other.edit_file(&repo, "s1", "b", "theirs\n");
    other.run_hook(&repo.event_payload("s1", "SessionEnd"));
    fs::write(repo.path("go"), "").unwrap();
    let result = person.finish_line();
    assert_eq!(result.errors.matches("was not changed").count(), 1, "it is said once: {result:?}");
    assert_eq!(result.errors.matches("resource busy").count(), 2, "{result:?}");
    assert_eq!(fs::read_to_string(repo.file("a")).unwrap(), "3\n");
    assert_eq!(fs::read_to_string(repo.file("b")).unwrap(), "theirs\nmore\n");
}
