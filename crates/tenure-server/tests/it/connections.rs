//! Connections that do not behave.

use std::io::{Read as _, Write as _};

use tenure_testkit::TestServer;

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
