//! What REST is told by the lease, before anybody looks at a body.

use serde_json::{Value, json};
use tenure_testkit::Response;
use tenure_testkit::control::{ControlClient, run_on_each_clock, send_rest_request, start_control_server};

#[track_caller]
fn check(answer: &Response, status: u16, code: &str) -> Value {
    assert_eq!((answer.status, answer.json()["error"]["code"].as_str()), (status, Some(code)), "{answer:?}");
    // S0-70
    assert_ne!(answer.status, 423);
    answer.json()
}

// S0-65, S0-66, S0-67, S0-68, S0-70, S0-71, O-6
#[test]
fn a_rest_command_under_a_lease_requires_the_lease_token() {
    run_on_each_clock(|server| {
        let mut owner = ControlClient::open(server);
        let play = |token: Option<&str>, id: Option<&str>| {
            send_rest_request(server, "POST /api/v1/transport/play", token, id, &json!({}))
        };
        assert_eq!(play(None, None).status, 200);
        let lease = owner.acquire("K1 Composer");
        let (good, bad) = (lease.token.as_str(), "A".repeat(22));
        let error = check(&play(None, None), 428, "LEASE_REQUIRED");
        let mut fields: Vec<_> = error["error"].as_object().unwrap().keys().map(String::as_str).collect();
        fields.sort_unstable();
        let known = ["code", "message", "ownerClientName", "remainingMs", "requiredHeader", "scope"];
        assert_eq!(fields, known);
        assert_eq!(error["success"], json!(false));
        assert_eq!(error["version"], "2.0");
        assert!(error["timestamp"].is_u64());
        assert_eq!(error["error"]["ownerClientName"], "K1 Composer");
        assert_eq!(error["error"]["scope"], "global");
        assert_eq!(error["error"]["requiredHeader"], "X-Control-Lease");
        check(&play(Some(&bad), Some(&lease.id)), 403, "LEASE_INVALID");
        check(&play(Some("short"), Some(&lease.id)), 403, "LEASE_INVALID");
        let locked = check(&play(Some(&bad), None), 409, "CONTROL_LOCKED");
        assert_eq!(locked["error"]["message"], "Control lease is held by another client");
        check(&play(Some(&bad), Some("cl_0")), 409, "CONTROL_LOCKED");
        check(&play(Some(good), Some("cl_0")), 409, "CONTROL_LOCKED");
        assert_eq!(play(Some(good), None).status, 200);
        let json = play(Some(good), Some(&lease.id)).expect_status(200);
        let mut fields: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
        fields.sort_unstable();
        assert_eq!(fields, ["data", "success", "timestamp", "version"]);
        assert_eq!((&json["success"], &json["version"]), (&json!(true), &json!("2.0")));
    });
}

// S0-69
#[test]
fn the_token_of_an_ended_lease_is_rejected_as_expired() {
    run_on_each_clock(|server| {
        let mut owner = ControlClient::open(server);
        let lease = owner.acquire("K1 Composer");
        owner.release(&lease);
        let play = |token: Option<&str>| {
            send_rest_request(server, "POST /api/v1/transport/play", token, None, &json!({}))
        };
        check(&play(Some(&lease.token)), 409, "LEASE_EXPIRED");
        assert_eq!(play(None).status, 200);
        let next = owner.acquire("K1 Composer");
        check(&play(Some(&lease.token)), 409, "CONTROL_LOCKED");
        assert_eq!(play(Some(&next.token)).status, 200);
    });
}

// S0-3, S0-4
#[test]
fn rest_neither_grants_nor_extends() {
    let server = start_control_server(2_000);
    let mut owner = ControlClient::open(&server);
    for path in ["acquire", "heartbeat", "release"] {
        let answer =
            send_rest_request(&server, &format!("POST /api/v1/control/{path}"), None, None, &json!({}));
        assert_eq!(answer.status, 404, "{answer:?}");
    }
    let plain = server.post("/v1/leases", &tenure_testkit::lease_request("control:global", "me", 60_000));
    assert_eq!((plain.status, &plain.json()["code"]), (403, &json!("FORBIDDEN")));
    let other = json!([tenure_testkit::lease_request("control:other", "me", 60_000)]);
    assert_eq!(server.post("/v1/leases/batch", &json!({ "leases": other })).status, 403);
    let lease = owner.acquire("K1 Composer");
    let mut last = 2_000;
    while last > 1_000 {
        let answer = send_rest_request(
            &server,
            "POST /api/v1/transport/play",
            Some(&lease.token),
            Some(&lease.id),
            &json!({}),
        );
        assert_eq!(answer.status, 200);
        let remaining = server.get("/api/v1/control/status").json()["data"]["remainingMs"].as_u64().unwrap();
        assert!(remaining <= last);
        last = remaining;
    }
    server.stop();
}

/// The lease is asked before the body: what is wrong with the body is not said to who may not change anything.
#[test]
fn the_lease_comes_before_the_body() {
    run_on_each_clock(|server| {
        let mut owner = ControlClient::open(server);
        owner.acquire("K1 Composer");
        let headers = [server.bearer(), "Content-Type: application/json".to_owned()];
        let answer = server.request("PATCH /api/v1/parameters", &headers, "{ no json");
        check(&answer, 428, "LEASE_REQUIRED");
        // And who speaks comes before the lease.
        let answer = server.request("PATCH /api/v1/parameters", &headers[1..], "{}");
        assert_eq!(answer.status, 401);
    });
}

// S0-72
#[test]
fn a_blocked_websocket_command_names_no_required_header() {
    run_on_each_clock(|server| {
        let (mut owner, mut other) = (ControlClient::open(server), ControlClient::open(server));
        owner.acquire("K1 Composer");
        let answer = other.request("transport.play", &json!({}));
        assert_eq!((&answer["type"], &answer["success"]), (&json!("error"), &json!(false)));
        let error = answer["error"].as_object().unwrap();
        let mut fields: Vec<_> = error.keys().map(String::as_str).collect();
        fields.sort_unstable();
        assert_eq!(fields, ["code", "message", "ownerClientName", "remainingMs", "scope"]);
        assert_eq!(error["code"], "CONTROL_LOCKED");
        assert_eq!(error["message"], "Command blocked by active control lease");
    });
}
