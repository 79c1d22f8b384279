//! Renewing, releasing, running out.

use serde_json::json;
use tenure_testkit::{TestServer, json_string, lease_request};

#[test]
fn a_renewal_restarts_the_ttl_and_never_shortens_it() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 30_000);
    let renewed = server.renew(&id, &token).expect_status(200);
    let lease = &renewed["lease"];
    assert_eq!((&lease["remainingMs"], &lease["renewalCount"]), (&json!(30_000), &json!(1)));
    assert_eq!((&lease["id"], &lease["state"]), (&json!(id), &json!("ACTIVE")));
    let longer = server.post(&format!("/v1/leases/{id}/renew"), &json!({ "token": token, "ttlMs": 60_000 }));
    let lease = &longer.json()["lease"];
    assert_eq!((&lease["remainingMs"], &lease["ttlMs"]), (&json!(60_000), &json!(60_000)));
    // It is never shortened.
    let shorter = server.post(&format!("/v1/leases/{id}/renew"), &json!({ "token": token, "ttlMs": 1_000 }));
    let lease = &shorter.json()["lease"];
    assert!(lease["remainingMs"].as_u64().unwrap() > 30_000, "{lease}");
    assert_eq!(lease["renewalCount"], json!(2));
    let shown = server.get(&format!("/v1/leases/{id}")).json();
    assert_eq!(shown["lease"]["renewalCount"], json!(2));
}

#[test]
fn a_grant_and_every_renewal_come_with_a_passport_of_their_own() {
    let server = TestServer::start();
    let granted = server.post("/v1/leases", &lease_request("db:1", "a", 30_000)).json();
    let renewed = server.renew(&json_string(&granted["lease"]["id"]), &json_string(&granted["token"])).json();
    let (first, second) = (json_string(&granted["passport"]), json_string(&renewed["passport"]));
    assert!(first.len() > 100 && second.len() > 100 && first != second, "{first} {second}");
}

#[test]
fn a_released_lease_is_free_and_releasing_again_returns_the_same_end() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 30_000);
    let path = format!("/v1/leases/{id}/release");
    let released = server.post(&path, &json!({ "token": token, "reason": "ABORTED" })).expect_status(200);
    let lease = released["lease"].clone();
    assert_eq!(
        (&lease["state"], &lease["end"], &lease["remainingMs"]),
        (&json!("RELEASED"), &json!("ABORTED"), &json!(0))
    );
    assert!(json_string(&lease["endedAt"]).ends_with('Z'));
    server.acquire("db:1", "b", 30_000);
    let again = server.release(&id, &token);
    assert_eq!((again.status, again.json()["lease"].clone()), (200, lease));
    let problem = server.renew(&id, &token).expect_problem(410, "EXPIRED");
    assert_eq!(problem["end"], json!("ABORTED"));
}

#[test]
fn a_release_without_a_reason_is_completed() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 30_000);
    assert_eq!(server.release(&id, &token).json()["lease"]["end"], json!("COMPLETED"));
    let path = format!("/v1/leases/{id}/release");
    let problem =
        server.post(&path, &json!({ "token": token, "reason": "TIRED" })).expect_problem(400, "INVALID");
    assert!(json_string(&problem["detail"]).starts_with("reason: "), "{problem}");
}

#[test]
fn a_lease_that_is_not_renewed_expires() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 1_000);
    let lease = server.wait_until_lease_ended(&id);
    assert_eq!(
        (&lease["state"], &lease["end"], &lease["remainingMs"]),
        (&json!("EXPIRED"), &json!("EXPIRED"), &json!(0))
    );
    assert!(lease["endedAt"].is_string(), "{lease}");
    let problem = server.renew(&id, &token).expect_problem(410, "EXPIRED");
    assert_eq!(problem["end"], json!("EXPIRED"));
    assert_eq!(server.release(&id, &token).json()["lease"]["state"], json!("EXPIRED"));
    server.acquire("db:1", "b", 1_000);
    // A repeated request is told that its lease is over, and gets no second one.
    let answer = server.post_with_key("/v1/leases", "key", &lease_request("db:2", "a", 1_000));
    server.wait_until_lease_ended(&json_string(&answer.json()["lease"]["id"]));
    server
        .post_with_key("/v1/leases", "key", &lease_request("db:2", "a", 1_000))
        .expect_problem(410, "EXPIRED");
}

#[test]
fn only_the_leases_own_token_renews_and_releases_it() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 30_000);
    let (_, other) = server.acquire("db:2", "a", 30_000);
    let cut = &token[..token.len() - 1];
    for wrong in [other.as_str(), "", cut, &format!("{token}="), &server.token] {
        server.renew(&id, wrong).expect_problem(403, "TOKEN_INVALID");
        server.release(&id, wrong).expect_problem(403, "TOKEN_INVALID");
    }
    assert_eq!(server.release(&id, &token).status, 200);
    server.release(&id, &other).expect_problem(403, "TOKEN_INVALID");
}

#[test]
fn an_unknown_lease_is_not_found_for_any_token() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 30_000);
    let tag = id.split_once('-').unwrap().0;
    let next = format!("{tag}-2");
    let ids = [
        &next,
        "00000000-1",
        "x",
        &format!("{tag}-01"),
        &format!("{tag}-99999999999999999999"),
        "%ff",
        "%00",
    ];
    for unknown in ids {
        server.get(&format!("/v1/leases/{unknown}")).expect_problem(404, "NOT_FOUND");
        server.renew(unknown, &token).expect_problem(404, "NOT_FOUND");
        server.release(unknown, &token).expect_problem(404, "NOT_FOUND");
    }
}
