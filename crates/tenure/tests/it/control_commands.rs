//! `tenure control`, against a server that plays its part.

use serde_json::{Value, json};
use tenure_testkit::CommandOutput;
use tenure_testkit::fake_server::{FakeServer, ReceivedRequest, run_against};

/// `tenure control ARGUMENTS…` against a server that answers with this: its output, and what the server received.
fn control(arguments: &[&str], status: &'static str, body: &Value) -> (CommandOutput, ReceivedRequest) {
    let all: Vec<&str> = ["control"].into_iter().chain(arguments.iter().copied()).collect();
    let (done, mut received) = FakeServer::run(&all, vec![(status, body.clone())]);
    (done, received.remove(0))
}

fn answered(data: &Value) -> Value {
    json!({ "success": true, "data": data, "timestamp": 1_208_600, "version": "2.0" })
}

// S0-23, S0-54, S0-62
#[test]
fn control_status_shows_the_owner_and_the_remaining_time() {
    let data = json!({
        "active": true, "leaseId": "cl_9f4a2137c1d6", "scope": "global", "ownerClientName": "K1 Composer",
        "ownerInstanceId": "6f0d84a3-8f49-4da8-8c70-0b8f6db5a870", "ownerWsClientId": 12, "remainingMs": 2140,
        "ttlMs": 5000, "heartbeatIntervalMs": 1000, "takeoverAllowed": false,
    });
    let (done, request) = control(&["status"], "200 OK", &answered(&data));
    assert_eq!(done.code, Some(0), "{done:?}");
    let text = done.output;
    assert!(text.contains("K1 Composer") && text.contains("2s, unless a heartbeat comes"), "{text}");
    assert_eq!(request.line, "GET /api/v1/control/status");
    assert!(request.headers.iter().any(|line| line.eq_ignore_ascii_case("authorization: Bearer tnr_played")));
    assert_eq!(control(&["status", "--json"], "200 OK", &answered(&data)).0.json(), data);
}

#[test]
fn control_status_shows_no_owner_and_rejected_requests() {
    let free = answered(&json!({ "active": false, "scope": "global" }));
    let (done, _) = control(&["status"], "200 OK", &free);
    assert_eq!((done.code, done.output.lines().count()), (Some(0), 1));
    assert!(done.output.starts_with("Nobody has the control lease"), "{done:?}");

    let rejection = json!({
        "success": false, "error": { "code": "UNAUTHORIZED", "message": "the token is not known" },
        "timestamp": 1, "version": "2.0",
    });
    let (done, _) = control(&["status"], "401 Unauthorized", &rejection);
    assert_eq!((done.code, done.output.as_str()), (Some(77), ""));
    for part in ["the token is not known (UNAUTHORIZED)", "TENURE_TOKEN"] {
        assert!(done.errors.contains(part), "{done:?}");
    }
}

#[test]
fn control_matrix_requires_no_server_and_is_plain_without_a_terminal() {
    let done = run_against("http://127.0.0.1:1", &["control", "matrix"]);
    assert_eq!((done.code, done.errors.as_str()), (Some(0), ""));
    let output = done.output;
    assert!(output.starts_with("SOURCE") && !output.contains('\x1b'), "{output}");
    assert!(output.contains("\n\nCOMMAND") && output.contains("POST /api/v1/effects/set"), "{output}");
    let matrix = run_against("http://127.0.0.1:1", &["control", "matrix", "--json"]).json();
    assert_eq!(matrix["matrix"].as_array().unwrap().len(), 16);
    let serial = matrix["matrix"].as_array().unwrap().iter();
    let mut serial = serial.filter(|row| row["source"] == "local.serial" && row["class"] == "mutates");
    let row = json!({
        "source": "local.serial", "class": "mutates", "inactive": "allow", "owner": "block", "nonOwner": "block",
    });
    assert_eq!(serial.next(), Some(&row));
    assert!(matrix["commands"].as_array().unwrap().iter().all(|command| command["summary"].is_string()));
}
