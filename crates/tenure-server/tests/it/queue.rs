//! Waiting in line: who comes first is served first, and no grant comes after its time.

use serde_json::json;
use tenure_testkit::{TestServer, json_string, lease_request, queued_lease_request, read_to_end};

#[test]
fn waiters_are_granted_in_fifo_order() {
    let server = TestServer::start();
    let (mut id, mut token) = server.acquire("db:1", "first", 60_000);
    let line: Vec<_> = (1..=64)
        .map(|number| {
            let request = queued_lease_request("db:1", &format!("waiter-{number}"), 60_000, 60_000);
            server.enqueue(None, &request, number)
        })
        .collect();
    for (number, stream) in (1..).zip(line) {
        assert_eq!(server.release(&id, &token).status, 200);
        let answer = read_to_end(stream);
        (id, token) = answer.lease_id_and_token();
        let lease = &answer.json()["lease"];
        assert_eq!(lease["holder"], json!(format!("waiter-{number}")));
        assert_eq!(lease["fence"], json!(number + 1), "nobody else came in between");
    }
    assert_eq!(server.waiter_count("db:1"), 0);
}

#[test]
fn a_lease_granted_after_a_wait_has_its_full_ttl() {
    let server = TestServer::start();
    server.acquire("db:1", "a", 1_000);
    let answer = server.post("/v1/leases", &queued_lease_request("db:1", "b", 30_000, 60_000)).json();
    assert_eq!((&answer["lease"]["holder"], &answer["lease"]["remainingMs"]), (&json!("b"), &json!(30_000)));
    // The wait ended when a's lease did, which had no more than a second.
    let valid_for = answer["validForMs"].as_u64().unwrap();
    assert!(valid_for > 30_000 && valid_for <= 31_000, "{valid_for}");
    assert!(json_string(&answer["passport"]).len() > 100, "{answer}");
    assert_eq!(
        server.renew(&json_string(&answer["lease"]["id"]), &json_string(&answer["token"])).status,
        200
    );
}

#[test]
fn a_timed_out_wait_reports_the_holder_and_is_never_granted() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 60_000);
    let behind = server.enqueue(None, &queued_lease_request("db:1", "c", 60_000, 60_000), 1);
    let problem = server
        .post("/v1/leases", &queued_lease_request("db:1", "b", 60_000, 300))
        .expect_problem(409, "HELD");
    let of = |name: &str| problem[name].as_u64().unwrap();
    assert!((300..30_000).contains(&of("waitedMs")), "{problem}");
    assert_eq!((&problem["holder"], &problem["resource"]), (&json!("a"), &json!("db:1")));
    assert!((1..=60_000).contains(&of("remainingMs")) && of("waiting") == 1, "{problem}");
    server.release(&id, &token);
    let (id, token) = read_to_end(behind).lease_id_and_token();
    server.release(&id, &token);
    assert_eq!(server.holders("db:1"), [""; 0], "b gets nothing any more");
    let next = server.post("/v1/leases", &lease_request("db:1", "d", 60_000)).json();
    assert_eq!(next["lease"]["fence"], json!(3), "nor did it in between");
}

#[test]
fn a_free_resource_is_granted_without_waiting() {
    let server = TestServer::start();
    let answer = server.post("/v1/leases", &queued_lease_request("db:1", "a", 60_000, 60_000));
    assert_eq!((answer.status, &answer.json()["validForMs"]), (201, &json!(60_000)));
}

#[test]
fn readers_behind_a_writer_wait_and_are_granted_together() {
    let server = TestServer::start();
    let shared = |holder: &str, wait: u64| json!({"resource": "db:1", "holder": holder, "ttlMs": 60_000, "mode": "shared", "waitMs": wait});
    let (id, token) = server.post("/v1/leases", &shared("reader", 0)).lease_id_and_token();
    let writer = server.enqueue(None, &queued_lease_request("db:1", "writer", 60_000, 60_000), 1);
    server.post("/v1/leases", &shared("late", 0)).expect_problem(409, "HELD");
    let late: Vec<_> = (2..=4)
        .map(|number| server.enqueue(None, &shared(&format!("late-{number}"), 60_000), number))
        .collect();
    server.release(&id, &token);
    let (id, token) = read_to_end(writer).lease_id_and_token();
    server.release(&id, &token);
    late.into_iter().for_each(|stream| drop(read_to_end(stream).lease_id_and_token()));
    assert_eq!(server.holders("db:1").len(), 3);
}

#[test]
fn a_wait_that_would_deadlock_is_rejected_with_the_cycle() {
    let server = TestServer::start();
    server.acquire("db:1", "ann", 60_000);
    server.acquire("db:2", "bob", 60_000);
    let _ann = server.enqueue(None, &queued_lease_request("db:2", "ann", 60_000, 60_000), 1);
    let problem = server.post("/v1/leases", &queued_lease_request("db:1", "bob", 60_000, 60_000));
    let detail = json_string(&problem.expect_problem(409, "DEADLOCK")["detail"]);
    assert!(detail.contains("bob waits for ann, ann waits for bob;"), "{detail}");
}

#[test]
fn a_waiter_beyond_the_queue_limit_is_rejected() {
    let server = TestServer::start();
    server.acquire("db:1", "a", 60_000);
    let line: Vec<_> = (0..64)
        .map(|number| {
            server.start_post(
                "/v1/leases",
                None,
                &queued_lease_request("db:1", &format!("w-{number}"), 60_000, 60_000),
            )
        })
        .collect();
    server.wait_for_waiters("db:1", 64);
    server
        .post("/v1/leases", &queued_lease_request("db:1", "one-more", 60_000, 60_000))
        .expect_problem(429, "QUEUE_FULL");
    drop(line);
}

#[test]
fn two_requests_with_one_key_are_one_waiter() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 60_000);
    let request = queued_lease_request("db:1", "b", 60_000, 60_000);
    let first = server.enqueue(Some("once"), &request, 1);
    let other = queued_lease_request("db:1", "b", 60_000, 50_000);
    server.post_with_key("/v1/leases", "once", &other).expect_problem(409, "KEY_REUSED");
    let second = server.start_post("/v1/leases", Some("once"), &request);
    let behind = server.enqueue(None, &queued_lease_request("db:1", "c", 60_000, 60_000), 2);
    server.release(&id, &token);
    let (first, second) = (read_to_end(first), read_to_end(second));
    assert_eq!(first.lease_id_and_token(), second.lease_id_and_token());
    // And the same again, now that it is granted.
    assert_eq!(
        server.post_with_key("/v1/leases", "once", &request).lease_id_and_token(),
        first.lease_id_and_token()
    );
    assert_eq!(server.waiter_count("db:1"), 1);
    drop(behind);
}
