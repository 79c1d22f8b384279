//! A holder learns that somebody waits because of it.

use serde_json::{Value, json};
use tenure_testkit::{TestServer, json_string, queued_lease_request};

#[test]
fn a_holder_sees_its_waiters_on_renew_and_in_lists() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 60_000);
    assert_eq!(server.renew(&id, &token).json()["lease"]["recall"], Value::Null);
    let b = server.enqueue(None, &queued_lease_request("db:1", "b", 60_000, 50_000), 1);
    let c = server.enqueue(None, &queued_lease_request("db:1", "c", 60_000, 60_000), 2);
    let is_recalled = |lease: &Value| {
        let waiters = &lease["recall"];
        assert_eq!((&waiters["by"], &waiters["waiting"]), (&json!("b"), &json!(2)), "{lease}");
        assert!((1..=50_000).contains(&waiters["remainingMs"].as_u64().unwrap()), "{lease}");
        assert_eq!(waiters.as_object().unwrap().len(), 3, "{lease}");
    };
    is_recalled(&server.renew(&id, &token).json()["lease"]);
    is_recalled(&server.get(&format!("/v1/leases/{id}")).json()["lease"]);
    is_recalled(&server.get("/v1/leases?resource=db:1").json()["leases"][0]);
    let transferred =
        server.post(&format!("/v1/leases/{id}/transfer"), &json!({ "token": token, "to": "d" }));
    is_recalled(&transferred.json()["lease"]);
    drop((b, c));
    server.wait_for_waiters("db:1", 0);
    let (id, token) = transferred.lease_id_and_token();
    assert_eq!(server.renew(&id, &token).json()["lease"]["recall"], Value::Null);
    let released = server.release(&id, &token).json()["lease"].clone();
    assert_eq!((&released["recall"], &released["state"]), (&Value::Null, &json!("RELEASED")));
}

#[test]
fn a_holder_is_not_recalled_by_waiters_it_does_not_block() {
    let server = TestServer::start();
    let shared = |holder: &str, wait: u64| json!({"resource": "db:1", "holder": holder, "ttlMs": 60_000, "mode": "shared", "waitMs": wait});
    let (id, token) = server.post("/v1/leases", &shared("a", 0)).lease_id_and_token();
    let _writer = server.enqueue(None, &queued_lease_request("db:1", "writer", 60_000, 60_000), 1);
    // It waits behind the writer, not because of a.
    let _reader = server.enqueue(None, &shared("b", 60_000), 2);
    let waiters = server.renew(&id, &token).json()["lease"]["recall"].clone();
    assert_eq!((json_string(&waiters["by"]), &waiters["waiting"]), ("writer".into(), &json!(1)));
}
