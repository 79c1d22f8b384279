//! A client that keeps its connection, and reports a request that got no response.

use std::io::{self, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;

use serde_json::json;

use crate::http::{self, Response, bearer};
use crate::server::lease_request;
use crate::wait::LIMIT;

/// One connection to a server.
pub struct TestClient {
    stream: BufReader<TcpStream>,
    address: String,
    admin: String,
}

/// A lease that was acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcknowledgedLease {
    pub id: String,
    pub token: String,
    pub fence: u64,
    /// In Unix milliseconds.
    pub expires_at_ms: i64,
}

impl TestClient {
    /// Connects to `address` with the token that the server wrote into `data`.
    pub fn connect(address: &str, data: &Path) -> Self {
        let admin = std::fs::read_to_string(data.join("admin.token")).unwrap().trim_end().to_owned();
        Self::with_token(address, &admin).unwrap()
    }

    /// Connects with this token.
    pub fn with_token(address: &str, admin: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LIMIT))?;
        Ok(Self { stream: BufReader::new(stream), address: address.to_owned(), admin: admin.to_owned() })
    }

    /// Another connection to the same server.
    pub fn reconnect(&self) -> Self {
        Self::with_token(&self.address, &self.admin).unwrap()
    }

    /// One request. An error: the connection ended before the response, so the outcome is unknown.
    pub fn request(&mut self, line: &str, key: Option<&str>, body: &str) -> io::Result<Response> {
        self.send(line, key, body)?;
        self.read_response()
    }

    /// A request whose answer is read later, with [`TestClient::read_response`].
    pub fn send(&mut self, line: &str, key: Option<&str>, body: &str) -> io::Result<()> {
        let mut headers = vec![format!("Host: {}", self.address), bearer(&self.admin)];
        headers.push("Content-Type: application/json".into());
        headers.extend(key.map(|key| format!("Idempotency-Key: {key}")));
        let request = http::format_request(line, headers, body);
        self.stream.get_mut().write_all(request.as_bytes())
    }

    /// Asks for `resource`.
    pub fn acquire(&mut self, resource: &str, ttl_ms: u64, key: Option<&str>) -> io::Result<Response> {
        self.request("POST /v1/leases", key, &lease_request(resource, "tester", ttl_ms).to_string())
    }

    /// Renews, for as long as it was granted.
    pub fn renew(&mut self, lease: &AcknowledgedLease) -> io::Result<Response> {
        let line = format!("POST /v1/leases/{}/renew", lease.id);
        self.request(&line, None, &json!({"token": lease.token}).to_string())
    }

    /// Releases.
    pub fn release(&mut self, lease: &AcknowledgedLease) -> io::Result<Response> {
        let line = format!("POST /v1/leases/{}/release", lease.id);
        self.request(&line, None, &json!({"token": lease.token}).to_string())
    }

    /// Looks at a lease.
    pub fn show(&mut self, id: &str) -> io::Result<Response> {
        self.request(&format!("GET /v1/leases/{id}"), None, "")
    }

    /// The response to what was sent.
    pub fn read_response(&mut self) -> io::Result<Response> {
        let response = http::read_response(&mut self.stream)?;
        serde_json::from_str::<serde_json::Value>(&response.text)?;
        Ok(response)
    }
}

impl Response {
    /// The lease that was granted; panics if none was.
    #[track_caller]
    pub fn held_lease(&self) -> AcknowledgedLease {
        assert_eq!(self.status, 201, "{self:?}");
        let (id, token) = self.lease_id_and_token();
        AcknowledgedLease {
            id,
            token,
            fence: self.body["lease"]["fence"].as_u64().unwrap(),
            expires_at_ms: self.lease_expires_at_ms(),
        }
    }
}
