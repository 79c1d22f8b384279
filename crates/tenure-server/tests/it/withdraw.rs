//! A waiter that changed its mind leaves the line, also when its key keeps its place.

use serde_json::json;
use tenure_testkit::{Response, TestServer, json_string, queued_lease_request, read_to_end};

fn withdraw(server: &TestServer, ticket: &str) -> Response {
    server.request(&format!("DELETE /v1/queue/{ticket}"), &[server.bearer()], "")
}

#[test]
fn a_wait_with_a_key_is_withdrawn_by_its_ticket() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 60_000);
    let pending = server.enqueue(Some("mine"), &queued_lease_request("db:1", "b", 60_000, 60_000), 1);
    let answer = withdraw(&server, "1");
    assert_eq!((answer.status, answer.json()), (200, json!({ "ticket": 1 })));
    assert_eq!(server.waiter_count("db:1"), 0);
    let problem = read_to_end(pending).expect_problem(409, "HELD");
    assert!(
        json_string(&problem["detail"]).contains("withdrawn") && problem["waitedMs"].is_u64(),
        "{problem}"
    );
    server.release(&id, &token);
    assert_eq!(server.holders("db:1"), [""; 0]);
    withdraw(&server, "1").expect_problem(404, "NOT_FOUND");
}

#[test]
fn withdrawing_a_granted_ticket_is_not_found() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 60_000);
    let request = queued_lease_request("db:1", "b", 60_000, 60_000);
    drop(server.enqueue(Some("mine"), &request, 1));
    server.release(&id, &token);
    withdraw(&server, "1").expect_problem(404, "NOT_FOUND");
    let (id, token) = server.post_with_key("/v1/leases", "mine", &request).lease_id_and_token();
    assert_eq!(server.release(&id, &token).status, 200);
}

#[test]
fn withdrawing_an_unknown_ticket_is_not_found() {
    let server = TestServer::start();
    for ticket in ["0", "1", "18446744073709551615", "18446744073709551616", "-1", "x"] {
        withdraw(&server, ticket).expect_problem(404, "NOT_FOUND");
    }
}
