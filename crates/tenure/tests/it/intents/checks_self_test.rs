//! The checks of these tests see what they are there for.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tenure_testkit::pipelines::PIPELINE;
use tenure_testkit::{is_file_unlocked, wait_until};

use crate::intents::ledger::LedgerEvents;

fn issued(fence: u64, resource: &str, session: &str) -> Value {
    let lease = json!({ "fence": fence, "resource": resource, "holder": session, "principal": "system:orchestrator" });
    json!({ "type": "lease.issued", "lease": lease })
}

fn ended(fence: u64) -> Value {
    json!({ "type": "lease.expired", "lease": { "fence": fence } })
}

fn starting(session: &str, slot: u64) -> Value {
    json!({ "type": "intent.starting", "session": { "session_id": session, "state": "STARTING", "slot": slot } })
}

#[test]
fn consistent_ledger_passes_the_checks() {
    let end_event = json!({ "type": "intent.ended", "session": { "session_id": "a", "state": "ENDED" } });
    let story = LedgerEvents::from_events(vec![
        issued(1, "tuner:0", "a"),
        starting("a", 0),
        end_event,
        ended(1),
        issued(2, "tuner:0", "b"),
        starting("b", 0),
    ]);
    story.check_exclusive();
    story.check_taken_by_worker();
    assert_eq!(story.leases_on("tuner:").len(), 2);
    assert_eq!(story.states().get("a").map(String::as_str), Some("ENDED"));
}

#[test]
#[should_panic(expected = "it was held already")]
fn lease_granted_twice_is_detected() {
    LedgerEvents::from_events(vec![issued(1, "tuner:0", "a"), issued(2, "tuner:0", "b")]).check_exclusive();
}

#[test]
#[should_panic(expected = "tuner 0 had a session already")]
fn tuner_with_two_sessions_is_detected() {
    LedgerEvents::from_events(vec![starting("a", 0), starting("b", 0)]).check_exclusive();
}

#[test]
#[should_panic(expected = "a lease without a session")]
fn lease_of_another_holder_is_detected() {
    LedgerEvents::from_events(vec![issued(1, "service:x", "a"), ended(1)]).check_taken_by_worker();
}

/// The pipeline of these tests, in the part of this session.
fn pipeline(folder: &Path, session: &str, service: &str, fence: u64) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", PIPELINE, "pipeline"]).arg(folder).args([service, "0"]).stdin(Stdio::null());
    command.env("TENURE_SESSION", session).env("TENURE_FENCE", fence.to_string());
    let child = command.spawn().unwrap();
    wait_until("it starts", || {
        fs::read_to_string(folder.join("started")).is_ok_and(|text| text.contains(session))
    });
    child
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn pipeline_detects_another_user_of_its_tuner() {
    let folder = tempfile::tempdir().unwrap();
    let violations = || fs::read_to_string(folder.path().join("violations")).unwrap_or_default();
    let first = pipeline(folder.path(), "first", "plain", 1);
    assert!(!is_file_unlocked(&folder.path().join("slot-0")));
    let second = pipeline(folder.path(), "second", "plain", 2);
    assert_eq!(violations().lines().count(), 2, "tuner and channel: {}", violations());
    end(first);
    end(second);
    assert!(is_file_unlocked(&folder.path().join("slot-0")));
    end(pipeline(folder.path(), "third", "plain", 3));
    assert_eq!(violations().lines().count(), 2, "it was alone: {}", violations());
    end(pipeline(folder.path(), "fourth", "plain", 2));
    assert!(violations().contains("fence 2 comes after 3"), "{}", violations());
}
