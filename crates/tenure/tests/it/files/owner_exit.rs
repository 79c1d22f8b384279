//! Owners that die, and servers that do.

use serde_json::json;
use tenure_testkit::{FakeAgent, TestRepository, signal, wait_until};

/// A file that `one` has, and `two` who wants it.
fn contended(retry: u32) -> (TestRepository, FakeAgent, FakeAgent) {
    let repo = TestRepository::with_retry_and_idle(retry, 30);
    let (mut one, two) = (FakeAgent::start(&repo, "one"), FakeAgent::start(&repo, "two"));
    one.edit_file(&repo, "s1", "a", "one's\n");
    (repo, one, two)
}

// S4-13, S4-20 to S4-22, S4-30, S4-32, S4-43, S4-51, S4-52, S4-58
#[test]
fn files_of_a_killed_agent_are_free_at_once() {
    let (repo, one, mut two) = contended(60);
    signal(one.process_id(), "KILL");
    let result = two.run_hook(&repo.edit_payload("s2", "a"));
    assert!(result.is_allowed() && !result.errors.contains("contention"), "{result:?}");
    // What the dead one left uncommitted is told.
    assert!(result.output.contains("s1") && result.output.contains("not committed"), "{result:?}");
    assert_eq!(repo.owner_session("a").as_deref(), Some("s2"));
    let ended = repo.ledger_events("file.ended");
    assert!(ended.iter().any(|event| event["file"]["end"] == "DIED"), "{ended:?}");
}

// S4-20, S4-32
#[test]
fn files_of_a_killed_agent_are_released_without_a_request() {
    let (repo, one, _two) = contended(60);
    signal(one.process_id(), "KILL");
    wait_until("its files are free", || repo.held_files().is_empty());
}

// S4-26, S4-48
#[test]
fn waiting_agent_gets_the_file_of_a_killed_owner_at_its_retry() {
    let (repo, one, mut two) = contended(3);
    two.start_hook(&repo.edit_payload("s2", "a"));
    two.wait_for_contention();
    signal(one.process_id(), "KILL");
    let result = two.finish_line();
    assert!(result.is_allowed(), "{result:?}");
    assert_eq!(repo.owner_session("a").as_deref(), Some("s2"));
    let closed = repo.ledger_events("file.closed");
    assert_eq!((closed.len(), &closed[0]["file"]["end"]), (1, &json!("SERVED")), "{closed:?}");
    assert!(repo.ledger_events("file.blocked").is_empty());
}

#[test]
fn leases_and_tickets_survive_a_killed_server() {
    let (repo, mut one, mut two) = contended(4);
    let before = repo.json(&["files", "--json"]);
    two.start_hook(&repo.edit_payload("s2", "a"));
    two.wait_for_contention();
    let first = repo.daemon_pid().unwrap();
    signal(first, "KILL");
    wait_until("it is gone", || repo.daemon_pid().is_none());
    // The retry starts it again. The ticket is the one from before, and so is the lease.
    let result = two.finish_line();
    assert!(result.denial_reason().contains("waiting_for_instruction"), "{result:?}");
    assert_eq!(
        (repo.ledger_events("file.contended").len(), repo.ledger_events("file.blocked").len()),
        (1, 1)
    );
    let after = repo.json(&["files", "--json"]);
    for field in ["path", "resource", "acquiredAt"] {
        assert_eq!(after[0][field], before[0][field], "{after}");
    }
    assert!(one.run_hook(&repo.edit_payload("s1", "a")).is_allowed(), "the owner goes on");
    assert_eq!(repo.server_pids().len(), 1);
}

// S4-20, S4-22
#[test]
fn owner_that_died_while_no_server_ran_holds_nothing() {
    let (repo, one, mut two) = contended(60);
    signal(repo.daemon_pid().unwrap(), "KILL");
    wait_until("it is gone", || repo.daemon_pid().is_none());
    drop(one);
    let result = two.run_hook(&repo.edit_payload("s2", "a"));
    assert!(result.is_allowed() && !result.errors.contains("contention"), "{result:?}");
    assert_eq!(repo.owner_session("a").as_deref(), Some("s2"));
}

// S4-15
#[test]
fn retry_without_a_server_that_can_start_is_denied() {
    let (repo, one, mut two) = contended(4);
    two.start_hook(&repo.edit_payload("s2", "a"));
    two.wait_for_contention();
    std::fs::write(repo.path("file"), "").unwrap();
    repo.configure(&format!("data = '{}'\n", repo.path("file/data").display()));
    signal(repo.daemon_pid().unwrap(), "KILL");
    // Free by now, but nobody can say so.
    drop(one);
    let result = two.finish_line();
    assert!(result.denial_reason().contains("tenure serve --listen none"), "{result:?}");
    assert!(repo.server_pids().is_empty());
}
