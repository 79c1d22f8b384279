//! Tokens that reach only so far: what they may do with leases, and with the waits of others.

use std::io::Write as _;

use serde_json::{Value, json};
use tenure_testkit::{Response, TestServer, json_string, lease_request, queued_lease_request, read_to_end};

/// Makes a token for `deploy:` alone, or for everything: its id and its secret.
fn make(server: &TestServer, name: &str, resources: &[&str]) -> (String, String) {
    let scopes = ["leases:read", "leases:write"];
    let made = server.post("/v1/tokens", &json!({ "name": name, "scopes": scopes, "resources": resources }));
    let made = made.json();
    (json_string(&made["token"]["id"]), json_string(&made["secret"]))
}

fn headers(secret: &str) -> [String; 2] {
    [format!("Authorization: Bearer {secret}"), "Content-Type: application/json".into()]
}

fn ask_as(server: &TestServer, secret: &str, line: &str, body: &Value) -> Response {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    server.request(line, &headers(secret), &body)
}

#[test]
fn a_token_limited_to_prefixes_cannot_act_on_or_see_other_resources() {
    let server = TestServer::start();
    let (_, secret) = make(&server, "ci", &["deploy:", "cache:"]);
    let ask = |line: &str, body: &Value| ask_as(&server, &secret, line, body);
    let (id, token) = server.acquire("db:1", "a", 60_000);
    let own = ask("POST /v1/leases", &lease_request("deploy:prod", "runner", 60_000));
    let (own_id, own_token) = own.lease_id_and_token();

    ask("POST /v1/leases", &lease_request("db:2", "runner", 60_000)).expect_problem(403, "FORBIDDEN");
    let both = json!({"leases": [lease_request("deploy:other", "runner", 60_000), lease_request("db:2", "runner", 60_000)]});
    ask("POST /v1/leases/batch", &both).expect_problem(403, "FORBIDDEN");
    for (path, body) in [
        ("renew", json!({ "token": token })),
        ("release", json!({ "token": token })),
        ("transfer", json!({ "token": token, "to": "runner" })),
        ("upgrade", json!({ "token": token })),
        ("downgrade", json!({ "token": token })),
    ] {
        ask(&format!("POST /v1/leases/{id}/{path}"), &body).expect_problem(403, "FORBIDDEN");
    }
    ask(&format!("GET /v1/leases/{id}"), &Value::Null).expect_problem(403, "FORBIDDEN");
    ask("GET /v1/leases?resource=db:1", &Value::Null).expect_problem(403, "FORBIDDEN");
    let listed = |answer: &Response| answer.json()["leases"].as_array().unwrap().len();
    assert_eq!(listed(&ask("GET /v1/leases", &Value::Null)), 1);
    assert_eq!(listed(&ask("GET /v1/leases?holder=a", &Value::Null)), 0);
    assert_eq!(listed(&server.get("/v1/leases")), 2, "nothing of the batch was granted");

    let renew = ask(&format!("POST /v1/leases/{own_id}/renew"), &json!({ "token": own_token }));
    assert_eq!(renew.status, 200, "{renew:?}");
    ask(&format!("POST /v1/leases/{own_id}/revoke"), &json!({ "reason": "x" }))
        .expect_problem(403, "FORBIDDEN");
}

#[test]
fn a_wait_is_withdrawn_only_by_its_principal_or_an_admin() {
    let server = TestServer::start();
    let ((_, one), (_, other)) = (make(&server, "one", &[]), make(&server, "other", &[]));
    server.acquire("db:1", "a", 600_000);
    let begin = |secret: &str, key: &str, holder: &str| {
        let body = queued_lease_request("db:1", holder, 60_000, 600_000).to_string();
        let head = headers(secret).join("\r\n");
        let mut stream = server.connect();
        let request = format!(
            "POST /v1/leases HTTP/1.1\r\nHost: {}\r\n{head}\r\nIdempotency-Key: {key}\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            server.address,
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    let first = begin(&one, "k", "b");
    server.wait_for_waiters("db:1", 1);
    let second = begin(&one, "k2", "c");
    server.wait_for_waiters("db:1", 2);
    ask_as(&server, &other, "DELETE /v1/queue/1", &Value::Null).expect_problem(404, "NOT_FOUND");
    assert_eq!(ask_as(&server, &one, "DELETE /v1/queue/1", &Value::Null).status, 200);
    assert_eq!(ask_as(&server, &server.token, "DELETE /v1/queue/2", &Value::Null).status, 200);
    for stream in [first, second] {
        read_to_end(stream).expect_problem(409, "HELD");
    }
    assert_eq!(server.waiter_count("db:1"), 0);
}

#[test]
fn revoking_a_token_withdraws_its_tickets() {
    let server = TestServer::start();
    let (id, secret) = make(&server, "ci", &[]);
    server.acquire("db:1", "a", 600_000);
    std::thread::scope(|scope| {
        let pending = scope.spawn(|| {
            ask_as(&server, &secret, "POST /v1/leases", &queued_lease_request("db:1", "b", 60_000, 600_000))
        });
        server.wait_for_waiters("db:1", 1);
        let revoked = server.request(&format!("DELETE /v1/tokens/{id}"), &[server.bearer()], "");
        assert_eq!(revoked.status, 200, "{revoked:?}");
        pending.join().unwrap().expect_problem(401, "UNAUTHORIZED");
    });
    assert_eq!(server.waiter_count("db:1"), 0);
}
