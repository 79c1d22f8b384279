//! An administrator ends a lease.

use serde_json::json;
use tenure_testkit::{TestServer, json_string, queued_lease_request, read_to_end};

#[test]
fn a_revoked_lease_ends_at_once_and_the_next_waiter_is_granted() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 60_000);
    let next = server.enqueue(None, &queued_lease_request("db:1", "b", 60_000, 60_000), 1);
    let path = format!("/v1/leases/{id}/revoke");
    let answer = server.post(&path, &json!({ "reason": "the machine burns" }));
    let lease = answer.json()["lease"].clone();
    assert_eq!((answer.status, &lease["state"], &lease["end"]), (200, &json!("RELEASED"), &json!("REVOKED")));
    read_to_end(next).lease_id_and_token();
    let ended = server.renew(&id, &token).expect_problem(410, "EXPIRED");
    assert_eq!(ended["end"], json!("REVOKED"));
    // Revoking what is over changes nothing, and says how it ended.
    let again = server.post(&path, &json!({ "reason": "still burning" }));
    assert_eq!((again.status, json_string(&again.json()["lease"]["end"])), (200, "REVOKED".into()));
}

#[test]
fn a_revocation_requires_a_reason() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 60_000);
    let path = format!("/v1/leases/{id}/revoke");
    for body in [json!({}), json!({ "reason": "" }), json!({ "reason": "a\nb" }), json!({ "reason": 1 })] {
        let problem = server.post(&path, &body).expect_problem(400, "INVALID");
        assert!(json_string(&problem["detail"]).starts_with("reason: "), "{problem}");
    }
    server.post("/v1/leases/00000000-1/revoke", &json!({ "reason": "x" })).expect_problem(404, "NOT_FOUND");
    assert_eq!(server.renew(&id, &token).status, 200);
}
