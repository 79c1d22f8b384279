//! More than is taken: a clean refusal, and the service goes on.

use std::io::{Read as _, Write as _};

use tenure_testkit::{TestServer, exchange_keep_alive, json_string, read_to_end};

fn go_on(server: &TestServer) {
    assert_eq!(server.get("/healthz").status, 200, "the service goes on");
    server.acquire("db:after", "a", 9_000);
}

fn post_head(server: &TestServer, rest: &str) -> String {
    format!(
        "POST /v1/leases HTTP/1.1\r\nHost: {}\r\n{}\r\nContent-Type: application/json\r\n{rest}\r\n\r\n",
        server.address,
        server.bearer()
    )
}

#[test]
fn a_connection_beyond_the_limit_gets_503_and_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::start_in(folder, |settings| settings.limits.connections = 3).unwrap();
    let alive = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    let mut open: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for stream in &mut open {
        assert_eq!(exchange_keep_alive(stream, &alive).status, 200);
    }
    // Whether it has sent anything or not.
    let answer = read_to_end(server.connect());
    answer.expect_problem(503, "TOO_MANY_CONNECTIONS");
    assert!(answer.header("retry-after").is_some());
    let mut stream = server.connect();
    stream.write_all(alive.as_bytes()).unwrap();
    read_to_end(stream).expect_problem(503, "TOO_MANY_CONNECTIONS");
    for stream in &mut open {
        assert_eq!(exchange_keep_alive(stream, &alive).status, 200, "those that are there are not disturbed");
    }
    drop(open);
    while server.exchange(alive.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n").as_bytes()).status != 200
    {
    }
}

#[test]
fn headers_beyond_the_limit_are_rejected() {
    let server = TestServer::start();
    let get = |headers: &str| {
        let request = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", server.address);
        server.exchange(request.as_bytes())
    };
    get(&format!("X: {}\r\n", "x".repeat(33 << 10))).expect_problem(431, "HEADER_TOO_LARGE");
    get(&format!("X: {}\r\n", "x".repeat(4 << 20))).expect_problem(431, "HEADER_TOO_LARGE");
    get(&"X: y\r\n".repeat(200)).expect_problem(431, "HEADER_TOO_LARGE");
    let path = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(40 << 10));
    server.exchange(path.as_bytes()).expect_problem(431, "HEADER_TOO_LARGE");
    assert_eq!(get(&format!("X: {}\r\nConnection: close\r\n", "x".repeat(30 << 10))).status, 200);
    go_on(&server);
}

#[test]
fn invalid_http_is_rejected_with_a_problem() {
    let server = TestServer::start();
    for bytes in [
        &b"hello\r\n\r\n"[..],
        b"GET / HTTP/3.7\r\n\r\n",
        // H16
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost x\r\n\r\n",
        b"POST /v1/leases HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST /v1/leases HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a client that speaks TLS",
    ] {
        let answer = server.exchange(bytes);
        answer.expect_problem(400, "INVALID");
        assert_eq!(answer.header("connection"), Some("close"));
    }
    go_on(&server);
}

#[test]
fn a_body_beyond_the_limit_is_rejected_while_it_is_sent() {
    let server = TestServer::start();
    let mut stream = server.connect();
    stream.write_all(post_head(&server, "Content-Length: 12000000").as_bytes()).unwrap();
    // The server may close before all of it is sent.
    let _ = stream.write_all(&vec![b' '; 12_000_000]);
    read_to_end(stream).expect_problem(413, "TOO_LARGE");
    let mut stream = server.connect();
    stream.write_all(post_head(&server, "Transfer-Encoding: chunked").as_bytes()).unwrap();
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    for _ in 0..100 {
        if stream.write_all(chunk.as_bytes()).is_err() {
            break;
        }
    }
    read_to_end(stream).expect_problem(413, "TOO_LARGE");
    go_on(&server);
}

#[test]
fn a_chunked_body_is_accepted_and_a_malformed_one_rejected() {
    let server = TestServer::start();
    let send = |chunks: &str| {
        let head = post_head(&server, "Transfer-Encoding: chunked\r\nConnection: close");
        server.exchange((head + chunks).as_bytes())
    };
    let body = r#"{"resource":"db:1","holder":"a","ttlMs":9000}"#;
    let (first, rest) = body.split_at(20);
    let whole = format!("{:x}\r\n{first}\r\n{:X}\r\n{rest}\r\n0\r\n\r\n", first.len(), rest.len());
    assert_eq!(send(&whole).status, 201);
    send("xyz\r\n{}\r\n0\r\n\r\n").expect_problem(400, "INVALID");
    send("-1\r\n{}\r\n0\r\n\r\n").expect_problem(400, "INVALID");
    send(&format!("2;{}\r\n{{}}\r\n0\r\n\r\n", "x".repeat(100_000))).expect_problem(400, "INVALID");
    go_on(&server);
}

#[test]
fn text_that_is_not_utf_8_is_rejected() {
    let server = TestServer::start();
    for body in [
        &b"{\"resource\":\"db:\xff\",\"holder\":\"a\",\"ttlMs\":9000}"[..],
        b"{\"resource\":\"db:\\ud800\",\"holder\":\"a\",\"ttlMs\":9000}",
        b"\xef\xbb\xbf{\"resource\":\"db:1\",\"holder\":\"a\",\"ttlMs\":9000}",
    ] {
        let head = post_head(&server, &format!("Content-Length: {}\r\nConnection: close", body.len()));
        let problem = server.exchange(&[head.as_bytes(), body].concat()).expect_problem(400, "INVALID");
        assert!(json_string(&problem["detail"]).contains("not JSON as we read it"), "{problem}");
    }
    for path in ["/v1/leases/%ff", "/v1/leases/%00/renew"] {
        assert!([400, 404, 405].contains(&server.get(path).status), "{path}");
    }
    go_on(&server);
}

#[test]
fn deeply_nested_json_is_rejected() {
    let server = TestServer::start();
    for levels in [17, 10_000, 30_000] {
        let deep = "[".repeat(levels) + &"]".repeat(levels);
        server.post_text("/v1/leases", &deep).expect_problem(400, "INVALID");
    }
    go_on(&server);
}

#[test]
fn many_requests_at_once_on_one_connection_are_answered_in_their_order() {
    let server = TestServer::start();
    let count = 500;
    let mut all = String::new();
    for number in 0..count {
        all += &format!(
            "GET /v1/leases/{number} HTTP/1.1\r\nHost: {}\r\n{}\r\n\r\n",
            server.address,
            server.bearer()
        );
    }
    all += &format!("GET /healthz HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.address);
    let mut stream = server.connect();
    stream.write_all(all.as_bytes()).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 404 Not Found").count(), count);
    assert!(answers.ends_with(r#"{"status":"alive"}"#), "{answers}");
    go_on(&server);
}
