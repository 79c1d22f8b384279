//! A ledger with a few events, made by a server that was stopped.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::Response;
use crate::process::CommandOutput;
use crate::program::{ServerProcess, output, serve, tenure};
use crate::server::lease_request;
use crate::wait::pause;

/// The admin's token of every server in these tests.
pub const ADMIN: &str = "0123456789abcdef";

/// What was asked of the server, and what it done.
pub struct History {
    pub folder: TempDir,
    /// Renewed once, and still held when the server stopped.
    pub held: Value,
    /// Given back.
    pub released: Value,
    /// Ran out, which was announced.
    pub expired: Value,
}

impl History {
    /// A server grants three leases; one is renewed, one given back, one runs out.
    pub fn make(settings: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let served = start(folder.path(), settings);
        let expired = acquire(&served, "db:1", "worker", 1_000);
        let mut held = acquire(&served, "deploy:prod", "ci-42", 3_600_000);
        let renewed = act(&served, "renew", &held, json!({}));
        held["lease"] = renewed["lease"].clone();
        held["passport"] = renewed["passport"].clone();
        let released = acquire(&served, "tuner:2", "größer", 60_000);
        act(&served, "release", &released, json!({ "reason": "COMPLETED" }));
        let history = Self { folder, held, released, expired };
        // Beside the server: the log can be read at any time.
        while !history.log().iter().any(|event| event["type"] == "lease.expired") {
            pause(Duration::from_millis(50));
        }
        served.stop();
        history
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Runs `tenure` with these arguments on the ledger.
    pub fn ask(&self, arguments: &[&str]) -> CommandOutput {
        output(tenure(self.folder.path()).args(arguments).arg("--data").arg(self.data()))
    }

    /// Every event, as the program says it.
    pub fn log(&self) -> Vec<Value> {
        let done = self.ask(&["log", "--json"]);
        assert_eq!((done.code, done.errors.as_str()), (Some(0), ""));
        done.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The files of the ledger whose name ends or begins like this.
    pub fn files(&self, part: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.data()).unwrap().map(|entry| entry.unwrap().path());
        let is_one = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().contains(part);
        let mut files: Vec<_> = entries.filter(is_one).collect();
        files.sort();
        files
    }
}

pub fn start(folder: &Path, settings: &[(&str, &str)]) -> ServerProcess {
    let mut command = serve(folder);
    command.env("TENURE_ADMIN_TOKEN", ADMIN).envs(settings.iter().copied());
    ServerProcess::start(&mut command)
}

/// Asks for a lease.
pub fn try_acquire(server: &ServerProcess, resource: &str, holder: &str, ttl_ms: u64) -> Response {
    server.ask("POST /v1/leases", ADMIN, &lease_request(resource, holder, ttl_ms).to_string())
}

#[track_caller]
pub fn acquire(server: &ServerProcess, resource: &str, holder: &str, ttl_ms: u64) -> Value {
    try_acquire(server, resource, holder, ttl_ms).with_status(201)
}

#[track_caller]
fn act(server: &ServerProcess, what: &str, granted: &Value, mut body: Value) -> Value {
    body["token"] = granted["token"].clone();
    let id = granted["lease"]["id"].as_str().unwrap();
    server.ask(&format!("POST /v1/leases/{id}/{what}"), ADMIN, &body.to_string()).with_status(200)
}
