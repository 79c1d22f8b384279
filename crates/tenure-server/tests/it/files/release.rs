//! What sessions keep until they really let go of it.

use std::process::Command;

use serde_json::json;
use tenure_testkit::files::{FileAgent, FilesApiServer};

#[test]
fn subagent_ended_without_a_subagent_ends_no_session() {
    let stage = FilesApiServer::start();
    let mut agent = FileAgent::start(&stage, "one");
    assert_eq!(agent.acquire(None, &["a"]), "GRANTED");
    assert_eq!(agent.acquire(Some("helper"), &["b"]), "GRANTED");
    assert_eq!(agent.report_event(None, "subagent_ended", &[]).status, 200);
    assert_eq!(stage.held_files().len(), 2, "{:?}", stage.held_files());
    assert_eq!(agent.report_event(Some("helper"), "subagent_ended", &[]).status, 200);
    assert_eq!(stage.held_files().len(), 2, "{:?}", stage.held_files());
}

#[test]
fn a_commit_keeps_files_that_a_subagent_has_open() {
    let stage = FilesApiServer::start();
    let mut agent = FileAgent::start(&stage, "one");
    assert_eq!(agent.acquire(Some("helper"), &["a"]), "GRANTED");
    agent.run_shell_line(&format!("exec 7>> {}", stage.file("a").display()));
    assert_eq!(agent.commit(&["a"]), json!([]));
    agent.run_shell_line("exec 7>&-");
    assert_eq!(agent.commit(&["a"]), json!(["a"]));
}

#[test]
fn a_named_pipe_does_not_block_requests() {
    let stage = FilesApiServer::start();
    let mut agent = FileAgent::start(&stage, "one");
    assert!(Command::new("mkfifo").arg(stage.file("pipe")).status().unwrap().success());
    assert_eq!(agent.acquire(None, &["pipe"]), "GRANTED");
    for event in ["read", "wrote"] {
        assert_eq!(agent.report_event(None, event, &["pipe"]).status, 200);
    }
}
