//! Leases that say what their holder may do, over HTTP.

mod concurrency;
mod ledger;
mod routes;

use serde_json::{Value, json};
use tenure_testkit::{Response, TestServer, json_string};

/// A lease on work and its token.
#[derive(Debug, Clone)]
pub struct WorkLease {
    pub id: String,
    pub token: String,
    pub passport: String,
}

pub fn claim(server: &TestServer, work: &str, budget: &Value) -> WorkLease {
    let body =
        json!({ "work_id": work, "actor_id": format!("actor-{work}"), "ttlMs": 600_000, "budget": budget });
    granted(&server.post("/v1/work/claim", &body))
}

pub fn derive(server: &TestServer, parent: &WorkLease, work: &str, ttl_ms: u64, budget: &Value) -> Response {
    let body = json!({
        "lease_id": parent.id, "token": parent.token, "work_id": work, "actor_id": format!("actor-{work}"),
        "ttlMs": ttl_ms, "budget": budget,
    });
    server.post("/v1/work/derive", &body)
}

pub fn spend(server: &TestServer, lease: &WorkLease, tokens: u64, key: Option<&str>) -> Response {
    let body = json!({ "lease_id": lease.id, "token": lease.token, "tokens": tokens });
    let mut headers = vec![server.bearer(), "Content-Type: application/json".into()];
    headers.extend(key.map(|key| format!("Idempotency-Key: {key}")));
    server.request("POST /v1/work/spend", &headers, &body.to_string())
}

pub fn show_work(server: &TestServer, lease: &WorkLease) -> Value {
    server.get(&format!("/v1/work/{}", lease.id)).expect_status(200)
}

pub fn granted(answer: &Response) -> WorkLease {
    assert_eq!(answer.status, 201, "{answer:?}");
    let json = answer.json();
    WorkLease {
        id: json_string(&json["lease"]["id"]),
        token: json_string(&json["token"]),
        passport: json_string(&json["passport"]),
    }
}

pub fn code(answer: &Response) -> (u16, String) {
    (answer.status, json_string(&answer.json()["code"]))
}
