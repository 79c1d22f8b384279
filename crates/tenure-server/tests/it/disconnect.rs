//! A caller that hangs up leaves nothing behind, unless it said under which key it would come back.

use serde_json::json;
use tenure_testkit::{TestServer, json_string, lease_request, queued_lease_request, read_to_end};

#[test]
fn waiters_that_disconnect_leave_the_queue() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 60_000);
    let line: Vec<_> = (1..=20)
        .map(|number| {
            server.enqueue(
                None,
                &queued_lease_request("db:1", &format!("gone-{number}"), 600_000, 600_000),
                number,
            )
        })
        .collect();
    let stays = server.enqueue(None, &queued_lease_request("db:1", "stays", 60_000, 60_000), 21);
    drop(line);
    server.wait_for_waiters("db:1", 1);
    server.release(&id, &token);
    let answer = read_to_end(stays);
    let (id, token) = answer.lease_id_and_token();
    assert_eq!(answer.json()["lease"]["fence"], json!(2), "nobody who was gone got it first");
    server.release(&id, &token);
    server.acquire("db:1", "b", 60_000);
}

#[test]
fn a_grant_to_a_disconnected_waiter_is_passed_to_the_next_one() {
    let server = TestServer::start();
    for round in 0..30 {
        let resource = format!("db:{round}");
        let (id, token) = server.acquire(&resource, "a", 600_000);
        let gone = server.enqueue(None, &queued_lease_request(&resource, "gone", 600_000, 600_000), 1);
        let next = server.enqueue(None, &queued_lease_request(&resource, "next", 600_000, 600_000), 2);
        // The server may see either first; whichever it is, the grant to nobody does not stay.
        drop(gone);
        assert_eq!(server.release(&id, &token).status, 200);
        let answer = read_to_end(next);
        answer.lease_id_and_token();
        assert_eq!(answer.json()["lease"]["holder"], json!("next"));
    }
}

#[test]
fn a_disconnected_waiter_with_a_key_keeps_its_position_and_finds_its_lease() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 60_000);
    let request = queued_lease_request("db:1", "b", 60_000, 60_000);
    drop(server.enqueue(Some("mine"), &request, 1));
    let behind = server.enqueue(None, &queued_lease_request("db:1", "c", 60_000, 60_000), 2);
    // Whoever asks without the key goes to the end of the line: so it is still there if two wait.
    assert_eq!(server.waiter_count("db:1"), 2);
    server.release(&id, &token);
    let found = server.post_with_key("/v1/leases", "mine", &request);
    let (id, token) = found.lease_id_and_token();
    assert_eq!((&found.json()["lease"]["holder"], &found.json()["lease"]["fence"]), (&json!("b"), &json!(2)));
    assert_eq!(server.renew(&id, &token).status, 200);
    server.release(&id, &token);
    assert_eq!(read_to_end(behind).lease_id_and_token().0.split('-').next_back(), Some("3"));
}

#[test]
fn a_waiter_with_a_key_that_reconnects_keeps_its_position() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 60_000);
    let request = queued_lease_request("db:1", "b", 60_000, 60_000);
    drop(server.enqueue(Some("mine"), &request, 1));
    let behind = server.enqueue(None, &queued_lease_request("db:1", "c", 60_000, 60_000), 2);
    let again = server.start_post("/v1/leases", Some("mine"), &request);
    server.release(&id, &token);
    let answer = read_to_end(again);
    assert_eq!(json_string(&answer.json()["lease"]["holder"]), "b", "{answer:?}");
    drop(behind);
}

#[test]
fn a_keep_alive_connection_may_wait_and_be_used_again() {
    use std::io::{Read as _, Write as _};
    let server = TestServer::start();
    server.acquire("db:1", "a", 1_000);
    let mut stream = server.connect();
    let body = queued_lease_request("db:1", "b", 60_000, 60_000).to_string();
    let head = |body: &str, close: &str| {
        format!(
            "POST /v1/leases HTTP/1.1\r\nHost: {}\r\n{}\r\n{close}Content-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            server.address,
            server.bearer(),
            body.len()
        )
    };
    stream.write_all(head(&body, "").as_bytes()).unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 201");
    let other = lease_request("db:2", "b", 60_000).to_string();
    stream.write_all(head(&other, "Connection: close\r\n").as_bytes()).unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("HTTP/1.1 201"), "{rest}");
    assert_eq!(server.holders("db:1"), ["b"], "it was delivered, so it is kept");
}
