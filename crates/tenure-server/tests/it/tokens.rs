//! Tokens that an admin makes: who speaks with them, what they may do, and how they end.

use std::fs;

use serde_json::{Value, json};
use tenure_testkit::{Response, TestServer, json_string, lease_request};

/// Makes a token: its id and its secret.
fn make(server: &TestServer, name: &str, scopes: &[&str], resources: &[&str]) -> (String, String) {
    let answer =
        server.post("/v1/tokens", &json!({ "name": name, "scopes": scopes, "resources": resources }));
    assert_eq!(answer.status, 201, "{}", answer.text);
    let made = answer.json();
    (json_string(&made["token"]["id"]), json_string(&made["secret"]))
}

/// Asks with this secret.
fn ask_as(server: &TestServer, secret: &str, line: &str, body: &Value) -> Response {
    let headers = [format!("Authorization: Bearer {secret}"), "Content-Type: application/json".into()];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    server.request(line, &headers, &body)
}

fn revoke(server: &TestServer, id: &str) -> Response {
    server.request(&format!("DELETE /v1/tokens/{id}"), &[server.bearer()], "")
}

#[test]
fn a_token_acts_as_its_principal_and_is_listed_without_its_secret() {
    let server = TestServer::start();
    let (id, secret) = make(&server, "ci", &["leases:write", "leases:read"], &[]);
    assert!(secret.len() == 47 && secret.starts_with("tnr_"), "256 bits");
    assert_eq!(
        ask_as(&server, &secret, "POST /v1/leases", &lease_request("db:1", "runner", 60_000)).status,
        201
    );
    // The holder belongs to the token now: not even an admin takes the name.
    server.post("/v1/leases", &lease_request("db:2", "runner", 60_000)).expect_problem(403, "HOLDER_TAKEN");
    let list = server.get("/v1/tokens");
    let shown = &list.json()["tokens"][0];
    assert_eq!((&shown["id"], &shown["name"], &shown["principal"]), (&json!(id), &json!("ci"), &json!("ci")));
    assert_eq!(shown["scopes"], json!(["leases:read", "leases:write"]));
    assert_eq!(shown["resources"], json!([]));
    assert!(
        json_string(&shown["createdAt"]).ends_with('Z') && json_string(&shown["lastUsedAt"]).ends_with('Z')
    );
    assert!(shown.get("expiresAt").is_none() && !list.text.contains(&secret[4..]));
}

#[test]
fn a_missing_scope_is_a_403_that_names_it() {
    let server = TestServer::start();
    let (_, reader) = make(&server, "reader", &["leases:read"], &[]);
    let (_, writer) = make(&server, "writer", &["leases:write"], &[]);
    let (_, admin) = make(&server, "second-admin", &["admin"], &[]);
    for (secret, line, scope) in [
        (&reader, "POST /v1/leases", "leases:write"),
        (&reader, "POST /v1/leases/x/renew", "leases:write"),
        (&reader, "POST /v1/leases/x/release", "leases:write"),
        (&writer, "GET /v1/leases", "leases:read"),
        (&writer, "GET /v1/leases/x", "leases:read"),
        (&writer, "GET /v1/tokens", "admin"),
        (&reader, "POST /v1/tokens", "admin"),
        (&reader, "DELETE /v1/tokens/x", "admin"),
    ] {
        let problem = ask_as(&server, secret, line, &Value::Null).expect_problem(403, "FORBIDDEN");
        assert!(json_string(&problem["detail"]).contains(&format!("`{scope}`")), "{line}: {problem}");
    }
    assert_eq!(ask_as(&server, &reader, "GET /v1/leases", &Value::Null).status, 200);
    assert_eq!(ask_as(&server, &admin, "GET /v1/leases", &Value::Null).status, 200, "admin is everything");
    assert_eq!(ask_as(&server, &admin, "GET /v1/tokens", &Value::Null).status, 200);
}

