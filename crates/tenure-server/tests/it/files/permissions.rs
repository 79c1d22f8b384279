//! Who may do what to files.

use std::time::Duration;

use serde_json::json;
use tenure_testkit::files::{FileAgent, FilesApiServer};
use tenure_testkit::{assert_stays, bearer, json_string};

#[test]
fn an_ended_process_is_not_accepted_as_a_person() {
    let stage = FilesApiServer::start();
    let mut agent = FileAgent::start(&stage, "one");
    assert_eq!(agent.acquire(None, &["a"]), "GRANTED");
    let body = json!({"path": stage.file("a"), "reason": "a test"});
    agent.request("POST /v1/files/force-release", &body).expect_problem(403, "AGENT_FORBIDDEN");
    agent.request_and_exit("POST /v1/files/force-release", &body).expect_problem(403, "AGENT_FORBIDDEN");
    assert_eq!(stage.held_files(), [("a".to_owned(), "one".to_owned())]);
    assert_eq!(stage.request_as_human("POST /v1/files/force-release", &body).status, 200);
}

#[test]
fn a_token_limited_to_other_resources_cannot_acquire_files() {
    let stage = FilesApiServer::start();
    let body = json!({"name": "elsewhere", "scopes": ["leases:read", "leases:write"], "resources": ["db:"]});
    let token = json_string(&stage.request_as_human("POST /v1/tokens", &body).expect_status(201)["secret"]);
    let caller = json!({"agent": "claude", "session": "one"});
    let body = json!({"speaker": caller, "cwd": stage.file(""), "paths": ["a"]});
    stage
        .request_as_human_with("POST /v1/files/acquire", &[&bearer(&token)], &body)
        .expect_problem(403, "FORBIDDEN");
    assert_eq!(stage.held_files(), []);
}

// H4
#[test]
fn stop_with_an_admin_token_limited_to_some_resources_is_rejected() {
    let stage = FilesApiServer::start();
    let body = json!({"name": "deployer", "scopes": ["admin"], "resources": ["deploy:"]});
    let token = json_string(&stage.request_as_human("POST /v1/tokens", &body).expect_status(201)["secret"]);
    stage
        .request_as_human_with("POST /v1/stop", &[&bearer(&token)], &json!({}))
        .expect_problem(403, "FORBIDDEN");
    assert_stays("the server answers", Duration::from_millis(200), || stage.held_files().is_empty());
}
