//! HTTP/1.1 of a few lines, so that a test sees each byte.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};

use crate::leak_recorder;
use crate::wait::LIMIT;

/// A response.
#[derive(Debug, Clone)]
pub struct Response {
    pub status: u16,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    pub text: String,
    /// `null`, where the text is not JSON.
    pub body: Value,
}

/// A request with these header lines. `Connection: close` is one of them where the response is read to its end.
pub fn format_request<H: AsRef<str>>(line: &str, headers: impl IntoIterator<Item = H>, body: &str) -> String {
    let mut request = format!("{line} HTTP/1.1\r\n");
    for header in headers {
        request.push_str(header.as_ref());
        request.push_str("\r\n");
    }
    format!("{request}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// `Authorization: Bearer …`.
pub fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

/// Sends these bytes, and reads until the server closes.
pub fn exchange(mut stream: impl Read + Write, request: &[u8]) -> Response {
    stream.write_all(request).unwrap();
    read_to_end(stream)
}

/// One request on the local socket, as the user of this process.
pub fn request_on_socket(path: &Path, line: &str, headers: &[&str], body: &str) -> Response {
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    exchange(stream, format_socket_request(line, headers, body).as_bytes())
}

/// The bytes of such a request.
pub fn format_socket_request(line: &str, headers: &[&str], body: &str) -> String {
    let own = ["Connection: close", "Content-Type: application/json"];
    format_request(line, own.iter().chain(headers), body)
}

/// Reads until the server closes. A stream of events never ends: what has come so far shows that it is one.
pub fn read_to_end(mut stream: impl Read) -> Response {
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 1 << 16]);
    let mut has_head = false;
    loop {
        match stream.read(&mut piece).unwrap() {
            0 => break,
            length => bytes.extend_from_slice(&piece[..length]),
        }
        // Once: a long body would be searched again with each piece.
        if !has_head && let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            has_head = true;
            if String::from_utf8_lossy(&bytes[..end + 2]).contains("\r\ncontent-type: text/event-stream\r\n")
            {
                break;
            }
        }
    }
    parse(&String::from_utf8(bytes).unwrap())
}

/// Sends a request on a connection that is kept, and reads its response.
pub fn exchange_keep_alive(stream: &mut (impl Read + Write), request: &str) -> Response {
    stream.write_all(request.as_bytes()).unwrap();
    read_response(stream).unwrap()
}

/// Reads one response on a connection that is kept. An error: the connection ended before that.
pub fn read_response(stream: &mut impl Read) -> io::Result<Response> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        bytes.push(byte[0]);
    }
    let head = parse_head(&String::from_utf8(bytes).unwrap());
    let mut body = vec![0; head.header("content-length").map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body)?;
    Ok(head.with_text(String::from_utf8(body).unwrap()))
}

/// Reads a whole response.
#[track_caller]
pub fn parse(text: &str) -> Response {
    let (start, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response but {text:?}"));
    parse_head(start).with_text(body.to_owned())
}

fn parse_head(text: &str) -> Response {
    let mut lines = text.trim_end().lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.map(|line| line.split_once(": ").unwrap());
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    Response { status, headers, text: String::new(), body: Value::Null }
}

impl Response {
    fn with_text(mut self, text: String) -> Self {
        leak_recorder::record_response(&format!("HTTP/1.1 {} {:?}", self.status, self.headers), &text);
        self.body = serde_json::from_str(&text).unwrap_or_default();
        self.text = text;
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The JSON of a response that must have this status.
    #[track_caller]
    pub fn expect_status(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        self.json()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Fails unless it is a problem with this status and code, and everything that a problem has.
    #[track_caller]
    pub fn expect_problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(
            (self.status, self.header("content-type")),
            (status, Some("application/problem+json")),
            "{self:?}"
        );
        let problem = self.json();
        assert_eq!((&problem["code"], &problem["status"]), (&json!(code), &json!(status)), "{self:?}");
        assert!(json_string(&problem["type"]).ends_with(&format!("/errors/{code}")), "{self:?}");
        assert!(
            !json_string(&problem["title"]).is_empty() && !json_string(&problem["detail"]).is_empty(),
            "{self:?}"
        );
        let known = tenure_api::Code::ALL.iter().find(|known| known.as_str() == code).unwrap();
        assert_eq!(self.header("retry-after").is_some(), known.is_retryable(), "{self:?}");
        problem
    }

    /// The status, and the code of a problem.
    pub fn status_and_code(&self) -> (u16, &str) {
        (self.status, self.body["code"].as_str().unwrap_or(""))
    }

    /// Seconds after which the request may be repeated.
    pub fn retry_after(&self) -> Option<u64> {
        self.header("retry-after").map(|seconds| seconds.parse().unwrap())
    }

    /// `ACTIVE`, `EXPIRED` or `RELEASED`: the state of the lease in it.
    pub fn lease_state(&self) -> &str {
        self.body["lease"]["state"].as_str().unwrap_or("nothing")
    }

    /// The time left to the lease in it, in milliseconds.
    pub fn lease_remaining_ms(&self) -> i64 {
        self.body["lease"]["remainingMs"].as_i64().unwrap()
    }

    /// When the lease in it ends, in Unix milliseconds.
    pub fn lease_expires_at_ms(&self) -> i64 {
        unix_milliseconds(self.body["lease"]["expiresAt"].as_str().unwrap())
    }

    /// The id and the token of the lease in it.
    #[track_caller]
    pub fn lease_id_and_token(&self) -> (String, String) {
        assert!([200, 201].contains(&self.status), "{self:?}");
        let json = self.json();
        (json_string(&json["lease"]["id"]), json_string(&json["token"]))
    }
}

/// A JSON string.
#[track_caller]
pub fn json_string(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// Unix milliseconds of a time such as `2026-11-16T01:46:00.123Z`.
pub fn unix_milliseconds(time: &str) -> i64 {
    let numbers: Vec<i64> =
        time.split(['-', 'T', ':', '.', 'Z']).map_while(|number| number.parse().ok()).collect();
    let [year, month, day, hour, minute, second, millisecond] = numbers[..] else { panic!("{time:?}") };
    // Years that begin in March have their leap day at the end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469;
    (((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000 + millisecond
}

#[test]
fn timestamps_are_parsed_to_unix_milliseconds() {
    assert_eq!(unix_milliseconds("1970-01-01T00:00:00.000Z"), 0);
    assert_eq!(unix_milliseconds("2024-02-29T12:00:00.250Z"), 1_709_208_000_250);
    assert_eq!(unix_milliseconds("2000-03-01T00:00:00.000Z"), 951_868_800_000);
}
