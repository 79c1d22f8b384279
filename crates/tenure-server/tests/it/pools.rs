//! Any free one of a pool: the first that is free, and in line when none is.

use serde_json::json;
use tenure_testkit::{TestServer, json_string, lease_request, queued_lease_request, read_to_end};

/// A server with two tuners.
fn start_with_tuners() -> TestServer {
    let folder = tempfile::tempdir().unwrap();
    TestServer::start_in(folder, |settings| settings.pools.add("tuner", ["0", "1"]).unwrap()).unwrap()
}

#[test]
fn a_pool_request_is_granted_a_free_member() {
    let server = start_with_tuners();
    let of = |holder: &str| {
        let answer = server.post("/v1/leases", &lease_request("tuner:*", holder, 60_000)).json();
        (
            json_string(&answer["lease"]["resource"]),
            json_string(&answer["lease"]["id"]),
            json_string(&answer["token"]),
        )
    };
    let (first, id, token) = of("a");
    assert_eq!(first, "tuner:0");
    assert_eq!(of("b").0, "tuner:1");
    let problem =
        server.post("/v1/leases", &lease_request("tuner:*", "c", 60_000)).expect_problem(409, "HELD");
    assert_eq!((&problem["resource"], &problem["holder"]), (&json!("tuner:0"), &json!("a")), "free first");
    server.release(&id, &token);
    assert_eq!(of("d").0, "tuner:0");
}

#[test]
fn a_waiter_for_a_pool_gets_the_first_free_member_and_holders_see_the_waiter() {
    let server = start_with_tuners();
    server.acquire("tuner:0", "a", 60_000);
    let (id, token) = server.acquire("tuner:1", "b", 60_000);
    let line = server.start_post("/v1/leases", None, &queued_lease_request("tuner:*", "c", 60_000, 60_000));
    server.wait_for_waiters("tuner:1", 1);
    let queue = server.get("/v1/queue?resource=tuner:1").json();
    assert_eq!(queue["waiting"][0]["resources"], json!(["tuner:0", "tuner:1"]), "{queue}");
    assert_eq!(server.get(&format!("/v1/leases/{id}")).json()["lease"]["recall"]["by"], json!("c"));
    server.release(&id, &token);
    let answer = read_to_end(line);
    assert_eq!(answer.json()["lease"]["resource"], json!("tuner:1"));
    answer.lease_id_and_token();
}

#[test]
fn an_unknown_pool_is_rejected_and_two_requests_get_two_members() {
    let server = start_with_tuners();
    let problem =
        server.post("/v1/leases", &lease_request("door:*", "a", 60_000)).expect_problem(400, "INVALID");
    assert!(json_string(&problem["detail"]).contains("[pools]"), "{problem}");
    let both =
        json!({ "leases": [lease_request("tuner:*", "a", 60_000), lease_request("tuner:*", "a", 60_000)] });
    let answer = server.post("/v1/leases/batch", &both).json();
    let names = [0, 1].map(|index| json_string(&answer["leases"][index]["lease"]["resource"]));
    assert_eq!(names, ["tuner:0", "tuner:1"]);
    let three = json!({ "leases": [lease_request("tuner:*", "a", 60_000), lease_request("tuner:*", "a", 60_000), lease_request("tuner:*", "a", 60_000)] });
    server.post("/v1/leases/batch", &three).expect_problem(400, "INVALID");
}

#[test]
fn a_pool_request_requires_permission_on_every_member() {
    let server = start_with_tuners();
    let made = json!({ "name": "limited", "scopes": ["leases:write"], "resources": ["tuner:0"] });
    let secret = json_string(&server.post("/v1/tokens", &made).json()["secret"]);
    let headers = [format!("Authorization: Bearer {secret}"), "Content-Type: application/json".to_owned()];
    let ask = |body: &serde_json::Value| server.request("POST /v1/leases", &headers, &body.to_string());
    ask(&lease_request("tuner:*", "a", 60_000)).expect_problem(403, "FORBIDDEN");
    assert_eq!(ask(&lease_request("tuner:0", "a", 60_000)).status, 201);
}

#[test]
fn a_timed_out_pool_wait_reports_the_member_that_is_free_first() {
    let server = start_with_tuners();
    server.acquire("tuner:0", "a", 600_000);
    server.acquire("tuner:1", "b", 60_000);
    let problem = server
        .post("/v1/leases", &queued_lease_request("tuner:*", "c", 60_000, 50))
        .expect_problem(409, "HELD");
    assert_eq!((&problem["resource"], &problem["holder"]), (&json!("tuner:1"), &json!("b")), "{problem}");
    assert!(problem["waitedMs"].as_u64().unwrap() >= 50, "{problem}");
}
