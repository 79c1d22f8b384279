//! A command that read a file before somebody else changed it does not undo that.

use std::fs;

use tenure_testkit::{FakeAgent, Repository, wait_until};

// S4-15
#[test]
fn command_that_read_an_older_version_is_denied() {
    let repo = Repository::new();
    let mut person = FakeAgent::of_kind(&repo, "person", "terminal");
    let line = "text=$(cat a); touch ../read; while [ ! -e ../go ]; do sleep 0.02; done; echo \"$text more\" > a || exit 3";
    person.begin(&format!("\"$TENURE\" guard -- sh -c '{line}'"));
    wait_until("it has read", || repo.path("read").exists());
    let mut other = FakeAgent::start(&repo, "other");
    other.edits(&repo, "s1", "a", "theirs\n");
    other.hook(&repo.event("s1", "SessionEnd"));
    fs::write(repo.path("go"), "").unwrap();
    let said = person.end();
    assert_ne!(said.code, Some(0), "{said:?}");
    assert!(said.errors.contains("somebody else changed it after this command began"), "{said:?}");
    assert_eq!(fs::read_to_string(repo.file("a")).unwrap(), "theirs\n");
}

#[test]
fn stale_write_is_denied_for_a_while_and_an_append_never() {
    let repo = Repository::new();
    let mut person = FakeAgent::of_kind(&repo, "person", "terminal");
    let line = "touch ../read; while [ ! -e ../go ]; do sleep 0.02; done; echo more >> b; echo 1 > a; echo 2 > a; sleep 6; echo 3 > a";
    person.begin(&format!("\"$TENURE\" guard -- sh -c '{line}'"));
    wait_until("it runs", || repo.path("read").exists());
    let mut other = FakeAgent::start(&repo, "other");
    other.edits(&repo, "s1", "a", "theirs\n");
    other.edits(&repo, "s1", "b", "theirs\n");
    other.hook(&repo.event("s1", "SessionEnd"));
    fs::write(repo.path("go"), "").unwrap();
    let said = person.end();
    assert_eq!(said.errors.matches("was not changed").count(), 1, "it is said once: {said:?}");
    assert_eq!(said.errors.matches("resource busy").count(), 2, "{said:?}");
    assert_eq!(fs::read_to_string(repo.file("a")).unwrap(), "3\n");
    assert_eq!(fs::read_to_string(repo.file("b")).unwrap(), "theirs\nmore\n");
}
