//! Leases that say what their holder may do, over HTTP.

mod crowd;
mod ledger;
mod routes;

use serde_json::{Value, json};
use tenure_testkit::{Response, TestServer, text};

/// A lease on work and its token.
#[derive(Debug, Clone)]
pub struct Lease {
    pub id: String,
    pub token: String,
    pub passport: String,
}

pub fn claim(server: &TestServer, work: &str, budget: &Value) -> Lease {
    let body =
        json!({ "work_id": work, "actor_id": format!("actor-{work}"), "ttlMs": 600_000, "budget": budget });
    granted(&server.post("/v1/work/claim", &body))
}

pub fn derive(server: &TestServer, parent: &Lease, work: &str, ttl_ms: u64, budget: &Value) -> Response {
    let body = json!({
        "lease_id": parent.id, "token": parent.token, "work_id": work, "actor_id": format!("actor-{work}"),
        "ttlMs": ttl_ms, "budget": budget,
    });
    server.post("/v1/work/derive", &body)
}

pub fn spend(server: &TestServer, lease: &Lease, tokens: u64, key: Option<&str>) -> Response {
    let body = json!({ "lease_id": lease.id, "token": lease.token, "tokens": tokens });
    let mut headers = vec![server.bearer(), "Content-Type: application/json".into()];
    headers.extend(key.map(|key| format!("Idempotency-Key: {key}")));
    server.ask("POST /v1/work/spend", &headers, &body.to_string())
}

pub fn work(server: &TestServer, lease: &Lease) -> Value {
    server.get(&format!("/v1/work/{}", lease.id)).with_status(200)
}

pub fn granted(answer: &Response) -> Lease {
    assert_eq!(answer.status, 201, "{answer:?}");
    let json = answer.json();
    Lease { id: text(&json["lease"]["id"]), token: text(&json["token"]), passport: text(&json["passport"]) }
}

pub fn code(answer: &Response) -> (u16, String) {
    (answer.status, text(&answer.json()["code"]))
}
