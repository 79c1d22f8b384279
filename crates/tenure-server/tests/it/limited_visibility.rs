//! What somebody hears and sees who may not see everything.

use serde_json::json;
use tenure_testkit::{TestServer, json_string, open_event_stream_as};

fn make(server: &TestServer, resources: &[&str]) -> (String, String) {
    let request = json!({ "name": "limited", "scopes": ["leases:read"], "resources": resources });
    let made = server.post("/v1/tokens", &request).json();
    (json_string(&made["token"]["id"]), json_string(&made["secret"]))
}

#[test]
fn a_token_limited_to_prefixes_receives_only_events_on_its_resources() {
    let server = TestServer::start();
    let (_, secret) = make(&server, &["deploy:"]);
    let mut stream = open_event_stream_as(&server, &secret, "/v1/events?type=*", None);
    server.acquire("db:1", "a", 60_000);
    let wait = json!({"resource": "db:1", "holder": "b", "ttlMs": 1_000, "waitMs": 100});
    server.post("/v1/leases", &wait).expect_problem(409, "HELD");
    server.acquire("deploy:prod", "a", 60_000);
    loop {
        let message = stream.next().unwrap();
        // The server's own events are about nobody's resource.
        if !message.event_type().starts_with("clock.") {
            assert_eq!(message.data["lease"]["resource"], json!("deploy:prod"), "{message:?}");
            break;
        }
    }
    let bearer = [format!("Authorization: Bearer {secret}")];
    for route in ["queue", "explain"] {
        assert_eq!(server.request(&format!("GET /v1/{route}?resource=deploy:prod"), &bearer, "").status, 200);
        let refused = server.request(&format!("GET /v1/{route}?resource=db:1"), &bearer, "");
        refused.expect_problem(403, "FORBIDDEN");
    }
}

#[test]
fn the_queue_hides_resources_that_the_token_may_not_see() {
    let server = TestServer::start();
    let (_, secret) = make(&server, &["deploy:"]);
    let (id, token) = server.acquire("deploy:prod", "a", 60_000);
    let entry =
        |resource: &str| json!({"resource": resource, "holder": "b", "ttlMs": 60_000, "waitMs": 60_000});
    let both = json!({ "leases": [entry("deploy:prod"), entry("db:1")] });
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| server.post("/v1/leases/batch", &both).status);
        let bearer = [format!("Authorization: Bearer {secret}")];
        let shown = loop {
            let queue = server.request("GET /v1/queue?resource=deploy:prod", &bearer, "").json();
            if let Some(waiter) = queue["waiting"].get(0) {
                break waiter.clone();
            }
        };
        assert_eq!((&shown["holder"], &shown["resources"]), (&json!("b"), &json!(["deploy:prod"])));
        let all = server.get("/v1/queue?resource=deploy:prod").json();
        assert_eq!(all["waiting"][0]["resources"], json!(["deploy:prod", "db:1"]));
        server.release(&id, &token);
        assert_eq!(waiter.join().unwrap(), 201);
    });
}

#[test]
fn an_event_stream_ends_when_its_token_is_revoked() {
    let server = TestServer::start();
    let (id, secret) = make(&server, &[]);
    let mut stream = open_event_stream_as(&server, &secret, "/v1/events", None);
    server.acquire("db:1", "a", 60_000);
    stream.expect("lease.issued");
    assert_eq!(server.request(&format!("DELETE /v1/tokens/{id}"), &[server.bearer()], "").status, 200);
    server.acquire("db:2", "a", 60_000);
    assert!(stream.next().is_none(), "nothing that came after is told");
}

#[test]
fn an_event_stream_ends_when_its_token_expires() {
    let server = TestServer::start();
    let request = json!({ "name": "brief", "scopes": ["leases:read"], "expiresInMs": 1_500 });
    let secret = json_string(&server.post("/v1/tokens", &request).json()["secret"]);
    let mut stream = open_event_stream_as(&server, &secret, "/v1/events", None);
    server.acquire("db:1", "a", 60_000);
    stream.expect("lease.issued");
    let bearer = [format!("Authorization: Bearer {secret}")];
    while server.request("GET /v1/leases", &bearer, "").status == 200 {}
    server.acquire("db:2", "a", 60_000);
    assert!(stream.next().is_none(), "nothing that came after is told");
}

#[test]
fn a_request_forbidden_for_its_token_is_not_recorded_as_denial() {
    let server = TestServer::start();
    let request = json!({ "name": "limited", "scopes": ["leases:write"], "resources": ["secret-project:"] });
    let secret = json_string(&server.post("/v1/tokens", &request).json()["secret"]);
    server.acquire("db:1", "a", 60_000);
    server
        .post("/v1/leases", &tenure_testkit::lease_request("db:1", "b", 60_000))
        .expect_problem(409, "HELD");
    let headers = [format!("Authorization: Bearer {secret}"), "Content-Type: application/json".to_owned()];
    let body = tenure_testkit::lease_request("db:1", "c", 60_000).to_string();
    server.request("POST /v1/leases", &headers, &body).expect_problem(403, "FORBIDDEN");
    let explained = server.get("/v1/explain?resource=db:1");
    assert_eq!(explained.json()["lastRefusal"]["holder"], json!("b"), "{explained:?}");
    assert!(!explained.text.contains("secret-project"), "{explained:?}");
}
