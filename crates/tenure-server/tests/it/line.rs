//! Requests that stay open: begun now, read later.

use std::io::Write as _;
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::server::{Answer, Running, text};

/// A request for an exclusive lease that waits.
pub fn patient(resource: &str, holder: &str, ttl_ms: u64, wait_ms: u64) -> Value {
    json!({ "resource": resource, "holder": holder, "ttlMs": ttl_ms, "waitMs": wait_ms })
}

impl Running {
    /// Sends a request, and leaves its answer for later.
    pub fn begin(&self, path: &str, key: Option<&str>, body: &Value) -> TcpStream {
        let body = body.to_string();
        let key = key.map_or(String::new(), |key| format!("Idempotency-Key: {key}\r\n"));
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\n{}\r\nConnection: close\r\n{key}\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            self.bearer(),
            body.len()
        );
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// Begins a wait, and returns when it is in line as the last of `waiting`.
    pub fn line_up(&self, key: Option<&str>, wish: &Value, waiting: u64) -> TcpStream {
        let stream = self.begin("/v1/leases", key, wish);
        self.wait_until_waiting(&text(&wish["resource"]), waiting);
        stream
    }

    pub fn post_under(&self, path: &str, key: &str, body: &Value) -> Answer {
        crate::server::read_to_end(self.begin(path, Some(key), body))
    }

    /// How many wait for something that is held.
    pub fn waiting(&self, resource: &str) -> u64 {
        let wish = json!({ "resource": resource, "holder": "who-looks", "ttlMs": 1_000 });
        let refused = self.post("/v1/leases", &wish).is_problem(409, "HELD");
        refused["waiting"].as_u64().unwrap()
    }

    pub fn wait_until_waiting(&self, resource: &str, expected: u64) {
        while self.waiting(resource) != expected {}
    }

    /// The holders of a resource.
    pub fn holders(&self, resource: &str) -> Vec<String> {
        let listed = self.get(&format!("/v1/leases?resource={resource}")).json();
        listed["leases"].as_array().unwrap().iter().map(|lease| text(&lease["holder"])).collect()
    }
}

/// The id and the token of what was granted.
#[track_caller]
pub fn granted(answer: &Answer) -> (String, String) {
    assert!([200, 201].contains(&answer.status), "{answer:?}");
    let json = answer.json();
    (text(&json["lease"]["id"]), text(&json["token"]))
}
