//! A server in a folder of its own, and a client of a few lines.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tenure_server::{Office, Server, Settings, StartError, StopError, TlsError};
use tokio::runtime::Runtime;

use crate::traces;

/// A server that runs.
pub struct Running {
    pub folder: TempDir,
    pub address: SocketAddr,
    pub token: String,
    runtime: Runtime,
    server: Option<Server>,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub text: String,
}

pub fn start() -> Running {
    start_in(tempfile::tempdir().unwrap(), |_| {}).unwrap()
}

/// Starts a server on what is in `folder`, with small files.
pub fn start_in(folder: TempDir, change: impl FnOnce(&mut Settings)) -> Result<Running, StartError> {
    let runtime = Runtime::new().unwrap();
    let mut settings = settings(folder.path());
    change(&mut settings);
    let server = runtime.block_on(Server::start(settings))?;
    let read = std::fs::read_to_string(folder.path().join("data/admin.token"));
    let token = read.unwrap_or_default().trim_end().to_owned();
    traces::secret(&token);
    // A server that listens on no address is asked in another way.
    let address = server.address().unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
    Ok(Running { folder, address, token, runtime, server: Some(server) })
}

pub fn settings(folder: &Path) -> Settings {
    let mut settings = Settings::new(folder.join("data"));
    settings.ledger.segment_size = 1 << 16;
    settings.ledger.reserve = 1 << 16;
    settings.ledger.witness = Some(folder.join("witness"));
    settings
}

impl Running {
    /// Stops it in good order, and gives back what it wrote.
    pub fn stop(mut self) -> TempDir {
        self.stop_with_outcome().unwrap();
        traces::directory(self.folder.path());
        self.folder
    }

    pub fn stop_with_outcome(&mut self) -> Result<(), StopError> {
        self.runtime.block_on(self.server.take().unwrap().stop())
    }

    /// Where clients are told that it is.
    pub fn url(&self) -> String {
        self.server.as_ref().unwrap().url().unwrap()
    }

    /// Reads the certificate again.
    pub fn reload_tls(&self) -> Result<(), TlsError> {
        self.server.as_ref().unwrap().reload_tls()
    }

    /// Whether intents take their leases when they are accepted.
    pub fn set_api_leases(&self, on: bool) {
        self.server.as_ref().unwrap().set_api_leases(on);
    }

    /// Where a worker in this process asks.
    pub fn office(&self) -> Office {
        self.server.as_ref().unwrap().office()
    }

    /// Waits for what the server does in this process.
    pub fn block_on<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime.block_on(what)
    }

    /// Waits until it cannot go on.
    pub fn wait_for_its_end(&self) {
        self.runtime.block_on(self.server.as_ref().unwrap().ended());
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    /// Sends these bytes, and reads until the server closes.
    pub fn exchange(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        read_to_end(stream)
    }

    /// Asks with these header lines beside `Host`.
    pub fn ask(&self, line: &str, headers: &[String], body: &str) -> Answer {
        let mut request = format!("{line} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address);
        headers.iter().for_each(|header| request += &format!("{header}\r\n"));
        request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        let answer = self.exchange(request.as_bytes());
        crate::described::check(line, &answer);
        answer
    }

    pub fn bearer(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path}"), &[self.bearer()], "")
    }

    pub fn post_text(&self, path: &str, body: &str) -> Answer {
        let headers = [self.bearer(), "Content-Type: application/json".into()];
        self.ask(&format!("POST {path}"), &headers, body)
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_text(path, &body.to_string())
    }

    pub fn post_with_key(&self, key: &str, body: &Value) -> Answer {
        let key = format!("Idempotency-Key: {key}");
        let headers = [self.bearer(), "Content-Type: application/json".into(), key];
        self.ask("POST /v1/leases", &headers, &body.to_string())
    }

    /// Acquires, which must succeed: the lease's id and token.
    pub fn acquire(&self, resource: &str, holder: &str, ttl_ms: u64) -> (String, String) {
        let answer = self.post("/v1/leases", &wish(resource, holder, ttl_ms));
        assert_eq!(answer.status, 201, "{answer:?}");
        let json = answer.json();
        (text(&json["lease"]["id"]), text(&json["token"]))
    }

    pub fn renew(&self, id: &str, token: &str) -> Answer {
        self.post(&format!("/v1/leases/{id}/renew"), &json!({ "token": token }))
    }

    pub fn release(&self, id: &str, token: &str) -> Answer {
        self.post(&format!("/v1/leases/{id}/release"), &json!({ "token": token }))
    }

    /// Asks about a lease until it is over, which is an event that nobody announces to us.
    pub fn wait_until_over(&self, id: &str) -> Value {
        loop {
            let lease = self.get(&format!("/v1/leases/{id}")).json()["lease"].clone();
            if lease["state"] != "ACTIVE" {
                return lease;
            }
        }
    }
}

pub fn wish(resource: &str, holder: &str, ttl_ms: u64) -> Value {
    json!({ "resource": resource, "holder": holder, "ttlMs": ttl_ms })
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// Reads until the server closes. Events never end: of an answer with those, what has come so far is enough to see that it is
/// one.
pub fn read_to_end(mut stream: TcpStream) -> Answer {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4_096]);
    let is_endless = |bytes: &[u8]| {
        let events = b"\r\ncontent-type: text/event-stream\r\n";
        bytes.windows(events.len()).any(|part| part == events)
            && bytes.windows(4).any(|end| end == b"\r\n\r\n")
    };
    while !is_endless(&bytes) {
        match stream.read(&mut piece).unwrap() {
            0 => break,
            length => bytes.extend_from_slice(&piece[..length]),
        }
    }
    parse(&String::from_utf8(bytes).unwrap())
}

pub fn parse(answer: &str) -> Answer {
    let (head, text) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer but {answer:?}"));
    traces::answer(head, text);
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.map(|line| line.split_once(": ").unwrap());
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    Answer { status, headers, text: text.to_owned() }
}

/// One request on a connection that is kept.
pub fn one_answer(stream: &mut TcpStream, request: &str) -> Answer {
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        bytes.push(byte[0]);
    }
    let mut answer = parse(&String::from_utf8(bytes).unwrap());
    let mut body = vec![0; answer.header("content-length").unwrap().parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    answer.text = String::from_utf8(body).unwrap();
    traces::answer(&format!("HTTP/1.1 {} {:?}", answer.status, answer.headers), &answer.text);
    answer
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// That it is a problem with this status and code, and everything that a problem has.
    #[track_caller]
    pub fn is_problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(
            (self.status, self.header("content-type")),
            (status, Some("application/problem+json")),
            "{self:?}"
        );
        let problem = self.json();
        assert_eq!((&problem["code"], &problem["status"]), (&json!(code), &json!(status)), "{self:?}");
        assert!(text(&problem["type"]).ends_with(&format!("/errors/{code}")), "{self:?}");
        assert!(!text(&problem["title"]).is_empty() && !text(&problem["detail"]).is_empty(), "{self:?}");
        let known = tenure_api::Code::ALL.iter().find(|known| known.as_str() == code).unwrap();
        assert_eq!(self.header("retry-after").is_some(), known.is_retryable(), "{self:?}");
        problem
    }
}
