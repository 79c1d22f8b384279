//! Connections that do not behave.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use tenure_testkit::control::ControlClient;
use tenure_testkit::http::read_response;
use tenure_testkit::{Response, TestServer, bearer, exchange_keep_alive};

/// The read waits for 30 s at the most, and then fails: so this fails if the server keeps the connection.
#[test]
fn an_unfinished_header_times_out() {
    let server = TestServer::start();
    let mut stream = server.connect();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: ").unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    let text = String::from_utf8_lossy(&rest);
    assert!(!text.contains("200 OK"), "{text}");
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn an_unfinished_body_times_out() {
    let server = TestServer::start();
    let head = format!(
        "POST /v1/leases HTTP/1.1\r\nHost: {}\r\n{}\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{{",
        server.address,
        server.bearer()
    );
    let mut stream = server.connect();
    stream.write_all(head.as_bytes()).unwrap();
    let answer = tenure_testkit::read_to_end(stream);
    assert_eq!(answer.status, 408, "{answer:?}");
    assert!(answer.text.contains("TOO_SLOW"), "{answer:?}");
}

#[test]
fn one_connection_carries_many_requests() {
    let server = TestServer::start();
    let one = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    let last = format!("GET /readyz HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.address);
    let mut stream = server.connect();
    stream.write_all((one.repeat(3) + &last).as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 4, "{text}");
    assert!(text.ends_with(r#"{"status":"ready"}"#), "{text}");
}

#[test]
fn shutdown_closes_idle_connections() {
    let server = TestServer::start();
    let mut idle = server.connect();
    let one = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    idle.write_all(one.as_bytes()).unwrap();
    idle.read_exact(&mut [0; 15]).unwrap();
    let address = server.address;
    drop(server.stop());
    idle.read_to_end(&mut Vec::new()).unwrap();
    assert!(std::net::TcpStream::connect(address).is_err(), "nobody listens any more");
}

/// The response to `head`, whose body arrives when the server has had time to respond. The next request on the
/// connection must be answered unless the response says that the connection ends.
fn response_before_body(server: &TestServer, head: &str, body: &[u8]) -> Response {
    let mut stream = server.connect();
    stream.write_all(format!("{head}\r\nHost: {}\r\n\r\n", server.address).as_bytes()).unwrap();
    // The server cannot say that it has responded without reading the body.
    std::thread::park_timeout(Duration::from_millis(50));
    stream.write_all(body).unwrap();
    let response = read_response(&mut stream).unwrap();
    if response.header("connection") == Some("close") {
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "{head}");
    } else {
        let next = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
        assert_eq!(exchange_keep_alive(&mut stream, &next).status, 200, "{head}");
    }
    response
}

// H7
#[test]
fn a_rejection_before_the_body_keeps_the_connection_open() {
    let server = TestServer::start();
    let mut owner = ControlClient::open(&server);
    owner.acquire("K1 Composer");
    let reader = serde_json::json!({ "name": "reads", "scopes": ["leases:read"] });
    let reader = bearer(server.post("/v1/tokens", &reader).json()["secret"].as_str().unwrap());
    for (line, header, status) in [
        ("POST /v1/leases", "X-None: 1", 401),
        ("POST /v1/leases", &reader, 403),
        ("POST /v1/nothing", &server.bearer(), 404),
        ("PUT /v1/leases", &server.bearer(), 405),
        ("POST /api/v1/parameters", &server.bearer(), 428),
    ] {
        for (length, body) in
            [("Content-Length: 2", "{}"), ("Transfer-Encoding: chunked", "2\r\n{}\r\n0\r\n\r\n")]
        {
            let response = response_before_body(
                &server,
                &format!("{line} HTTP/1.1\r\n{header}\r\n{length}"),
                body.as_bytes(),
            );
            assert_eq!((response.status, response.header("connection")), (status, None), "{line}");
        }
    }
    let wrong_lease = format!(
        "POST /api/v1/parameters HTTP/1.1\r\n{}\r\nX-Control-Lease: wrong\r\nContent-Length: 2",
        server.bearer()
    );
    assert_eq!(response_before_body(&server, &wrong_lease, b"{}").status, 409);
    server.stop();
}

// H7
#[test]
fn a_rejection_before_a_body_that_is_not_read_says_that_the_connection_closes() {
    let server = TestServer::start();
    for (header, body) in [
        ("Content-Length: 10000000", "{}"),
        ("Content-Length: 3", "{}"),
        ("Expect: 100-continue\r\nContent-Length: 2", ""),
        ("Transfer-Encoding: chunked", "x\r\n"),
    ] {
        let response =
            response_before_body(&server, &format!("POST /v1/leases HTTP/1.1\r\n{header}"), body.as_bytes());
        assert_eq!((response.status, response.header("connection")), (401, Some("close")), "{header}");
    }
    let head = format!(
        "POST /v1/leases HTTP/1.1\r\n{}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked",
        server.bearer()
    );
    let response = response_before_body(&server, &head, b"x\r\n");
    assert_eq!((response.status, response.header("connection")), (400, Some("close")));
    server.stop();
}