#[test]
fn a_limited_admin_token_cannot_manage_tokens() {
    let server = TestServer::start();
    let (id, limited) = make(&server, "limited", &["admin"], &["deploy:"]);
    let request = json!({ "name": "more", "scopes": ["admin"] });
    for line in ["POST /v1/tokens", "GET /v1/tokens", &format!("DELETE /v1/tokens/{id}")] {
        ask_as(&server, &limited, line, &request).expect_problem(403, "FORBIDDEN");
    }
}

#[test]
fn an_invalid_token_request_is_rejected() {
    let server = TestServer::start();
    for (request, reason) in [
        (json!({ "scopes": ["admin"] }), "name: is missing"),
        (json!({ "name": "", "scopes": ["admin"] }), "name: "),
        (json!({ "name": "a\nb", "scopes": ["admin"] }), "name: "),
        (json!({ "name": "x".repeat(129), "scopes": ["admin"] }), "name: has more than 128"),
        (json!({ "name": "admin", "scopes": ["admin"] }), "the server's own"),
        (json!({ "name": "local-0", "scopes": ["admin"] }), "the server's own"),
        (json!({ "name": "ci" }), "scopes: is missing"),
        (json!({ "name": "ci", "scopes": [] }), "scopes: must be some of: leases:read"),
        (json!({ "name": "ci", "scopes": ["everything"] }), "scopes: must be some of"),
        (json!({ "name": "ci", "scopes": "admin" }), "scopes: must be an array"),
        (json!({ "name": "ci", "scopes": ["admin"], "resources": [""] }), "resources: must be at most"),
        (json!({ "name": "ci", "scopes": ["admin"], "resources": [1] }), "resources[0]: must be a string"),
        (
            json!({ "name": "ci", "scopes": ["admin"], "resources": vec!["a:"; 65] }),
            "resources: must be at most 64",
        ),
        (json!({ "name": "ci", "scopes": ["admin"], "expiresInMs": 0 }), "expiresInMs: must be from 1"),
        (json!({ "name": "ci", "scopes": ["admin"], "expiresAt": "x" }), "\"expiresAt\": is not a field"),
    ] {
        let problem = server.post("/v1/tokens", &request).expect_problem(400, "INVALID");
        assert!(json_string(&problem["detail"]).contains(reason), "{request}: {problem}");
    }
    assert_eq!(server.get("/v1/tokens").json()["tokens"], json!([]));
}

#[test]
fn names_of_valid_tokens_are_unique() {
    let server = TestServer::start();
    let (id, _) = make(&server, "ci", &["leases:read"], &[]);
    let request = json!({ "name": "ci", "scopes": ["leases:read"] });
    server.post("/v1/tokens", &request).expect_problem(409, "NAME_TAKEN");
    assert_eq!(revoke(&server, &id).status, 200);
    assert_eq!(server.post("/v1/tokens", &request).status, 201);
}

#[test]
fn a_token_expires() {
    let server = TestServer::start();
    let request = json!({ "name": "brief", "scopes": ["leases:read"], "expiresInMs": 1_500 });
    let made = server.post("/v1/tokens", &request).json();
    let secret = json_string(&made["secret"]);
    assert!(json_string(&made["token"]["expiresAt"]) > json_string(&made["token"]["createdAt"]));
    assert_eq!(ask_as(&server, &secret, "GET /v1/leases", &Value::Null).status, 200);
    loop {
        let answer = ask_as(&server, &secret, "GET /v1/leases", &Value::Null);
        if answer.status != 200 {
            answer.expect_problem(401, "UNAUTHORIZED");
            break;
        }
    }
    assert_eq!(server.get("/v1/tokens").json()["tokens"], json!([]));
}

