//! A lease goes to another holder, with no moment in between.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use tenure_testkit::{TestServer, json_string, lease_request, queued_lease_request};

#[test]
fn a_resource_is_never_free_during_a_transfer() {
    let server = TestServer::start();
    let (mut id, mut token) = server.acquire("db:1", "holder-0", 60_000);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let hammer = scope.spawn(|| {
            let mut tries = 0;
            while !is_done.load(Ordering::Relaxed) {
                let answer = server.post("/v1/leases", &lease_request("db:1", "hammer", 60_000));
                assert_eq!(answer.status, 409, "{answer:?}");
                tries += 1;
            }
            tries
        });
        for number in 1..=50 {
            let to = json!({ "token": token, "to": format!("holder-{number}") });
            let answer = server.post(&format!("/v1/leases/{id}/transfer"), &to);
            assert_eq!(answer.status, 200, "{answer:?}");
            let lease = answer.json()["lease"].clone();
            assert_eq!(lease["holder"], json!(format!("holder-{number}")));
            assert_eq!(lease["fence"], json!(number + 1), "no grant to anybody else");
            (id, token) = answer.lease_id_and_token();
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(hammer.join().unwrap() > 0);
    });
}

#[test]
fn a_transfer_returns_a_new_fence_and_token_and_ends_the_old_lease() {
    let server = TestServer::start();
    let labels = json!({"run": "7"});
    let request =
        json!({"resource": "db:1", "holder": "a", "ttlMs": 60_000, "mode": "shared", "labels": labels});
    let (id, token) = server.post("/v1/leases", &request).lease_id_and_token();
    let answer = server.post(&format!("/v1/leases/{id}/transfer"), &json!({ "token": token, "to": "b" }));
    let (new_id, new_token) = answer.lease_id_and_token();
    let lease = answer.json()["lease"].clone();
    assert_eq!((&lease["labels"], &lease["mode"]), (&labels, &json!("shared")));
    assert_eq!((&lease["ttlMs"], &lease["remainingMs"]), (&json!(60_000), &json!(60_000)));
    assert!(new_id != id && new_token != token && answer.json()["passport"].is_string());
    let ended = server.renew(&id, &token).expect_problem(410, "EXPIRED");
    assert_eq!(ended["end"], json!("TRANSFERRED"));
    server.renew(&new_id, &token).expect_problem(403, "TOKEN_INVALID");
    assert_eq!(server.renew(&new_id, &new_token).status, 200);
}

#[test]
fn a_repeated_transfer_returns_the_same_lease() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 60_000);
    let path = format!("/v1/leases/{id}/transfer");
    let to = |holder: &str| json!({ "token": token, "to": holder });
    let first = server.post(&path, &to("b")).lease_id_and_token();
    assert_eq!(server.post(&path, &to("b")).lease_id_and_token(), first);
    // Another request is not the same one.
    let problem = server.post(&path, &to("c")).expect_problem(410, "EXPIRED");
    assert_eq!(problem["end"], json!("TRANSFERRED"));
    let upgrade = server.post(&format!("/v1/leases/{id}/downgrade"), &json!({ "token": token }));
    upgrade.expect_problem(410, "EXPIRED");
    let server = TestServer::start_in(server.stop(), |_| {}).unwrap();
    let again = server.post(&path, &to("b"));
    assert_eq!(again.lease_id_and_token(), first);
    assert!(again.json()["validForMs"].as_u64().unwrap() <= 60_000);
    // Once what came of it is over, there is nothing to find.
    server.release(&first.0, &first.1);
    server.post(&path, &to("b")).expect_problem(410, "EXPIRED");
}

#[test]
fn a_transfer_requires_the_token_and_must_not_form_a_deadlock() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 60_000);
    let path = format!("/v1/leases/{id}/transfer");
    server.post(&path, &json!({ "token": "wrong", "to": "b" })).expect_problem(403, "TOKEN_INVALID");
    for to in ["", "b\n", &"b".repeat(129)] {
        let problem = server.post(&path, &json!({ "token": token, "to": to })).expect_problem(400, "INVALID");
        assert!(json_string(&problem["detail"]).starts_with("to: "), "{problem}");
    }
    // c waits for a's lease, and b for c's: with a's lease, b would wait for itself.
    server.acquire("db:2", "c", 60_000);
    let _c = server.enqueue(None, &queued_lease_request("db:1", "c", 60_000, 60_000), 1);
    let _b = server.enqueue(None, &queued_lease_request("db:2", "b", 60_000, 60_000), 1);
    server.post(&path, &json!({ "token": token, "to": "b" })).expect_problem(409, "DEADLOCK");
    assert_eq!(server.renew(&id, &token).status, 200);
}
