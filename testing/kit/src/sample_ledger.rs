//! A ledger with a few events, made by a server that was stopped.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::Response;
use crate::process::CommandOutput;
use crate::program::{ServerProcess, run_command, serve_command, tenure_command};
use crate::server::lease_request;
use crate::wait::sleep;

/// The admin's token of every server in these tests.
pub const ADMIN_TOKEN: &str = "0123456789abcdef";

/// What was asked of the server, and what it done.
pub struct SampleLedger {
    pub folder: TempDir,
    /// Renewed once, and still held when the server stopped.
    pub held: Value,
    /// Given back.
    pub released: Value,
    /// Ran out, which was announced.
    pub expired: Value,
}

impl SampleLedger {
    /// A server grants three leases; one is renewed, one given back, one runs out.
    pub fn create(settings: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let served = start_server(folder.path(), settings);
        let expired = acquire(&served, "db:1", "worker", 1_000);
        let mut held = acquire(&served, "deploy:prod", "ci-42", 3_600_000);
        let renewed = post_lease_action(&served, "renew", &held, json!({}));
        held["lease"] = renewed["lease"].clone();
        held["passport"] = renewed["passport"].clone();
        let released = acquire(&served, "tuner:2", "größer", 60_000);
        post_lease_action(&served, "release", &released, json!({ "reason": "COMPLETED" }));
        let history = Self { folder, held, released, expired };
        // Beside the server: the log can be read at any time.
        while !history.events().iter().any(|event| event["type"] == "lease.expired") {
            sleep(Duration::from_millis(50));
        }
        served.stop();
        history
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Runs `tenure` with these arguments on the ledger.
    pub fn run(&self, arguments: &[&str]) -> CommandOutput {
        run_command(tenure_command(self.folder.path()).args(arguments).arg("--data").arg(self.data()))
    }

    /// Every event, as the program says it.
    pub fn events(&self) -> Vec<Value> {
        let done = self.run(&["log", "--json"]);
        assert_eq!((done.code, done.errors.as_str()), (Some(0), ""));
        done.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The files of the ledger whose name ends or begins like this.
    pub fn ledger_files(&self, part: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.data()).unwrap().map(|entry| entry.unwrap().path());
        let is_one = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().contains(part);
        let mut files: Vec<_> = entries.filter(is_one).collect();
        files.sort();
        files
    }
}

pub fn start_server(folder: &Path, settings: &[(&str, &str)]) -> ServerProcess {
    let mut command = serve_command(folder);
    command.env("TENURE_ADMIN_TOKEN", ADMIN_TOKEN).envs(settings.iter().copied());
    ServerProcess::start(&mut command)
}

/// Asks for a lease.
pub fn try_acquire(server: &ServerProcess, resource: &str, holder: &str, ttl_ms: u64) -> Response {
    server.request("POST /v1/leases", ADMIN_TOKEN, &lease_request(resource, holder, ttl_ms).to_string())
}

#[track_caller]
pub fn acquire(server: &ServerProcess, resource: &str, holder: &str, ttl_ms: u64) -> Value {
    try_acquire(server, resource, holder, ttl_ms).expect_status(201)
}

#[track_caller]
fn post_lease_action(server: &ServerProcess, what: &str, granted: &Value, mut body: Value) -> Value {
    body["token"] = granted["token"].clone();
    let id = granted["lease"]["id"].as_str().unwrap();
    server.request(&format!("POST /v1/leases/{id}/{what}"), ADMIN_TOKEN, &body.to_string()).expect_status(200)
}