#[test]
fn a_revoked_token_is_rejected_and_its_leases_end() {
    let server = TestServer::start();
    let (id, secret) = make(&server, "ci", &["leases:write", "leases:read"], &[]);
    let (_, other) = make(&server, "other", &["leases:write", "leases:read"], &[]);
    let lease = |secret: &str, resource: &str, holder: &str| {
        let answer = ask_as(&server, secret, "POST /v1/leases", &lease_request(resource, holder, 60_000));
        (json_string(&answer.json()["lease"]["id"]), json_string(&answer.json()["token"]))
    };
    let theirs: Vec<_> = (0..5).map(|n| lease(&secret, &format!("db:{n}"), "a")).collect();
    let (kept, _) = lease(&other, "db:9", "b");
    // A connection that is open counts for nothing: the token is looked up for each request.
    let mut open = server.connect();
    let line = format!(
        "GET /v1/leases HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {secret}\r\n\r\n",
        server.address
    );
    assert_eq!(tenure_testkit::exchange_keep_alive(&mut open, &line).status, 200);
    let answer = revoke(&server, &id);
    assert_eq!((answer.status, &answer.json()["revokedLeases"]), (200, &json!(5)), "{}", answer.text);
    assert_eq!(tenure_testkit::exchange_keep_alive(&mut open, &line).status, 401);
    for (lease, token) in theirs {
        let lease_now = server.get(&format!("/v1/leases/{lease}")).json();
        assert_eq!(lease_now["lease"]["end"], "REVOKED", "{lease_now}");
        server.renew(&lease, &token).expect_problem(410, "EXPIRED");
    }
    assert_eq!(server.get(&format!("/v1/leases/{kept}")).json()["lease"]["state"], "ACTIVE");
    revoke(&server, &id).expect_problem(404, "NOT_FOUND");
    // For good, also after a restart; and the other one is.
    let server = TestServer::start_in(server.stop(), |_| {}).unwrap();
    ask_as(&server, &secret, "GET /v1/leases", &Value::Null).expect_problem(401, "UNAUTHORIZED");
    assert_eq!(ask_as(&server, &other, "GET /v1/leases", &Value::Null).status, 200);
}

/// The token is checked when the header is there, and the body may come seconds later.
#[test]
fn a_token_revoked_while_its_body_is_sent_creates_no_token() {
    use std::io::Write as _;
    let server = TestServer::start();
    let (id, secret) = make(&server, "second-admin", &["admin"], &[]);
    let body = json!({ "name": "late", "scopes": ["admin"] }).to_string();
    let head = format!(
        "POST /v1/tokens HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {secret}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nExpect: 100-continue\r\n\r\n",
        server.address,
        body.len()
    );
    let mut stream = server.connect();
    stream.write_all(head.as_bytes()).unwrap();
    // It says so when it reads the body, which is after it has looked at the token.
    let mut go_on = [0; 25];
    std::io::Read::read_exact(&mut stream, &mut go_on).unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(revoke(&server, &id).status, 200);
    stream.write_all(body.as_bytes()).unwrap();
    tenure_testkit::read_to_end(stream).expect_problem(401, "UNAUTHORIZED");
    assert_eq!(server.get("/v1/tokens").json()["tokens"], json!([]));
}

#[test]
fn a_damaged_token_file_fails_the_start() {
    let server = TestServer::start();
    make(&server, "ci", &["leases:read"], &[]);
    let folder = server.stop();
    let path = folder.path().join("data/api.tokens");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let refused = TestServer::start_in(folder, |_| {}).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("api.tokens is damaged") && refused.contains("put back a copy"), "{refused}");
}

#[test]
fn a_token_that_cannot_be_stored_is_not_created() {
    let server = TestServer::start();
    let (id, secret) = make(&server, "ci", &["leases:read"], &[]);
    // The place of the file that is written first is taken.
    fs::create_dir_all(server.folder.path().join("data/api.tokens.new/x")).unwrap();
    let request = json!({ "name": "late", "scopes": ["leases:read"] });
    server.post("/v1/tokens", &request).expect_problem(503, "UNAVAILABLE");
    revoke(&server, &id).expect_problem(503, "UNAVAILABLE");
    ask_as(&server, &secret, "GET /v1/leases", &Value::Null).expect_problem(401, "UNAUTHORIZED");
    fs::remove_dir_all(server.folder.path().join("data/api.tokens.new")).unwrap();
    assert_eq!(revoke(&server, &id).status, 200, "it can be asked for again");
    assert_eq!(server.get("/v1/tokens").json()["tokens"], json!([]));
}
