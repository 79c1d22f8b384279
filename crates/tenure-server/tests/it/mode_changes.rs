//! The same holder in another mode.

use serde_json::{Value, json};
use tenure_testkit::{TestServer, json_string, read_to_end};

fn shared(holder: &str, wait_ms: u64) -> Value {
    json!({"resource": "db:1", "holder": holder, "ttlMs": 60_000, "mode": "shared", "waitMs": wait_ms})
}

#[test]
fn a_reader_becomes_a_writer_only_when_it_is_alone() {
    let server = TestServer::start();
    let (id, token) = server.post("/v1/leases", &shared("a", 0)).lease_id_and_token();
    let (other, other_token) = server.post("/v1/leases", &shared("b", 0)).lease_id_and_token();
    let (path, proof) = (format!("/v1/leases/{id}/upgrade"), json!({ "token": token }));
    let held = server.post(&path, &proof).expect_problem(409, "HELD");
    assert_eq!((&held["holder"], &held["resource"]), (&json!("b"), &json!("db:1")));
    assert_eq!(server.renew(&id, &token).status, 200, "it still reads");
    server.release(&other, &other_token);
    let upgraded = server.post(&path, &proof);
    let (new_id, new_token) = upgraded.lease_id_and_token();
    let lease = upgraded.json()["lease"].clone();
    assert_eq!((upgraded.status, &lease["mode"], &lease["holder"]), (200, &json!("exclusive"), &json!("a")));
    server.post("/v1/leases", &shared("c", 0)).expect_problem(409, "HELD");
    assert_eq!(
        server.post(&path, &proof).lease_id_and_token(),
        (new_id.clone(), new_token.clone()),
        "a lost answer"
    );
    server.renew(&id, &token).expect_problem(410, "EXPIRED");
    assert_eq!(server.renew(&new_id, &new_token).status, 200);
}

#[test]
fn downgrade_admits_waiting_readers() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 60_000);
    let reader = server.enqueue(None, &shared("b", 60_000), 1);
    let (path, proof) = (format!("/v1/leases/{id}/downgrade"), json!({ "token": token }));
    let downgraded = server.post(&path, &proof);
    assert_eq!((downgraded.status, json_string(&downgraded.json()["lease"]["mode"])), (200, "shared".into()));
    read_to_end(reader).lease_id_and_token();
    assert_eq!(server.holders("db:1"), ["a", "b"]);
    assert_eq!(
        server.post(&path, &proof).lease_id_and_token(),
        downgraded.lease_id_and_token(),
        "a lost answer"
    );
}

#[test]
fn upgrade_and_downgrade_reject_modes_of_the_wrong_direction() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 60_000);
    for (path, mode) in [("upgrade", None), ("upgrade", Some("shared")), ("downgrade", Some("exclusive"))] {
        let mut body = json!({ "token": token });
        mode.into_iter().for_each(|mode| body["mode"] = json!(mode));
        let problem = server.post(&format!("/v1/leases/{id}/{path}"), &body).expect_problem(400, "INVALID");
        assert!(json_string(&problem["detail"]).starts_with("mode: "), "{problem}");
    }
    let body = json!({ "token": token, "mode": "MUTATES" });
    server.post(&format!("/v1/leases/{id}/downgrade"), &body).expect_problem(400, "INVALID");
    server.post("/v1/leases/00000000-1/upgrade", &json!({ "token": token })).expect_problem(404, "NOT_FOUND");
}
