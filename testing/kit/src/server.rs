//! A server in this process, with its data in a folder of its own.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use tenure_ledger::LedgerStore;
use tenure_ledger::embedded::{EmbeddedStore, LedgerOptions};
use tenure_server::{Server, Settings, StartError, StopError, TlsError, WorkerApi};
use tokio::runtime::Runtime;

use crate::http::{self, Response, bearer, format_request, json_string};
use crate::wait::LIMIT;
use crate::{leak_recorder, openapi};

/// A server that runs.
pub struct TestServer {
    pub folder: TempDir,
    pub address: SocketAddr,
    /// The administrator's.
    pub token: String,
    /// `None` where the test has a runtime of its own.
    runtime: Option<Runtime>,
    server: Option<Server>,
}

/// Settings for a server with its data below `folder`, and with small files.
pub fn settings(folder: &Path) -> Settings {
    let data = folder.join("data");
    let ledger = server_ledger(&data, 1 << 16);
    Settings::new(data, ledger)
}

/// Gives the server's ledger files of this size.
pub fn set_segment_size(settings: &mut Settings, bytes: u64) {
    settings.ledger = server_ledger(&settings.data, bytes);
}

fn server_ledger(data: &Path, segment_size: u64) -> Arc<dyn LedgerStore> {
    let mut store = ledger_store(data, segment_size);
    store.options.witness = Some(data.with_file_name("witness"));
    Arc::new(store)
}

/// The ledger in a directory.
pub fn ledger_store(directory: &Path, segment_size: u64) -> EmbeddedStore {
    let options = LedgerOptions { segment_size, reserve: Some(1 << 16), witness: None };
    EmbeddedStore { directory: directory.to_owned(), options }
}

/// A request body for an exclusive lease.
pub fn lease_request(resource: &str, holder: &str, ttl_ms: u64) -> Value {
    json!({ "resource": resource, "holder": holder, "ttlMs": ttl_ms })
}

/// A request body for an exclusive lease that may be waited for.
pub fn queued_lease_request(resource: &str, holder: &str, ttl_ms: u64, wait_ms: u64) -> Value {
    json!({ "resource": resource, "holder": holder, "ttlMs": ttl_ms, "waitMs": wait_ms })
}

impl TestServer {
    pub fn start() -> Self {
        Self::start_with(|_| {})
    }

