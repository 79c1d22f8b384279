//! A waiter that changed its mind leaves the line, also when its key keeps its place.

use serde_json::json;
use tenure_testkit::{Response, TestServer, read_to_end, text, waiting_request};

fn withdraw(server: &TestServer, ticket: &str) -> Response {
    server.ask(&format!("DELETE /v1/queue/{ticket}"), &[server.bearer()], "")
}

#[test]
fn a_wait_with_a_key_is_withdrawn_by_its_ticket() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 60_000);
    let waits = server.enqueue(Some("mine"), &waiting_request("db:1", "b", 60_000, 60_000), 1);
    let answer = withdraw(&server, "1");
    assert_eq!((answer.status, answer.json()), (200, json!({ "ticket": 1 })));
    assert_eq!(server.waiting("db:1"), 0);
    let told = read_to_end(waits).is_problem(409, "HELD");
    assert!(text(&told["detail"]).contains("withdrawn") && told["waitedMs"].is_u64(), "{told}");
    server.release(&id, &token);
    assert_eq!(server.holders("db:1"), [""; 0]);
    withdraw(&server, "1").is_problem(404, "NOT_FOUND");
}

#[test]
fn withdrawing_a_granted_ticket_is_not_found() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 60_000);
    let wish = waiting_request("db:1", "b", 60_000, 60_000);
    drop(server.enqueue(Some("mine"), &wish, 1));
    server.release(&id, &token);
    withdraw(&server, "1").is_problem(404, "NOT_FOUND");
    let (id, token) = server.post_with_key("/v1/leases", "mine", &wish).granted();
    assert_eq!(server.release(&id, &token).status, 200);
}

#[test]
fn withdrawing_an_unknown_ticket_is_not_found() {
    let server = TestServer::start();
    for ticket in ["0", "1", "18446744073709551615", "18446744073709551616", "-1", "x"] {
        withdraw(&server, ticket).is_problem(404, "NOT_FOUND");
    }
}
