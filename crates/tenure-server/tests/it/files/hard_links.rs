//! A file that has a second name since somebody got it has one owner all the same, also where a person decides.

use std::fs;

use serde_json::json;
use tenure_testkit::files::{FileAgent, FilesApiServer};

/// `one` has `a`, which is called `b` too since then.
fn linked() -> (FilesApiServer, FileAgent, FileAgent) {
    let stage = FilesApiServer::start();
    let (mut one, mut two) = (FileAgent::start(&stage, "one"), FileAgent::start(&stage, "two"));
    assert_eq!(one.acquire(None, &["a"]), "GRANTED");
    fs::remove_file(stage.file("b")).unwrap();
    fs::hard_link(stage.file("a"), stage.file("b")).unwrap();
    assert_eq!(two.report_event(None, "active", &[]).status, 200);
    (stage, one, two)
}

// S4-18
#[test]
fn transferring_a_file_by_its_second_name_includes_all_names() {
    let (stage, mut one, _two) = linked();
    let response =
        stage.request_as_human("POST /v1/files/give", &json!({"path": stage.file("b"), "to": "two"}));
    assert_eq!(response.status, 200, "{response:?}");
    assert!(stage.held_files().iter().all(|(_, session)| session == "two"), "{:?}", stage.held_files());
    assert_eq!(one.acquire(None, &["a"]), "WAIT");
}

// S4-18
#[test]
fn force_release_by_a_second_name_releases_all_names() {
    let (stage, _one, mut two) = linked();
    let owner =
        stage.request_as_human(&format!("GET /v1/files/one?path={}", stage.file("b").display()), &json!({}));
    assert_eq!(owner.json()["file"]["owner"]["session"], "one", "{owner:?}");
    let body = json!({"path": stage.file("b"), "reason": "a test"});
    let taken = stage.request_as_human("POST /v1/files/force-release", &body);
    assert_eq!(taken.status, 200, "{taken:?}");
    assert_eq!(stage.held_files(), []);
    assert_eq!(two.acquire(None, &["a"]), "GRANTED");
}

// S4-18
#[test]
fn a_blocked_session_cannot_resume_while_the_file_is_held_under_another_name() {
    let stage = FilesApiServer::start();
    let (mut one, mut two) = (FileAgent::start(&stage, "one"), FileAgent::start(&stage, "two"));
    assert_eq!(one.acquire(None, &["a", "b"]), "GRANTED");
    assert_eq!(two.acquire(None, &["b"]), "WAIT");
    assert_eq!(two.acquire(None, &["b"]), "BLOCKED");
    assert_eq!(one.commit(&["b"]), json!(["b"]));
    fs::remove_file(stage.file("b")).unwrap();
    fs::hard_link(stage.file("a"), stage.file("b")).unwrap();
    let reports = stage.request_as_human("GET /v1/files/reports", &json!({})).json();
    let report = reports["reports"][0]["id"].as_str().unwrap().to_owned();
    let resumed = stage.request_as_human(&format!("POST /v1/files/reports/{report}/resume"), &json!({}));
    resumed.expect_problem(409, "HELD");
    assert_eq!(stage.held_files(), [("a".to_owned(), "one".to_owned())]);
}
