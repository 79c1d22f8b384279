//! Each route, what it gives, and what it refuses.

use serde_json::json;
use tenure_testkit::{TestServer, open_event_stream};

use super::{claim, code, derive, granted, show_work, spend};

// S2-107, S2-108, S2-111
#[test]
fn a_claim_returns_scope_and_budget() {
    let server = TestServer::start();
    let body = json!({
        "work_id": "T-17", "actor_id": "planner", "ttlMs": 60_000, "labels": {"team": "a"},
        "scope": {"workIds": ["T-17", "T-17/tests"], "tools": ["search"], "namespaces": ["src/web"]},
        "budget": {"tokens": 1_000, "toolCalls": 5},
    });
    let answer = server.post("/v1/work/claim", &body);
    let lease = granted(&answer);
    assert_eq!(answer.json()["lease"]["resource"], "work:T-17");
    let shown = show_work(&server, &lease);
    assert_eq!(shown["lease"]["holder"], "planner");
    assert_eq!(shown["work"]["scope"]["namespaces"], json!(["src/web"]));
    assert_eq!(shown["work"]["budget"]["tokens"], 1_000);
    assert_eq!(
        shown["work"]["budget"]["episodes"], 9_007_199_254_740_991_u64,
        "what is not named has no bound"
    );
    let again = server.post("/v1/work/claim", &body);
    assert_eq!(code(&again), (409, "HELD".into()));

    let for_tool = |tool: &str, namespace: &str| {
        json!({
            "lease_id": lease.id, "token": lease.token, "tokens": 100, "toolCalls": 1,
            "for": {"tool": tool, "namespace": namespace, "workId": "T-17"},
        })
    };
    let spent = server.post("/v1/work/spend", &for_tool("search", "src/web/page.rs"));
    assert_eq!((spent.status, &spent.json()["remaining"]["tokens"]), (200, &json!(900)), "{spent:?}");
    for (tool, namespace) in [("shell", "src/web"), ("search", "src"), ("search", "src/web/../../etc")] {
        let refused = server.post("/v1/work/spend", &for_tool(tool, namespace));
        assert_eq!(code(&refused), (403, "OUT_OF_SCOPE".into()));
    }
    let refused = spend(&server, &lease, 901, None);
    assert_eq!(code(&refused), (409, "BUDGET_EXCEEDED".into()));
    assert_eq!(refused.json()["remaining"]["tokens"], 900);
    assert_eq!(show_work(&server, &lease)["work"]["spent"]["tokens"], 100);
}

// S2-109, O-16
#[test]
fn a_child_is_within_its_parent_and_ends_with_it() {
    let server = TestServer::start();
    let parent = claim(&server, "plan", &json!({"tokens": 1_000}));
    let refused = derive(&server, &parent, "part", 601_000, &json!({}));
    assert_eq!(code(&refused), (409, "OUTLIVES_PARENT".into()));
    assert!(refused.json()["remainingMs"].as_u64().is_some_and(|remaining| remaining <= 600_000));
    assert_eq!(
        code(&derive(&server, &parent, "part", 60_000, &json!({"tokens": 1_001}))).1,
        "BUDGET_EXCEEDED"
    );
    let up = derive(&server, &parent, "../part", 60_000, &json!({}));
    assert_eq!(code(&up), (400, "INVALID".into()));
    let child = granted(&derive(&server, &parent, "part", 60_000, &json!({"tokens": 300})));
    let below = granted(&derive(&server, &child, "part/of/it", 30_000, &json!({"tokens": 100})));
    let shown = show_work(&server, &parent);
    assert_eq!(
        (&shown["work"]["remaining"]["tokens"], &shown["work"]["given"]["tokens"]),
        (&json!(700), &json!(300))
    );
    assert_eq!(shown["work"]["children"], json!([child.id]));
    assert_eq!(show_work(&server, &below)["work"]["parent"], json!(child.id));

    let renew = json!({ "lease_id": child.id, "token": child.token, "ttlMs": 700_000 });
    assert_eq!(code(&server.post("/v1/work/renew", &renew)), (409, "OUTLIVES_PARENT".into()));
    let renew = json!({ "lease_id": child.id, "token": child.token, "ttlMs": 120_000 });
    assert_eq!(server.post("/v1/work/renew", &renew).status, 200);

    let release = json!({ "lease_id": parent.id, "token": parent.token });
    assert_eq!(server.post("/v1/work/release", &release).status, 200);
    for lease in [&parent, &child, &below] {
        assert_eq!(show_work(&server, lease)["lease"]["state"], "RELEASED");
    }
    assert_eq!(show_work(&server, &child)["lease"]["end"], "REVOKED");
    assert_eq!(code(&spend(&server, &below, 1, None)), (410, "EXPIRED".into()));
}

