//! What a body may be. Whatever cannot be read in one way only is a 400 that says why.

use serde_json::json;
use tenure_testkit::{TestServer, json_string};

#[test]
fn an_invalid_body_is_rejected_with_the_reason() {
    let server = TestServer::start();
    let deep = r#"{"resource":"db:1","holder":"a","ttlMs":9000,"labels":"#.to_owned()
        + &r#"{"a":"#.repeat(16)
        + "1"
        + &"}".repeat(17);
    for (body, reason) in [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "the body must be an object"),
        (r#"{"resource":"db:1","holder":"a","ttlMs":9000} x"#, "not JSON"),
        (r#"{"resource":"db:1","holder":"a","ttlMs":9000,"resource":"db:2"}"#, "stands twice"),
        (r#"{"resource":"db:1","holder":"a","ttlMs":9000,"labels":{"a":"1","a":"1"}}"#, "stands twice"),
        (&deep, "nested deeper than 16"),
        (r#"{"resource":"db:1","holder":"a","ttlMs":9000,"ttlms":1}"#, r#""ttlms": is not a field"#),
        (r#"{"holder":"a","ttlMs":9000}"#, "resource: is missing"),
        (r#"{"resource":"db:1","holder":"a"}"#, "ttlMs: is missing"),
        (r#"{"resource":1,"holder":"a","ttlMs":9000}"#, "resource: must be a string"),
        (r#"{"resource":"db:1","holder":null,"ttlMs":9000}"#, "holder: must be a string"),
        (r#"{"resource":"db:1","holder":"a","ttlMs":"9000"}"#, "ttlMs: must be a whole number"),
        (r#"{"resource":"db:1","holder":"a","ttlMs":9000.5}"#, "ttlMs: must be a whole number"),
        (r#"{"resource":"db:1","holder":"a","ttlMs":-1}"#, "ttlMs: must be a whole number"),
        (r#"{"resource":"db:1","holder":"a","ttlMs":18446744073709551616}"#, "ttlMs: must be a whole number"),
        (r#"{"resource":"db:1","holder":"a","ttlMs":1e999}"#, "not JSON"),
        (r#"{"resource":"db:1","holder":"a","ttlMs":9000,"mode":"Exclusive"}"#, "mode: must be"),
        (r#"{"resource":"db:1","holder":"a","ttlMs":9000,"mode":"MUTATES"}"#, "mode: must be"),
        (
            r#"{"resource":"db:1","holder":"a","ttlMs":9000,"waitMs":86400001}"#,
            "waitMs: is over the longest wait",
        ),
        (r#"{"resource":"db:1","holder":"a","ttlMs":9000,"labels":[]}"#, "labels: must be an object"),
        (r#"{"resource":"db:1","holder":"a","ttlMs":9000,"labels":{"a":1}}"#, "labels.a: must be a string"),
        (r#"{"resource":"db:1","holder":"a","ttlMs":9000,"labels":{"":"1"}}"#, "labels: "),
    ] {
        let problem = server.post_text("/v1/leases", body).expect_problem(400, "INVALID");
        assert!(json_string(&problem["detail"]).contains(reason), "{body}: {problem}");
    }
    server.acquire("db:1", "a", 9_000);
}

#[test]
fn an_error_does_not_repeat_a_secret() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 9_000);
    for body in [
        json!({ "token": token, "ttlMs": token }),
        json!({ "token": [token] }),
        json!({ "token": token, "reason": token }),
    ] {
        for path in ["renew", "release"] {
            let answer = server.post(&format!("/v1/leases/{id}/{path}"), &body);
            answer.expect_problem(400, "INVALID");
            assert!(!answer.text.contains(&token), "{answer:?}");
        }
    }
}

#[test]
fn a_body_larger_than_64_kib_is_rejected() {
    let server = TestServer::start();
    let padded = |length: usize| {
        let body = r#"{"resource":"db:1","holder":"a","ttlMs":9000}"#;
        body.to_owned() + &" ".repeat(length - body.len())
    };
    server.post_text("/v1/leases", &padded((64 << 10) + 1)).expect_problem(413, "TOO_LARGE");
    server.post_text("/v1/leases", &padded(900 << 10)).expect_problem(413, "TOO_LARGE");
    // Announced, and never sent.
    let head = format!(
        "POST /v1/leases HTTP/1.1\r\nHost: {}\r\n{}\r\nContent-Type: application/json\r\n\
         Content-Length: 99999999999\r\n\r\n{{",
        server.address,
        server.bearer()
    );
    server.exchange(head.as_bytes()).expect_problem(413, "TOO_LARGE");
    assert_eq!(server.post_text("/v1/leases", &padded(64 << 10)).status, 201);
}

#[test]
fn a_chunked_body_larger_than_the_limit_is_rejected() {
    let server = TestServer::start();
    let chunk = "x".repeat(0x1000);
    let head = format!(
        "POST /v1/leases HTTP/1.1\r\nHost: {}\r\n{}\r\nContent-Type: application/json\r\n\
         Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
        server.address,
        server.bearer()
    );
    let request = head + &format!("1000\r\n{chunk}\r\n").repeat(17) + "0\r\n\r\n";
    server.exchange(request.as_bytes()).expect_problem(413, "TOO_LARGE");
}

#[test]
fn only_json_is_read() {
    let server = TestServer::start();
    let body = r#"{"resource":"db:1","holder":"a","ttlMs":9000}"#;
    for header in ["X-None: 1", "Content-Type: text/plain", "Content-Type: application/json; charset=latin1"]
    {
        let headers = [server.bearer(), header.to_owned()];
        server.request("POST /v1/leases", &headers, body).expect_problem(415, "UNSUPPORTED_TYPE");
    }
    let headers = [server.bearer(), "Content-Type: Application/JSON; charset=UTF-8".to_owned()];
    assert_eq!(server.request("POST /v1/leases", &headers, body).status, 201);
}
