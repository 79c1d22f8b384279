//! Who sends intents, and a worker that carries out nothing.

use serde_json::{Value, json};
use tenure_server::{IntentSecret, IntentSecrets, Settings};

use crate::server::{Answer, Running, start_in, text};

/// A channel.
pub const CHANNEL: &str = "1:0:19:283D:3FB:1:C00000:0:0:0:";

/// How a worker calls itself.
pub fn worker_name(process: u32) -> String {
    format!("worker:5d1e-b007:4026531836:{process}:7")
}

/// A wish to see a channel.
pub fn channel(service: &str) -> Value {
    json!({ "serviceRef": service, "profileID": "hd" })
}

/// A wish to see a recording from there on.
pub fn recording(id: &str, start_ms: u64) -> Value {
    json!({ "recordingID": id, "profileID": "hd", "startMs": start_ms })
}

/// A server whose keys are the same after a restart.
pub fn start_with_secret(folder: tempfile::TempDir, current: &str, previous: Option<&str>) -> Running {
    start_in(folder, |settings| with_secret(settings, current, previous)).unwrap()
}

pub fn with_secret(settings: &mut Settings, current: &str, previous: Option<&str>) {
    let secret = |text: &str| IntentSecret::new(text).unwrap();
    let (current, previous) = (secret(current), previous.map(secret));
    settings.intent_secrets = Some(IntentSecrets { current, previous });
}

impl Running {
    /// Sends an intent.
    pub fn intend(&self, body: &Value) -> Answer {
        self.post("/api/v3/intents", body)
    }

    /// Sends an intent, which must be accepted: the session.
    #[track_caller]
    pub fn session_of(&self, body: &Value) -> String {
        let answer = self.intend(body);
        assert_eq!(answer.status, 202, "{answer:?}");
        text(&answer.json()["session_id"])
    }

    /// A session as it is.
    #[track_caller]
    pub fn session(&self, id: &str) -> Value {
        let answer = self.get(&format!("/api/v3/sessions/{id}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Every session, the newest first.
    pub fn sessions(&self) -> Vec<Value> {
        self.get("/api/v3/sessions").json()["sessions"].as_array().unwrap().clone()
    }

    /// The number of the last event in the ledger.
    pub fn head(&self) -> u64 {
        crate::crowds::metric(self, "tenure_ledger_seq")
    }

    /// What is leased.
    pub fn leased(&self) -> Vec<String> {
        let page = self.get("/v1/leases").json();
        page["leases"].as_array().unwrap().iter().map(|lease| text(&lease["resource"])).collect()
    }

    /// A token with these scopes, for these resources: its secret.
    #[track_caller]
    pub fn token_for(&self, name: &str, scopes: &[&str], resources: &[&str]) -> String {
        let wish = json!({ "name": name, "scopes": scopes, "resources": resources });
        let made = self.post("/v1/tokens", &wish);
        assert_eq!(made.status, 201, "{made:?}");
        text(&made.json()["secret"])
    }

    /// Asks with this secret.
    pub fn ask_as(&self, secret: &str, line: &str, body: &Value) -> Answer {
        let headers = [format!("Authorization: Bearer {secret}"), "Content-Type: application/json".into()];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.ask(line, &headers, &body)
    }
}

/// A worker, over HTTP.
pub struct Worker<'a> {
    server: &'a Running,
    pub guard: u64,
}

impl<'a> Worker<'a> {
    #[track_caller]
    pub fn start(server: &'a Running) -> Self {
        let answer =
            server.post("/api/v3/worker/guard", &json!({ "worker": worker_name(1), "ttlMs": 60_000 }));
        assert_eq!(answer.status, 200, "{answer:?}");
        Self { server, guard: answer.json()["guard"].as_u64().unwrap() }
    }

    /// Asks something, with the guard.
    pub fn ask(&self, what: &str, fields: &Value) -> Answer {
        let mut body = fields.clone();
        body["guard"] = json!(self.guard);
        self.server.post(&format!("/api/v3/worker/{what}"), &body)
    }

    #[track_caller]
    fn done(&self, what: &str, fields: &Value) -> Value {
        let answer = self.ask(what, fields);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    #[track_caller]
    pub fn take(&self, session: &str, tuners: u32) -> Value {
        self.done("take", &json!({ "session_id": session, "tuners": tuners, "ttlMs": 30_000 }))
    }

    #[track_caller]
    pub fn run(&self, session: &str) -> Value {
        self.done("running", &json!({ "session_id": session, "process": "pid 17" }))
    }

    #[track_caller]
    pub fn finish(&self, session: &str, reason: &str) -> Value {
        self.done("finish", &json!({ "session_id": session, "reason": reason }))
    }

    #[track_caller]
    pub fn keep(&self, sessions: &[&str]) -> Value {
        self.done("keep", &json!({ "ttlMs": 30_000, "sessions": sessions }))
    }

    #[track_caller]
    pub fn changes(&self, since: u64, wait_ms: u64) -> Value {
        self.done("changes", &json!({ "since": since, "waitMs": wait_ms }))
    }
}