// S2-108, S2-109
#[test]
fn a_derive_or_spend_repeated_with_its_key_happens_once() {
    let server = TestServer::start();
    let parent = claim(&server, "plan", &json!({"tokens": 1_000}));
    for _ in 0..2 {
        let spent = spend(&server, &parent, 400, Some("one"));
        assert_eq!((spent.status, &spent.json()["remaining"]["tokens"]), (200, &json!(600)), "{spent:?}");
    }
    assert_eq!(code(&spend(&server, &parent, 1, Some("one"))), (409, "KEY_REUSED".into()));
    let body = json!({
        "lease_id": parent.id, "token": parent.token, "work_id": "part", "actor_id": "b", "ttlMs": 60_000,
        "scope": {}, "budget": {"tokens": 400},
    });
    let keyed = || {
        let headers =
            [server.bearer(), "Content-Type: application/json".into(), "Idempotency-Key: two".into()];
        granted(&server.request("POST /v1/work/derive", &headers, &body.to_string()))
    };
    let (first, again) = (keyed(), keyed());
    assert_eq!((&first.id, &first.token), (&again.id, &again.token));
    assert_eq!(show_work(&server, &parent)["work"]["remaining"]["tokens"], 200);
    // An empty scope allows nothing, not everything.
    let refused = server.post(
        "/v1/work/spend",
        &json!({ "lease_id": first.id, "token": first.token, "for": {"tool": "search"} }),
    );
    assert_eq!(code(&refused), (403, "OUT_OF_SCOPE".into()));
}

// S2-111
#[test]
fn spending_requires_the_token_and_a_lease_with_authority() {
    let server = TestServer::start();
    let lease = claim(&server, "plan", &json!({"tokens": 10}));
    let other = claim(&server, "other", &json!({"tokens": 10}));
    let stolen = super::WorkLease { token: other.token.clone(), ..lease.clone() };
    assert_eq!(code(&spend(&server, &stolen, 1, None)), (403, "TOKEN_INVALID".into()));
    assert_eq!(code(&derive(&server, &stolen, "part", 60_000, &json!({}))), (403, "TOKEN_INVALID".into()));
    let (id, token) = server.acquire("work:plain", "a", 60_000);
    let plain = super::WorkLease { id, token, passport: String::new() };
    assert_eq!(code(&spend(&server, &plain, 1, None)), (409, "NO_AUTHORITY".into()));
    assert_eq!(code(&derive(&server, &plain, "part", 60_000, &json!({}))), (409, "NO_AUTHORITY".into()));
    assert_eq!(code(&server.get(&format!("/v1/work/{}", plain.id))), (409, "NO_AUTHORITY".into()));
    let transfer = json!({ "token": lease.token, "to": "somebody" });
    let refused = server.post(&format!("/v1/leases/{}/transfer", lease.id), &transfer);
    assert_eq!(code(&refused), (409, "AUTHORITY_BOUND".into()));
    for wrong in [
        json!({ "work_id": "", "actor_id": "a" }),
        json!({ "work_id": "x".repeat(124), "actor_id": "a" }),
        json!({ "work_id": "w", "actor_id": "a", "budget": {"tokens": 9_007_199_254_740_992_u64} }),
        json!({ "work_id": "w", "actor_id": "a", "budget": {"token": 1} }),
        json!({ "work_id": "w", "actor_id": "a", "scope": {"namespaces": ["a/.."]} }),
    ] {
        assert_eq!(code(&server.post("/v1/work/claim", &wrong)), (400, "INVALID".into()), "{wrong}");
    }
}

#[test]
fn a_spend_is_published() {
    let server = TestServer::start();
    let mut stream = open_event_stream(&server, "/v1/events?type=work.*", None);
    let lease = claim(&server, "plan", &json!({"tokens": 10}));
    assert_eq!(spend(&server, &lease, 3, None).status, 200);
    let spent = stream.expect("work.spent");
    assert_eq!((&spent.data["spent"]["tokens"], &spent.data["lease"]["id"]), (&json!(3), &json!(lease.id)));
}
