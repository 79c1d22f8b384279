//! Owners that die, and servers that do.

use serde_json::json;

use crate::client::wait_until;
use crate::commands::signal;
use crate::hook_stage::{FakeAgent, Stage};

/// A file that `one` has, and `two` who wants it.
fn contended(retry: u32) -> (Stage, FakeAgent, FakeAgent) {
    let stage = Stage::with_seconds(retry, 30);
    let (mut one, two) = (FakeAgent::start(&stage, "one"), FakeAgent::start(&stage, "two"));
    one.edits(&stage, "s1", "a", "one's\n");
    (stage, one, two)
}

// S4-13, S4-20 to S4-22, S4-30, S4-32, S4-43, S4-51, S4-52, S4-58
#[test]
fn whoever_is_killed_has_nothing_and_the_next_one_may_at_once() {
    let (stage, one, mut two) = contended(60);
    signal(one.process(), "KILL");
    let said = two.hook(&stage.edit("s2", "a"));
    assert!(said.allows() && !said.errors.contains("contention"), "{said:?}");
    // What the dead one left uncommitted is told.
    assert!(said.output.contains("s1") && said.output.contains("not committed"), "{said:?}");
    assert_eq!(stage.owner("a").as_deref(), Some("s2"));
    let ended = stage.ledger("file.ended");
    assert!(ended.iter().any(|event| event["file"]["end"] == "DIED"), "{ended:?}");
}

// S4-20, S4-32
#[test]
fn a_death_frees_the_file_though_nobody_asks() {
    let (stage, one, _two) = contended(60);
    signal(one.process(), "KILL");
    wait_until("its files are free", || stage.held().is_empty());
}

// S4-26, S4-48
#[test]
fn who_waits_for_one_that_dies_gets_the_file_at_the_retry() {
    let (stage, one, mut two) = contended(3);
    two.begin_hook(&stage.edit("s2", "a"));
    two.waits();
    signal(one.process(), "KILL");
    let said = two.end();
    assert!(said.allows(), "{said:?}");
    assert_eq!(stage.owner("a").as_deref(), Some("s2"));
    let closed = stage.ledger("file.closed");
    assert_eq!((closed.len(), &closed[0]["file"]["end"]), (1, &json!("SERVED")), "{closed:?}");
    assert!(stage.ledger("file.blocked").is_empty());
}

#[test]
fn leases_and_tickets_survive_a_server_that_is_killed() {
    let (stage, mut one, mut two) = contended(4);
    let before = stage.json(&["files", "--json"]);
    two.begin_hook(&stage.edit("s2", "a"));
    two.waits();
    let first = stage.daemon().unwrap();
    signal(first, "KILL");
    wait_until("it is gone", || stage.daemon().is_none());
    // The retry starts it again. The ticket is the one from before, and so is the lease.
    let said = two.end();
    assert!(said.reason().contains("waiting_for_instruction"), "{said:?}");
    assert_eq!((stage.ledger("file.contended").len(), stage.ledger("file.blocked").len()), (1, 1));
    let after = stage.json(&["files", "--json"]);
    for field in ["path", "resource", "acquiredAt"] {
        assert_eq!(after[0][field], before[0][field], "{after}");
    }
    assert!(one.hook(&stage.edit("s1", "a")).allows(), "the owner goes on");
    assert_eq!(stage.servers().len(), 1);
}

// S4-20, S4-22
#[test]
fn an_owner_that_died_while_no_server_ran_has_nothing() {
    let (stage, one, mut two) = contended(60);
    signal(stage.daemon().unwrap(), "KILL");
    wait_until("it is gone", || stage.daemon().is_none());
    drop(one);
    let said = two.hook(&stage.edit("s2", "a"));
    assert!(said.allows() && !said.errors.contains("contention"), "{said:?}");
    assert_eq!(stage.owner("a").as_deref(), Some("s2"));
}

// S4-15
#[test]
fn a_server_that_cannot_be_started_again_for_the_retry_is_a_denial() {
    let (stage, one, mut two) = contended(4);
    two.begin_hook(&stage.edit("s2", "a"));
    two.waits();
    std::fs::write(stage.path("file"), "").unwrap();
    stage.configure(&format!("data = '{}'\n", stage.path("file/data").display()));
    signal(stage.daemon().unwrap(), "KILL");
    // Free by now, but nobody can say so.
    drop(one);
    let said = two.end();
    assert!(said.reason().contains("tenure serve --listen none"), "{said:?}");
    assert!(stage.servers().is_empty());
}
