//! Requests of the intents API, and a worker that carries out nothing.

use serde_json::{Value, json};
use tenure_server::{IntentSecret, IntentSecrets, Settings};

use crate::http::{Response, json_string};
use crate::server::TestServer;

/// A channel.
pub const CHANNEL: &str = "1:0:19:283D:3FB:1:C00000:0:0:0:";

/// Another channel.
pub const OTHER_CHANNEL: &str = "1:0:19:2B66:3F3:1:C00000:0:0:0:";

/// How a worker calls itself.
pub fn worker_name(process: u32) -> String {
    format!("worker:5d1e-b007:4026531836:{process}:7")
}

/// An intent to show a channel.
pub fn channel_intent(service: &str) -> Value {
    json!({ "serviceRef": service, "profileID": "hd" })
}

/// An intent to show a recording from this time on.
pub fn recording_intent(id: &str, start_ms: u64) -> Value {
    json!({ "recordingID": id, "profileID": "hd", "startMs": start_ms })
}

/// A server whose keys are the same after a restart.
pub fn start_with_secret(folder: tempfile::TempDir, current: &str, previous: Option<&str>) -> TestServer {
    TestServer::start_in(folder, |settings| set_secret(settings, current, previous)).unwrap()
}

pub fn set_secret(settings: &mut Settings, current: &str, previous: Option<&str>) {
    let secret = |text: &str| IntentSecret::new(text).unwrap();
    let (current, previous) = (secret(current), previous.map(secret));
    settings.intent_secrets = Some(IntentSecrets { current, previous });
}

impl TestServer {
    /// Sends an intent.
    pub fn submit_intent(&self, body: &Value) -> Response {
        self.post("/api/v3/intents", body)
    }

    /// Sends an intent, which must be accepted: the session.
    #[track_caller]
    pub fn start_intent_session(&self, body: &Value) -> String {
        json_string(&self.submit_intent(body).expect_status(202)["session_id"])
    }

    /// A session as it is.
    #[track_caller]
    pub fn intent_session(&self, id: &str) -> Value {
        self.get(&format!("/api/v3/sessions/{id}")).expect_status(200)
    }

    /// Every session, the newest first.
    pub fn intent_sessions(&self) -> Vec<Value> {
        self.get("/api/v3/sessions").json()["sessions"].as_array().unwrap().clone()
    }

    /// The number of the last event in the ledger.
    pub fn ledger_head(&self) -> u64 {
        self.metric("tenure_ledger_seq")
    }
}

/// A worker, over HTTP.
pub struct FakeWorker<'a> {
    server: &'a TestServer,
    pub guard: u64,
}

impl<'a> FakeWorker<'a> {
    #[track_caller]
    pub fn start(server: &'a TestServer) -> Self {
        let request = json!({ "worker": worker_name(1), "ttlMs": 60_000 });
        let granted = server.post("/api/v3/worker/guard", &request).expect_status(200);
        Self { server, guard: granted["guard"].as_u64().unwrap() }
    }

    /// Asks something, with the guard.
    pub fn request(&self, what: &str, fields: &Value) -> Response {
        let mut body = fields.clone();
        body["guard"] = json!(self.guard);
        self.server.post(&format!("/api/v3/worker/{what}"), &body)
    }

    #[track_caller]
    fn expect_done(&self, what: &str, fields: &Value) -> Value {
        self.request(what, fields).expect_status(200)
    }

    #[track_caller]
    pub fn take(&self, session: &str, tuners: u32) -> Value {
        self.expect_done("take", &json!({ "session_id": session, "tuners": tuners, "ttlMs": 30_000 }))
    }

    #[track_caller]
    pub fn run(&self, session: &str) -> Value {
        self.expect_done("running", &json!({ "session_id": session, "process": "pid 17" }))
    }

    #[track_caller]
    pub fn finish(&self, session: &str, reason: &str) -> Value {
        self.expect_done("finish", &json!({ "session_id": session, "reason": reason }))
    }

    #[track_caller]
    pub fn keep_alive(&self, sessions: &[&str]) -> Value {
        self.expect_done("keep", &json!({ "ttlMs": 30_000, "sessions": sessions }))
    }

    #[track_caller]
    pub fn changes(&self, since: u64, wait_ms: u64) -> Value {
        self.expect_done("changes", &json!({ "since": since, "waitMs": wait_ms }))
    }
}
