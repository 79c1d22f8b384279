//! Who may do what to files.

use serde_json::json;

use super::stage::{Agent, Stage};

#[test]
fn who_is_gone_when_the_question_comes_is_not_taken_for_a_person() {
    let stage = Stage::new();
    let mut agent = Agent::start(&stage, "one");
    assert_eq!(agent.acquire(None, &["a"]), "GRANTED");
    let body = json!({"path": stage.file("a"), "reason": "a test"});
    agent.ask("POST /v1/files/force-release", &body).is_problem(403, "AGENT_FORBIDDEN");
    agent.ask_and_be_gone("POST /v1/files/force-release", &body).is_problem(403, "AGENT_FORBIDDEN");
    assert_eq!(stage.held(), [("a".to_owned(), "one".to_owned())]);
    assert_eq!(stage.person("POST /v1/files/force-release", &body).status, 200);
}

#[test]
fn a_token_for_other_resources_gets_no_file() {
    let stage = Stage::new();
    let body = json!({"name": "elsewhere", "scopes": ["leases:read", "leases:write"], "resources": ["db:"]});
    let made = stage.person("POST /v1/tokens", &body);
    assert_eq!(made.status, 201, "{made:?}");
    let token = made.json()["secret"].as_str().unwrap().to_owned();
    let speaker = json!({"agent": "claude", "session": "one"});
    let body = json!({"speaker": speaker, "cwd": stage.file(""), "paths": ["a"]});
    let header = format!("Authorization: Bearer {token}\r\n");
    stage.person_with("POST /v1/files/acquire", &header, &body).is_problem(403, "FORBIDDEN");
    assert_eq!(stage.held(), []);
}
