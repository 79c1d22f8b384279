//! The recorded ledgers in `tests/golden` open with the program as it is now, and say what they always said.
//!
//! Their keys were made for them and protect nothing.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::golden::assert_golden;
use tenure_testkit::sample_ledger::{ADMIN_TOKEN, start_server};
use tenure_testkit::{CommandOutput, ServerProcess, run_command, tenure_command};

pub fn golden_folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// A copy of a recording, so that the recording itself is never written to.
pub struct RecordedLedger {
    folder: TempDir,
}

impl RecordedLedger {
    pub fn copy(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
        for entry in fs::read_dir(golden_folder(name)).unwrap() {
            let entry = entry.unwrap();
            let to = data.join(entry.file_name());
            fs::copy(entry.path(), &to).unwrap();
            // Git keeps no such modes.
            fs::set_permissions(&to, fs::Permissions::from_mode(0o600)).unwrap();
        }
        Self { folder }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn ask(&self, arguments: &[&str]) -> CommandOutput {
        run_command(tenure_command(self.folder()).args(arguments).arg("--data").arg(self.data()))
    }

    /// Starts a server on it, as if it had been moved to this machine.
    fn serve(&self) -> ServerProcess {
        let moved = self.ask(&["ledger", "moved"]);
        assert_eq!(moved.code, Some(0), "{}", moved.errors);
        start_server(self.folder(), &[])
    }
}

/// The types of all events that can be in a ledger, as the schema of the ledger names them.
fn event_types() -> BTreeSet<String> {
    let schema = include_str!("../../../../proto/tenure.proto");
    let mut types = BTreeSet::new();
    for message in schema.split("\nmessage ").skip(1) {
        let Some((head, fields)) = message.split_once("  oneof event {") else { continue };
        let name = head.split_once("Event {").unwrap().0;
        let fields = fields.split_once('}').unwrap().0.lines().filter(|line| !line.trim().starts_with("//"));
        let names = fields.filter_map(|field| field.split_once(" = ")?.0.split_whitespace().nth(1));
        types.extend(names.map(|field| format!("{}.{field}", name.to_lowercase())));
    }
    // Only the library that reads ledgers of others knows them.
    assert!(types.remove("lease.conflict") && types.remove("lease.issue_denied"));
    types
}

#[test]
fn recorded_ledger_has_every_event_type_and_an_unchanged_log() {
    let recording = RecordedLedger::copy("ledger");
    let log = recording.ask(&["log", "--json"]);
    assert_eq!((log.code, log.errors.as_str()), (Some(0), ""));
    let kind = |line: &str| serde_json::from_str::<Value>(line).unwrap()["type"].as_str().unwrap().to_owned();
    let recorded: BTreeSet<_> = log.output.lines().map(kind).collect();
    assert_eq!(recorded, event_types());
    assert_golden("log.jsonl", &log.output);
    assert_golden("log.txt", &recording.ask(&["log"]).output);
}

#[test]
fn recorded_ledger_verifies_and_replays_to_the_same_state() {
    for (name, golden) in [("ledger", "replay.json"), ("ledger-pruned", "replay-pruned.json")] {
        let recording = RecordedLedger::copy(name);
        let verified = recording.ask(&["verify"]);
        assert_eq!((verified.code, verified.errors.as_str()), (Some(0), ""), "{name}: {}", verified.output);
        let state = recording.ask(&["replay", "--at", "last", "--json"]).json();
        assert_golden(golden, &(serde_json::to_string_pretty(&state).unwrap() + "\n"));
    }
}

#[test]
fn pruned_recorded_ledger_has_an_unchanged_log() {
    let recording = RecordedLedger::copy("ledger-pruned");
    assert!(!recording.data().join("0000000000000001.segment").exists());
    let log = recording.ask(&["log", "--json"]);
    assert_eq!(log.code, Some(0), "{}", log.errors);
    assert!(log.errors.contains("were pruned"), "{}", log.errors);
    assert_golden("log-pruned.jsonl", &log.output);
}

#[test]
fn server_on_a_recorded_ledger_lists_the_same_objects() {
    let mut lists = Vec::new();
    for name in ["ledger", "ledger-pruned"] {
        let served = RecordedLedger::copy(name);
        let served = (served.serve(), served);
        for path in [
            "/v1/leases",
            "/v1/leases?state=EXPIRED",
            "/v1/leases?state=RELEASED",
            "/v1/agents",
            "/v1/contention",
            "/api/v3/sessions",
            "/v1/files/reports",
            "/v1/tokens",
        ] {
            let response = served.0.request(&format!("GET {path}"), ADMIN_TOKEN, "");
            let mut list = response.json();
            hide_times(&mut list);
            lists.push(format!("{name} {path} {} {list}\n", response.status));
        }
        served.0.stop();
    }
    assert_golden("lists.txt", &lists.concat());
}

/// Hides what depends on when the server was started and asked: durations, and times of day, which the server counts
/// from its start.
fn hide_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if name == "remainingMs" || name == "waitTimeoutMs" || name == "heldMs" {
                    *value = Value::Null;
                }
                hide_times(value);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(hide_times),
        Value::String(text) if is_time(text) => *text = "(time)".to_owned(),
        _ => {}
    }
}

fn is_time(text: &str) -> bool {
    text.len() == "2026-11-18T12:08:50.115Z".len() && text.contains('T') && text.ends_with('Z')
}

#[test]
fn server_sends_the_same_events_of_a_recorded_ledger() {
    let recording = RecordedLedger::copy("ledger");
    let last = recording.ask(&["verify", "--json"]).json()["lastSeq"].as_u64().unwrap();
    let served = recording.serve();
    let mut stream = TcpStream::connect(&served.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let request = "GET /v1/events?from=1&type=*";
    write!(
        stream,
        "{request} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n\r\n",
        served.address
    )
    .unwrap();
    let mut frames = String::new();
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap();
        let is_field = ["id:", "event:", "data:"].iter().any(|field| line.starts_with(field));
        let seq = || {
            line.strip_prefix("data: ")
                .and_then(|data| serde_json::from_str::<Value>(data).ok()?["seq"].as_u64())
        };
        if seq().is_some_and(|seq| seq > last) {
            break;
        }
        if is_field {
            frames.push_str(&line);
            frames.push('\n');
        }
        if seq() == Some(last) {
            break;
        }
    }
    drop(served);
    assert_golden("events.txt", &frames);
}
