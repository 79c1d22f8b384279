//! RFC 6455 on both WebSockets: an invalid frame is answered with a Close frame before the connection ends.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use tenure_testkit::http::read_response;
use tenure_testkit::{Response, TestServer};

const PATHS: [&str; 2] = ["/ws", "/v1/stream"];

fn upgrade(server: &TestServer, path: &str, version: &str) -> (TcpStream, Response) {
    let mut stream = server.connect();
    let request = format!(
        "GET {path} {version}\r\nHost: {}\r\n{}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        server.address,
        server.bearer()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let response = read_response(&mut stream).unwrap();
    (stream, response)
}

/// A masked frame. The mask is zero, so the payload is readable.
fn frame(first_byte: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap();
    let extended = if length > 125 { vec![0x80 | 126, 0, length] } else { vec![0x80 | length] };
    [&[first_byte], &extended[..], &[0; 4], payload].concat()
}

// X1
#[test]
fn an_invalid_frame_is_answered_with_a_close_frame() {
    let server = TestServer::start();
    for (fault, bytes, code) in [
        ("text that is not UTF-8", frame(0x81, b"\xff"), 1007),
        ("a close reason that is not UTF-8", frame(0x88, b"\x03\xe8\xff"), 1007),
        ("reserved bits", frame(0xc1, b"[]"), 1002),
        ("an unknown data opcode", frame(0x83, b"[]"), 1002),
        ("an unknown control opcode", frame(0x8b, b""), 1002),
        ("a frame without a mask", b"\x81\x02[]".to_vec(), 1002),
        ("a continuation of nothing", frame(0x80, b"[]"), 1002),
        ("a message inside a message", [frame(0x01, b"["), frame(0x81, b"[]")].concat(), 1002),
        ("a fragmented ping", frame(0x09, b""), 1002),
        ("a ping of 126 bytes", frame(0x89, &[0; 126]), 1002),
        ("a close of 1 byte", frame(0x88, b"\x03"), 1002),
    ] {
        for path in PATHS {
            let (mut stream, response) = upgrade(&server, path, "HTTP/1.1");
            assert_eq!(response.status, 101, "{response:?}");
            // More follows than the server looks at. It must not turn the close into a reset.
            stream.write_all(&[&bytes[..], &[0; 1_000]].concat()).unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            let [0x88, _, high, low, ..] = received[..] else { panic!("{path}, {fault}: {received:x?}") };
            assert_eq!(u16::from_be_bytes([high, low]), code, "{path}, {fault}");
        }
    }
    server.stop();
}

// X9
#[test]
fn an_http_1_0_upgrade_is_rejected() {
    let server = TestServer::start();
    for path in PATHS {
        upgrade(&server, path, "HTTP/1.0").1.expect_problem(400, "INVALID");
    }
    server.stop();
}
