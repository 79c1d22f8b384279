//! A ledger in which something happened: made by a real server, and closed in good order.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Served, serve, tenure};

/// The admin's token of every server in these tests.
pub const ADMIN: &str = "0123456789abcdef";

/// What was asked of the server, and what it said.
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
            thread::park_timeout(Duration::from_millis(50));
        }
        stop(served);
        history
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Runs `tenure` with these arguments on the ledger.
    pub fn ask(&self, arguments: &[&str]) -> Said {
        said(tenure(self.folder.path()).args(arguments).arg("--data").arg(self.data()))
    }

    /// Every event, as the program says it.
    pub fn log(&self) -> Vec<Value> {
        let said = self.ask(&["log", "--json"]);
        assert_eq!((said.code, said.errors.as_str()), (0, ""));
        said.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
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

/// What a program said.
pub struct Said {
    pub code: i32,
    pub output: String,
    pub errors: String,
}

impl Said {
    /// The one JSON value on standard output, where nothing else is said.
    pub fn json(&self) -> Value {
        assert_eq!((self.code, self.errors.as_str()), (0, ""), "{}", self.output);
        assert_eq!(self.output.lines().count(), 1, "{}", self.output);
        serde_json::from_str(&self.output).unwrap()
    }
}

/// Runs to its end.
pub fn said(command: &mut Command) -> Said {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: status.code().expect("it ended by itself"), output: text(stdout), errors: text(stderr) }
}

pub fn start(folder: &Path, settings: &[(&str, &str)]) -> Served {
    let mut command = serve(folder);
    command.env("TENURE_ADMIN_TOKEN", ADMIN).envs(settings.iter().copied());
    Served::start(&mut command)
}

pub fn stop(served: Served) {
    served.signal("TERM");
    let (code, _, errors) = served.end();
    assert_eq!(code, Some(0), "{errors}");
}

/// Asks for a lease: the status and the answer.
pub fn try_acquire(served: &Served, resource: &str, holder: &str, ttl_ms: u64) -> (u16, Value) {
    let wish = json!({ "resource": resource, "holder": holder, "ttlMs": ttl_ms });
    let (status, body) = served.ask("POST /v1/leases", ADMIN, &wish.to_string());
    (status, serde_json::from_str(&body).unwrap())
}

pub fn acquire(served: &Served, resource: &str, holder: &str, ttl_ms: u64) -> Value {
    let (status, answer) = try_acquire(served, resource, holder, ttl_ms);
    assert_eq!(status, 201, "{answer}");
    answer
}

fn act(served: &Served, what: &str, granted: &Value, mut body: Value) -> Value {
    body["token"] = granted["token"].clone();
    let id = granted["lease"]["id"].as_str().unwrap();
    let (status, answer) = served.ask(&format!("POST /v1/leases/{id}/{what}"), ADMIN, &body.to_string());
    assert_eq!(status, 200, "{answer}");
    serde_json::from_str(&answer).unwrap()
}
