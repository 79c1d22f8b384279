//! What an acquisition gives, and what stands in its way.

use serde_json::{Value, json};
use tenure_testkit::{TestServer, json_string, lease_request};

#[test]
fn a_granted_lease_has_the_documented_fields() {
    let server = TestServer::start();
    let request = json!({"resource": "deploy:prod", "holder": "ci-42", "ttlMs": 30_000, "mode": "exclusive",
        "waitMs": 0, "labels": {"run": "7"}});
    let answer = server.post("/v1/leases", &request);
    assert_eq!((answer.status, answer.header("content-type")), (201, Some("application/json")), "{answer:?}");
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let json = answer.json();
    let lease = &json["lease"];
    let names: Vec<_> = lease.as_object().unwrap().keys().cloned().collect();
    let expected = ["acquiredAt", "expiresAt", "fence", "holder", "id", "labels", "mode", "remainingMs"];
    assert_eq!(names[..8], expected);
    assert_eq!(names[8..], ["renewalCount", "resource", "state", "ttlMs"]);
    let id = json_string(&lease["id"]);
    assert!(id.ends_with("-1"), "the first fence is 1: {id}");
    for (name, value) in [
        ("resource", json!("deploy:prod")),
        ("holder", json!("ci-42")),
        ("mode", json!("exclusive")),
        ("state", json!("ACTIVE")),
        ("fence", json!(1)),
        ("ttlMs", json!(30_000)),
        ("remainingMs", json!(30_000)),
        ("renewalCount", json!(0)),
        ("labels", json!({"run": "7"})),
    ] {
        assert_eq!(lease[name], value, "{name}");
    }
    assert_eq!(json_string(&json["token"]).len(), 43);
    let (from, until) = (json_string(&lease["acquiredAt"]), json_string(&lease["expiresAt"]));
    assert_eq!((from.len(), &from[10..11], &from[19..20], &from[23..]), (24, "T", ".", "Z"), "{from}");
    assert!(from.as_str() > "2024" && until > from, "{from} to {until}");
}

#[test]
fn acquire_of_a_held_resource_is_denied_with_holder_and_remaining_time() {
    let server = TestServer::start();
    server.acquire("deploy:prod", "ci-42", 30_000);
    let problem =
        server.post("/v1/leases", &lease_request("deploy:prod", "ci-43", 1_000)).expect_problem(409, "HELD");
    assert_eq!((&problem["resource"], &problem["holder"]), (&json!("deploy:prod"), &json!("ci-42")));
    assert_eq!(problem["waiting"], json!(0));
    let remaining = problem["remainingMs"].as_u64().unwrap();
    assert!((1..=30_000).contains(&remaining), "{remaining}");
    // The holder's own name is no proof.
    server.post("/v1/leases", &lease_request("deploy:prod", "ci-42", 1_000)).expect_problem(409, "HELD");
}

#[test]
fn shared_leases_coexist_and_block_an_exclusive_one() {
    let server = TestServer::start();
    let shared =
        |holder: &str| json!({"resource": "db:1", "holder": holder, "ttlMs": 9_000, "mode": "shared"});
    assert_eq!(server.post("/v1/leases", &shared("a")).status, 201);
    assert_eq!(server.post("/v1/leases", &shared("b")).status, 201);
    server.post("/v1/leases", &lease_request("db:1", "c", 9_000)).expect_problem(409, "HELD");
}

#[test]
fn a_request_repeated_with_its_key_returns_the_same_lease_and_token() {
    let server = TestServer::start();
    let first = server.post_with_key("/v1/leases", "once", &lease_request("db:1", "a", 30_000));
    let again = server.post_with_key("/v1/leases", "once", &lease_request("db:1", "a", 30_000));
    assert_eq!((first.status, again.status), (201, 201), "{again:?}");
    let (first, again) = (first.json(), again.json());
    assert_eq!(first["token"], again["token"]);
    let without_rest = |answer: &Value| {
        let mut lease = answer["lease"].clone();
        lease.as_object_mut().unwrap().remove("remainingMs");
        lease
    };
    assert_eq!(without_rest(&first), without_rest(&again));
    assert!(again["lease"]["remainingMs"].as_u64() <= first["lease"]["remainingMs"].as_u64());
    assert_eq!(server.renew(&json_string(&again["lease"]["id"]), &json_string(&again["token"])).status, 200);
    server
        .post_with_key("/v1/leases", "once", &lease_request("db:2", "a", 30_000))
        .expect_problem(409, "KEY_REUSED");
    assert_eq!(server.post_with_key("/v1/leases", "twice", &lease_request("db:2", "a", 30_000)).status, 201);
}

#[test]
fn an_idempotency_key_must_be_short_visible_ascii() {
    let server = TestServer::start();
    for key in ["", "a b", "ä", &"k".repeat(256)] {
        let problem = server
            .post_with_key("/v1/leases", key, &lease_request("db:1", "a", 30_000))
            .expect_problem(400, "INVALID");
        assert!(json_string(&problem["detail"]).starts_with("Idempotency-Key: "), "{problem}");
    }
    assert_eq!(
        server.post_with_key("/v1/leases", &"k".repeat(255), &lease_request("db:1", "a", 30_000)).status,
        201
    );
}

#[test]
fn a_ttl_out_of_range_is_rejected_and_not_clamped() {
    let server = TestServer::start();
    for ttl in [0, 999, 86_400_001, u64::MAX] {
        server.post("/v1/leases", &lease_request("db:1", "a", ttl)).expect_problem(400, "TTL_OUT_OF_RANGE");
    }
    let (id, token) = server.acquire("db:1", "a", 86_400_000);
    let renewal = json!({ "token": token, "ttlMs": 999 });
    server.post(&format!("/v1/leases/{id}/renew"), &renewal).expect_problem(400, "TTL_OUT_OF_RANGE");
    server.acquire("db:2", "a", 1_000);
}

#[test]
fn acquire_with_an_invalid_resource_or_holder_is_rejected() {
    let server = TestServer::start();
    let longest = "r".repeat(128);
    server.acquire(&longest, &"h".repeat(128), 9_000);
    for (resource, holder, field) in [
        ("", "a", "resource"),
        ("db:1", "", "holder"),
        (&format!("{longest}r")[..], "a", "resource"),
        ("db:1", &"ä".repeat(65)[..], "holder"),
        ("db:\u{1f}1", "a", "resource"),
        ("db:1", "a\n", "holder"),
    ] {
        let problem =
            server.post("/v1/leases", &lease_request(resource, holder, 9_000)).expect_problem(400, "INVALID");
        assert!(json_string(&problem["detail"]).starts_with(&format!("{field}: ")), "{problem}");
    }
}
