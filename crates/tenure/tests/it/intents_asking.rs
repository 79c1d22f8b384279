//! What is asked about sessions, and what can be seen of their pipelines.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::client::{Answer, Client, LIMIT, now};

/// What is sent to show this channel.
pub fn wish(service: &str, parameter: Option<&str>) -> String {
    let mut wish = json!({ "serviceRef": service, "profileID": "hd" });
    if let Some(parameter) = parameter {
        wish["params"] = json!({ "audio": parameter });
    }
    wish.to_string()
}

/// Wants this channel.
pub fn intend(client: &mut Client, service: &str, parameter: Option<&str>) -> Answer {
    client.ask("POST /api/v3/intents", None, &wish(service, parameter)).unwrap()
}

/// Which session was accepted.
pub fn accepted(answer: &Answer) -> String {
    assert_eq!(answer.status, 202, "{answer:?}");
    answer.body["session_id"].as_str().unwrap().to_owned()
}

/// The session as it is now.
pub fn look(client: &mut Client, id: &str) -> Value {
    let answer = client.ask(&format!("GET /api/v3/sessions/{id}"), None, "").unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}

/// The session, when it has come to one of these states.
pub fn reach(client: &mut Client, id: &str, states: &[&str]) -> Value {
    let end = now() + LIMIT;
    let mut session = look(client, id);
    while !states.iter().any(|state| session["state"] == *state) {
        assert!(now() < end, "not one of {states:?} within {LIMIT:?}: {session}");
        let line = format!("GET /api/v3/sessions/{id}?waitMs=1000&since={}", session["revision"]);
        session = client.ask(&line, None, "").unwrap().body;
    }
    session
}

/// Whether nobody holds the lock on a file.
pub fn is_unlocked(path: &Path) -> bool {
    !path.exists() || crate::commands::is_unlocked(path)
}

/// Which processes have a file open: what they are, and for which session.
pub fn users_of(path: &Path) -> Vec<String> {
    let read = |process: &Path, name: &str| fs::read_to_string(process.join(name)).unwrap_or_default();
    let mut users = Vec::new();
    for process in fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path()) {
        let files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        if files
            .map(|file| fs::read_link(file.path()))
            .any(|target| target.is_ok_and(|target| target == path))
        {
            let (line, environment) = (read(&process, "cmdline"), read(&process, "environ"));
            let session = environment.split('\0').find(|variable| variable.starts_with("TENURE_SESSION="));
            users.push(format!("{} {line:?} {session:?} {:?}", process.display(), read(&process, "stat")));
        }
    }
    users
}
