//! Callers that take their time, and connections that nobody uses.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use tenure_testkit::{TestServer, exchange_keep_alive, read_to_end};

/// Lets this much time pass, on a connection on which nothing comes. It must stay open.
#[track_caller]
fn nothing_comes_for(stream: &mut TcpStream, time: Duration) {
    stream.set_read_timeout(Some(time)).unwrap();
    let read = stream.read(&mut [0]);
    assert!(
        read.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock),
        "the connection should be open and quiet: {read:?}"
    );
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
}

fn alive(server: &TestServer) -> String {
    format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", server.address)
}

/// Sends one byte after the other, with a pause after each, until the server answers or closes.
fn drip(mut stream: TcpStream, bytes: &[u8], pause: Duration) -> TcpStream {
    for byte in bytes {
        if stream.write_all(&[*byte]).is_err() {
            break;
        }
        stream.set_read_timeout(Some(pause)).unwrap();
        // Peeked at, so that the answer is still there to be read.
        if !stream.peek(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
            break;
        }
    }
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

#[test]
fn a_header_sent_byte_by_byte_times_out() {
    let server = TestServer::start();
    let endless = alive(&server).replace("\r\n\r\n", "\r\nX: ") + &"x".repeat(1_000);
    let stream = drip(server.connect(), endless.as_bytes(), Duration::from_millis(100));
    read_to_end(stream).expect_problem(408, "TOO_SLOW");
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn a_body_sent_byte_by_byte_times_out() {
    let server = TestServer::start();
    let head = format!(
        "POST /v1/leases HTTP/1.1\r\nHost: {}\r\n{}\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n",
        server.address,
        server.bearer()
    );
    let mut stream = server.connect();
    stream.write_all(head.as_bytes()).unwrap();
    let stream = drip(stream, " ".repeat(5_000).as_bytes(), Duration::from_millis(100));
    read_to_end(stream).expect_problem(408, "TOO_SLOW");
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn an_idle_connection_outlives_the_time_for_a_header() {
    let server = TestServer::start();
    let mut stream = server.connect();
    nothing_comes_for(&mut stream, Duration::from_secs(6));
    assert_eq!(
        exchange_keep_alive(&mut stream, &alive(&server)).status,
        200,
        "its clock starts with the first byte"
    );
    nothing_comes_for(&mut stream, Duration::from_secs(6));
    assert_eq!(exchange_keep_alive(&mut stream, &alive(&server)).status, 200);
}

#[test]
fn requests_are_answered_however_long_the_pauses_between_them_are() {
    let server = TestServer::start();
    let mut stream = server.connect();
    for pause in [0, 300, 900, 1_000, 1_100, 1_500, 0, 0, 2_000] {
        assert_eq!(
            exchange_keep_alive(&mut stream, &alive(&server)).status,
            200,
            "before a pause of {pause}"
        );
        if pause > 0 {
            nothing_comes_for(&mut stream, Duration::from_millis(pause));
        }
    }
}

/// The beginning of a request that came with the one before it is not lost when the connection is set aside.
#[test]
fn a_request_split_by_a_pause_is_answered() {
    let server = TestServer::start();
    let mut stream = server.connect();
    let whole = alive(&server);
    let (first, rest) = whole.split_at(9);
    assert_eq!(exchange_keep_alive(&mut stream, &(whole.clone() + first)).status, 200);
    nothing_comes_for(&mut stream, Duration::from_millis(1_500));
    assert_eq!(exchange_keep_alive(&mut stream, rest).status, 200);
}

#[test]
fn an_unused_connection_is_closed_after_the_idle_timeout() {
    let folder = tempfile::tempdir().unwrap();
    let server =
        TestServer::start_in(folder, |settings| settings.limits.idle = Duration::from_secs(1)).unwrap();
    let (mut silent, mut used) = (server.connect(), server.connect());
    assert_eq!(exchange_keep_alive(&mut used, &alive(&server)).status, 200);
    for stream in [&mut silent, &mut used] {
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "closed, and nothing was said");
    }
}

/// What is under way is not idle: whoever waits for an answer longer than a connection may be idle gets it.
#[test]
fn a_slow_reader_gets_the_whole_response_and_a_client_that_never_reads_times_out() {
    let folder = tempfile::tempdir().unwrap();
    let server =
        TestServer::start_in(folder, |settings| settings.limits.write_timeout = Duration::from_secs(2))
            .unwrap();
    for number in 0..1_000 {
        server.acquire(&format!("deploy:{number}-{}", "x".repeat(100)), "a", 600_000);
    }
    let list = format!(
        "GET /v1/leases?limit=1000 HTTP/1.1\r\nHost: {}\r\n{}\r\n\r\n",
        server.address,
        server.bearer()
    );
    let mut slow = server.connect();
    let one = exchange_keep_alive(&mut slow, &list).text.len();
    assert!(one > 300_000, "{one}");
    // Far more than the system keeps for a reader that does not read.
    let count = 200;
    let mut never = server.connect();
    never.write_all(list.repeat(count).as_bytes()).unwrap();
    nothing_comes_for(&mut server.connect(), Duration::from_secs(5));
    let (mut read, mut part) = (0, vec![0; 1 << 20]);
    while let Ok(length @ 1..) = never.read(&mut part) {
        read += length;
    }
    assert!(read < one * count / 2, "{read} of {}", one * count);
    assert_eq!(exchange_keep_alive(&mut slow, &list).text.len(), one);
}