    /// Starts a server with other settings.
    pub fn start_with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), change).unwrap()
    }

    /// Starts a server on what is in `folder`.
    pub fn start_in(folder: TempDir, change: impl FnOnce(&mut Settings)) -> Result<Self, StartError> {
        let runtime = Runtime::new().unwrap();
        let mut started = runtime.block_on(Self::start_async(folder, change))?;
        started.runtime = Some(runtime);
        Ok(started)
    }

    /// Starts a server in the runtime of the caller.
    pub async fn start_async(
        folder: TempDir,
        change: impl FnOnce(&mut Settings),
    ) -> Result<Self, StartError> {
        let mut settings = settings(folder.path());
        change(&mut settings);
        let server = Server::start(settings).await?;
        let read = std::fs::read_to_string(folder.path().join("data/admin.token"));
        let token = read.unwrap_or_default().trim_end().to_owned();
        leak_recorder::record_secret(&token);
        // Without an address it has a local socket alone.
        let address = server.address().unwrap_or(SocketAddr::from(([127, 0, 0, 1], 0)));
        Ok(Self { folder, address, token, runtime: None, server: Some(server) })
    }

    /// Stops in the runtime of the caller.
    pub async fn stop_async(&mut self) {
        self.server.take().unwrap().stop().await.unwrap();
    }

    /// Starts again in the runtime of the caller: at the same address, with what the last server wrote.
    pub async fn restart_async(&mut self, change: impl FnOnce(&mut Settings)) {
        let mut settings = settings(self.folder.path());
        change(&mut settings);
        settings.listen = Some(self.address);
        self.server = Some(Server::start(settings).await.unwrap());
    }

    /// Stops it, and returns the folder with what it wrote.
    pub fn stop(mut self) -> TempDir {
        self.stop_with_outcome().unwrap();
        leak_recorder::record_directory(self.folder.path());
        self.folder
    }

    pub fn stop_with_outcome(&mut self) -> Result<(), StopError> {
        let server = self.server.take().unwrap();
        self.block_on(server.stop())
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
    pub fn worker_api(&self) -> WorkerApi {
        self.server.as_ref().unwrap().worker_api()
    }

    /// Waits for what the server does in this process.
    pub fn block_on<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime.as_ref().unwrap().block_on(what)
    }

    /// Waits until it cannot go on.
    pub fn wait_until_ended(&self) {
        self.block_on(self.server.as_ref().unwrap().wait_until_ended());
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream
    }

    /// Sends these bytes, and reads until the server closes.
    pub fn exchange(&self, request: &[u8]) -> Response {
        http::exchange(self.connect(), request)
    }

    /// One request with these header lines beside `Host`. The response must be in the OpenAPI document.
    #[track_caller]
    pub fn request(&self, line: &str, headers: &[String], body: &str) -> Response {
        let own = [format!("Host: {}", self.address), "Connection: close".into()];
        let answer = self.exchange(format_request(line, own.iter().chain(headers), body).as_bytes());
        openapi::assert_documented(line, &answer);
        answer
    }

    pub fn bearer(&self) -> String {
        bearer(&self.token)
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Response {
        self.request(&format!("GET {path}"), &[self.bearer()], "")
    }

    #[track_caller]
    pub fn post_text(&self, path: &str, body: &str) -> Response {
        let headers = [self.bearer(), "Content-Type: application/json".into()];
        self.request(&format!("POST {path}"), &headers, body)
    }

    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Response {
        self.post_text(path, &body.to_string())
    }

    /// A request with this idempotency key.
    #[track_caller]
    pub fn post_with_key(&self, path: &str, key: &str, body: &Value) -> Response {
        let key = format!("Idempotency-Key: {key}");
        let headers = [self.bearer(), "Content-Type: application/json".into(), key];
        self.request(&format!("POST {path}"), &headers, &body.to_string())
    }

    /// One request with this token; `null` is no body.
    #[track_caller]
    pub fn request_with_token(&self, token: &str, line: &str, body: &Value) -> Response {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.request(line, &[bearer(token), "Content-Type: application/json".into()], &body)
    }

    /// Sends a request, and leaves its response for later.
    pub fn start_post(&self, path: &str, key: Option<&str>, body: &Value) -> TcpStream {
        let mut headers = vec![format!("Host: {}", self.address), "Connection: close".into(), self.bearer()];
        headers.push("Content-Type: application/json".into());
        headers.extend(key.map(|key| format!("Idempotency-Key: {key}")));
        let mut stream = self.connect();
        let request = format_request(&format!("POST {path}"), headers, &body.to_string());
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// Sends a lease request that waits, and returns when the queue has so many waiters.
    pub fn enqueue(&self, key: Option<&str>, request: &Value, waiting: u64) -> TcpStream {
        let stream = self.start_post("/v1/leases", key, request);
        self.wait_for_waiters(&json_string(&request["resource"]), waiting);
        stream
    }

    /// How many wait for a resource that is held.
    pub fn waiter_count(&self, resource: &str) -> u64 {
        let denied = self.post("/v1/leases", &lease_request(resource, "who-looks", 1_000));
        denied.expect_problem(409, "HELD")["waiting"].as_u64().unwrap()
    }

    pub fn wait_for_waiters(&self, resource: &str, expected: u64) {
        while self.waiter_count(resource) != expected {}
    }

    /// The holders of a resource.
    pub fn holders(&self, resource: &str) -> Vec<String> {
        let listed = self.get(&format!("/v1/leases?resource={resource}")).json();
        listed["leases"].as_array().unwrap().iter().map(|lease| json_string(&lease["holder"])).collect()
    }

    /// The resources that are leased.
    pub fn leased_resources(&self) -> Vec<String> {
        let page = self.get("/v1/leases").json();
        page["leases"].as_array().unwrap().iter().map(|lease| json_string(&lease["resource"])).collect()
    }

    /// Creates a token with these scopes for these resources: its secret.
    #[track_caller]
    pub fn create_token(&self, name: &str, scopes: &[&str], resources: &[&str]) -> String {
        let token = json!({ "name": name, "scopes": scopes, "resources": resources });
        json_string(&self.post("/v1/tokens", &token).expect_status(201)["secret"])
    }

    /// The value of a metric.
    pub fn metric(&self, name: &str) -> u64 {
        let text = self.get("/metrics").text;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }

    /// Acquires, which must succeed: the lease's id and token.
    pub fn acquire(&self, resource: &str, holder: &str, ttl_ms: u64) -> (String, String) {
        let response = self.post("/v1/leases", &lease_request(resource, holder, ttl_ms));
        assert_eq!(response.status, 201, "{response:?}");
        response.lease_id_and_token()
    }

    pub fn renew(&self, id: &str, token: &str) -> Response {
        self.post(&format!("/v1/leases/{id}/renew"), &json!({ "token": token }))
    }

    pub fn release(&self, id: &str, token: &str) -> Response {
        self.post(&format!("/v1/leases/{id}/release"), &json!({ "token": token }))
    }

    /// Polls a lease until it has ended.
    pub fn wait_until_lease_ended(&self, id: &str) -> Value {
        loop {
            let lease = self.get(&format!("/v1/leases/{id}")).json()["lease"].clone();
            if lease["state"] != "ACTIVE" {
                return lease;
            }
        }
    }
}
