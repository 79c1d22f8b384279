//! Makes the recorded ledgers in `tests/golden`: a story in which every API is used and every event happens.
//!
//! The recording stays as it is: later versions must open what this version wrote. To make a new one:
//! `cargo nextest run -p tenure --run-ignored only recording_story`, then write the other golden files anew.
//! The whole recording has no checkpoint, so that a new checkpoint format does not make it unreadable. The pruned
//! recording continues a copy of it and can be made again by itself.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::fault_injection::wrapped_command;
use crate::recorded_ledgers::{RecordedLedger, golden_folder};
use tenure_testkit::sample_ledger::ADMIN_TOKEN;
use tenure_testkit::{FakeAgent, ServerProcess, TestClient, TestRepository, run_command, sleep, wait_until};

const CHANNEL: &str = "1:0:19:283D:3FB:1:C00000:0:0:0:";
const WORKER: &str = "worker:5d1e-b007:4026531836:1:7";
const HOUR: u64 = 3_600_000;

#[test]
#[ignore = "makes a new recording"]
fn record_the_complete_ledger() {
    let repo = TestRepository::new();
    repo.configure(
        "[files]\nretry_seconds = 1\nidle_seconds = 30\n[ledger]\nsegment_size = 65536\nreserve = 0\n\
         checkpoint_after = 1000000\n[pools]\ntuner = 2\n",
    );
    restore_a_copy(&repo);
    // What agents touch is noted only where idle leases end, and only after an eighth of that time.
    let served = start(&repo, &[("TENURE_AGENTS_IDLE_MS", "16000")]);
    let mut story = LedgerRecorder::new(&served);
    story.plain_leases();
    story.queue();
    story.control(&served);
    story.intents();
    story.work();
    story.agents();
    files(&repo);
    story.expects(
        "POST /v1/tokens",
        201,
        &json!({ "name": "ci", "scopes": ["leases:read"], "resources": ["deploy:*"] }),
    );
    stop(&repo, served);
    let served = start(&repo, &[("TENURE_AGENTS_LEASE_TIME_MS", "1000")]);
    LedgerRecorder::new(&served).use_up_lease_time(&repo);
    stop(&repo, served);
    // On a clock that no machine has later: then no time passes between the recording and its next start.
    let served = start_elsewhere(&repo);
    LedgerRecorder::new(&served).last_state();
    stop(&repo, served);
    keep(&data(&repo), &golden_folder("ledger"));
}

#[test]
#[ignore = "makes a new recording"]
fn record_the_pruned_ledger() {
    let recording = RecordedLedger::copy("ledger");
    let folder = recording.folder();
    let first = recording.data().join("0000000000000001.segment");
    let mut serve = tenure_testkit::serve_command(folder);
    serve.env("TENURE_ADMIN_TOKEN", ADMIN_TOKEN).env("TENURE_LEDGER_CHECKPOINT_AFTER", "4");
    serve.env("TENURE_LEDGER_RETENTION_BYTES", "65536").env("TENURE_LEDGER_RESERVE", "0");
    let served =
        ServerProcess::start(&mut wrapped_command("unshare", &["--time", "--boottime", "2000000"], &serve));
    let mut story = LedgerRecorder::new(&served);
    for number in 0..2_000 {
        let granted = story.acquire(&format!("thing:{number}"), "a", HOUR);
        story.act(&granted, "release", json!({}));
        if !first.exists() {
            break;
        }
    }
    assert!(!first.exists(), "it must be pruned at some time");
    end(served);
    keep(&recording.data(), &golden_folder("ledger-pruned"));
}

/// What is kept of a data directory: neither locks, sockets nor files that are blank.
fn keep(data: &Path, golden: &Path) {
    let _ = fs::remove_dir_all(golden);
    fs::create_dir_all(golden).unwrap();
    for entry in fs::read_dir(data).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let is_recorded = name.ends_with(".segment")
            || name.starts_with("checkpoint-")
            || ["identity", "clean", "node.key", "token.key", "api.tokens"].contains(&name.as_str());
        if is_recorded {
            fs::copy(entry.path(), golden.join(name)).unwrap();
        } else {
            println!("left out: {name}");
        }
    }
}

fn data(repo: &TestRepository) -> std::path::PathBuf {
    repo.path(".local/state/tenure")
}

fn serve(repo: &TestRepository, settings: &[(&str, &str)]) -> Command {
    let mut command = repo.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env_remove("TENURE_LEDGER_RESERVE").env_remove("TENURE_LEDGER_SEGMENT_SIZE");
    command.env("TENURE_ADMIN_TOKEN", ADMIN_TOKEN).envs(settings.iter().copied());
    command
}

fn start(repo: &TestRepository, settings: &[(&str, &str)]) -> ServerProcess {
    ServerProcess::start(&mut serve(repo, settings))
}

fn start_elsewhere(repo: &TestRepository) -> ServerProcess {
    ServerProcess::start(&mut wrapped_command(
        "unshare",
        &["--time", "--boottime", "1000000"],
        &serve(repo, &[]),
    ))
}

fn stop(repo: &TestRepository, served: ServerProcess) {
    end(served);
    let verified = repo.run(&["verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

fn end(served: ServerProcess) {
    served.signal("TERM");
    let (code, _, errors) = served.wait_for_exit();
    assert_eq!(code, Some(0), "{errors}");
}

/// Events of the past epoch, a copy that takes the place of its original, another key, another epoch.
fn restore_a_copy(repo: &TestRepository) {
    let served = start(repo, &[]);
    let mut story = LedgerRecorder::new(&served);
    story.acquire("before:restore", "ci-41", HOUR);
    stop(repo, served);
    let (data, copy) = (data(repo), repo.path("copy"));
    let copied = run_command(repo.command(&["ledger", "copy", "--to"]).arg(&copy));
    assert_eq!(copied.code, Some(0), "{}", copied.errors);
    fs::remove_dir_all(&data).unwrap();
    fs::rename(&copy, &data).unwrap();
    let restored = repo.run(&["ledger", "restored", "--nobody-holds"]);
    assert_eq!(restored.code, Some(0), "{restored:?}");
}

/// A client with the administrator's token.
struct LedgerRecorder {
    client: TestClient,
}

impl LedgerRecorder {
    fn new(served: &ServerProcess) -> Self {
        Self { client: TestClient::with_token(&served.address, ADMIN_TOKEN).unwrap() }
    }

    #[track_caller]
    fn expects(&mut self, line: &str, status: u16, body: &Value) -> Value {
        self.expects_with(line, None, status, body)
    }

    #[track_caller]
    fn expects_with(&mut self, line: &str, key: Option<&str>, status: u16, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = self.client.request(line, key, &body).unwrap();
        assert_eq!(answer.status, status, "{line}: {answer:?}");
        answer.body
    }

    #[track_caller]
    fn acquire(&mut self, resource: &str, holder: &str, ttl_ms: u64) -> Value {
        let body = json!({ "resource": resource, "holder": holder, "ttlMs": ttl_ms });
        self.expects("POST /v1/leases", 201, &body)
    }

    #[track_caller]
    fn act(&mut self, granted: &Value, what: &str, mut body: Value) -> Value {
        body["token"] = granted["token"].clone();
        let id = granted["lease"]["id"].as_str().unwrap();
        self.expects(&format!("POST /v1/leases/{id}/{what}"), 200, &body)
    }

    fn plain_leases(&mut self) {
        let body = json!({
            "resource": "deploy:prod", "holder": "ci-42", "ttlMs": HOUR, "labels": { "run": "7", "team": "ops" },
        });
        let held = self.expects_with("POST /v1/leases", Some("request-1"), 201, &body);
        self.act(&held, "renew", json!({ "ttlMs": 2 * HOUR }));
        let shared = |holder: &str| json!({ "resource": "config:site", "holder": holder, "ttlMs": HOUR, "mode": "shared" });
        let one = self.expects("POST /v1/leases", 201, &shared("reader-1"));
        let two = self.expects("POST /v1/leases", 201, &shared("reader-2"));
        self.act(&two, "release", json!({ "reason": "VOLUNTARY" }));
        let raised = self.act(&one, "upgrade", json!({}));
        let lowered = self.act(&raised, "downgrade", json!({}));
        self.act(&lowered, "release", json!({}));
        let both = json!({ "leases": [
            { "resource": "db:1", "holder": "migration", "ttlMs": HOUR },
            { "resource": "db:2", "holder": "migration", "ttlMs": HOUR, "mode": "shared" },
        ]});
        let both = self.expects("POST /v1/leases/batch", 201, &both);
        self.act(&both["leases"][0], "release", json!({ "reason": "ABORTED" }));
        let transferred = self.act(&both["leases"][1], "transfer", json!({ "to": "größer" }));
        let id = transferred["lease"]["id"].as_str().unwrap();
        self.expects(
            &format!("POST /v1/leases/{id}/revoke"),
            200,
            &json!({ "reason": "the migration is cancelled" }),
        );
        // Long enough for the time to be marked while nothing else happens.
        let short = self.acquire("door:front", "visitor", 2_500);
        let line = format!("GET /v1/leases/{}", short["lease"]["id"].as_str().unwrap());
        wait_until("it expires", || self.expects(&line, 200, &Value::Null)["lease"]["state"] == "EXPIRED");
        let member = self.acquire("tuner:*", "viewer", HOUR);
        self.act(&member, "release", json!({}));
    }

    fn queue(&mut self) {
        let held = self.acquire("printer:1", "first", HOUR);
        let request = |holder: &str, wait_ms: u64| {
            json!({ "resource": "printer:1", "holder": holder, "ttlMs": HOUR, "waitMs": wait_ms }).to_string()
        };
        let mut second = self.client.reconnect();
        second.send("POST /v1/leases", None, &request("second", 60_000)).unwrap();
        self.waiting("printer:1", 1);
        let shown = format!("GET /v1/leases/{}", held["lease"]["id"].as_str().unwrap());
        assert_eq!(self.expects(&shown, 200, &Value::Null)["lease"]["recall"]["by"], "second");
        let refused = self.client.request("POST /v1/leases", None, &request("impatient", 100)).unwrap();
        assert_eq!(refused.status, 409, "{refused:?}");
        let mut third = self.client.reconnect();
        third.send("POST /v1/leases", Some("request-2"), &request("third", 60_000)).unwrap();
        let ticket = self.waiting("printer:1", 2)["waiting"][1]["ticket"].clone();
        self.client.request(&format!("DELETE /v1/queue/{ticket}"), None, "").unwrap();
        self.waiting("printer:1", 1);
        let mut fourth = self.client.reconnect();
        fourth.send("POST /v1/leases", None, &request("fourth", 60_000)).unwrap();
        self.waiting("printer:1", 2);
        drop(fourth);
        self.waiting("printer:1", 1);
        self.act(&held, "release", json!({}));
        let served = second.read_response().unwrap();
        assert_eq!(served.status, 201, "{served:?}");
        self.act(&served.body, "release", json!({}));
    }

    /// Waits until the queue has `count` waiters.
    fn waiting(&mut self, resource: &str, count: usize) -> Value {
        let mut queue = Value::Null;
        wait_until("the queue has its length", || {
            queue = self.expects(&format!("GET /v1/queue?resource={resource}"), 200, &Value::Null);
            queue["waiting"].as_array().unwrap().len() == count
        });
        queue
    }

    fn control(&mut self, served: &ServerProcess) {
        let mut socket = TcpStream::connect(&served.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        write!(
            socket,
            "GET /ws HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            served.address
        )
        .unwrap();
        let command = json!({
            "type": "control.acquire", "requestId": "r", "clientName": "K1 Composer", "scope": "global",
            "clientInstanceId": "6f0d84a3-8f49-4da8-8c70-0b8f6db5a870",
        });
        let text = command.to_string();
        let length = u16::try_from(text.len()).unwrap().to_be_bytes();
        // One text frame, masked with zeros.
        let head = [&[0x81, 0x80 | 126][..], &length, &[0; 4]].concat();
        socket.write_all(&[&head[..], text.as_bytes()].concat()).unwrap();
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains("control.acquired") {
            let mut part = [0; 4_096];
            let read = socket.read(&mut part).unwrap();
            assert_ne!(read, 0, "{}", String::from_utf8_lossy(&seen));
            seen.extend(&part[..read]);
        }
        drop(socket);
        let line = "GET /v1/leases?resource=control:global";
        wait_until("the lease ends with its connection", || {
            self.expects(line, 200, &Value::Null)["leases"].as_array().unwrap().is_empty()
        });
    }

    fn intents(&mut self) {
        let guard =
            self.expects("POST /api/v3/worker/guard", 200, &json!({ "worker": WORKER, "ttlMs": 24 * HOUR }));
        let guard = guard["guard"].clone();
        let take = |session: &Value| json!({ "guard": guard, "session_id": session, "tuners": 2, "ttlMs": 24 * HOUR });
        let channel = json!({ "serviceRef": CHANNEL, "profileID": "hd", "params": { "audio": "de" } });
        let first = self.intent(&channel);
        self.expects("POST /api/v3/worker/take", 200, &take(&first));
        let running = json!({ "guard": guard, "session_id": first, "process": "pid 17" });
        self.expects("POST /api/v3/worker/running", 200, &running);
        let line = format!("DELETE /api/v3/sessions/{}", first.as_str().unwrap());
        let stopped = self.client.request(&line, None, "").unwrap();
        assert!(stopped.status < 300, "{stopped:?}");
        let finish =
            json!({ "guard": guard, "session_id": first, "reason": "R_STOPPED", "detail": "exit code 0" });
        self.expects("POST /api/v3/worker/finish", 200, &finish);
        let second = self.intent(&json!({ "recordingID": "r-1", "profileID": "sd", "startMs": 90_000 }));
        self.expects("POST /api/v3/worker/take", 200, &take(&second));
        let running = json!({ "guard": guard, "session_id": second, "process": "pid 18" });
        self.expects("POST /api/v3/worker/running", 200, &running);
    }

    fn intent(&mut self, body: &Value) -> Value {
        self.expects("POST /api/v3/intents", 202, body)["session_id"].clone()
    }

    fn work(&mut self) {
        let claim = json!({
            "work_id": "T-17", "actor_id": "planner", "ttlMs": HOUR, "budget": { "tokens": 1_000, "toolCalls": 20 },
            "scope": { "workIds": ["T-17/tests"], "tools": ["search"], "namespaces": [] },
        });
        let parent = self.expects("POST /v1/work/claim", 201, &claim);
        let (id, token) = (&parent["lease"]["id"], &parent["token"]);
        let derive = json!({
            "lease_id": id, "token": token, "work_id": "T-17/tests", "actor_id": "tester", "ttlMs": 60_000,
            "budget": { "tokens": 400 },
        });
        let child = self.expects("POST /v1/work/derive", 201, &derive);
        let spend = json!({
            "lease_id": child["lease"]["id"], "token": child["token"], "tokens": 150, "for": { "tool": "search" },
        });
        self.expects_with("POST /v1/work/spend", Some("call-1"), 200, &spend);
        self.expects("POST /v1/work/renew", 200, &json!({ "lease_id": id, "token": token }));
        self.expects("POST /v1/work/release", 200, &json!({ "lease_id": id, "token": token }));
    }

    fn manifest(&mut self, agent: &str, priority: u64, requests: &[(&str, &str)], wait_ms: u64) -> Value {
        let intent = |(predicate, path): &(&str, &str)| json!({ "predicate": predicate, "object": { "resource_type": "FILE", "path": path } });
        let body = json!({
            "session_id": "s", "agent_id": agent, "priority_timestamp": priority, "ttl": 300_000,
            "waitTimeoutMs": wait_ms, "intents": requests.iter().map(intent).collect::<Vec<_>>(),
        });
        self.expects("POST /v1/manifest", 200, &body)
    }

    fn agents(&mut self) {
        let modes = [
            ("PROVIDES", "api"),
            ("CONSUMES", "schema"),
            ("DEPENDS_ON", "lock"),
            ("DELETES", "old"),
            ("RENAMES", "new"),
        ];
        let wants: Vec<_> = modes.iter().copied().chain([("MUTATES", "src/")]).collect();
        let young = self.manifest("young", 20, &wants, 60_000);
        assert_eq!(young["verdict"], "GRANTED", "{young}");
        let old = self.manifest("old", 10, &[("MUTATES", "src/lib.rs")], 60_000);
        assert_eq!(old["verdict"], "WAIT", "{old}");
        let newer = self.manifest("newer", 30, &[("MUTATES", "src/lib.rs")], 60_000);
        assert_eq!(newer["verdict"], "DIE", "{newer}");
        let hasty = self.manifest("hasty", 5, &[("MUTATES", "src/main.rs")], 1);
        assert_eq!(hasty["verdict"], "WAIT", "{hasty}");
        let state = json!({ "session_id": "s", "state": "EXECUTING" });
        self.expects("POST /v1/agents/young/state", 200, &state);
        sleep(Duration::from_millis(2_100));
        let touch = |path: &str| json!({ "resources": [{ "resource": path, "predicate": "MUTATES" }] });
        self.expects("POST /v1/agents/young/touch", 200, &touch("FILE:src/a.rs"));
        let strayed = self
            .client
            .request("POST /v1/agents/young/touch", None, &touch("FILE:else").to_string())
            .unwrap();
        assert_eq!(strayed.status_and_code().1, "SCOPE_VIOLATION", "{strayed:?}");
        let ids: Vec<_> =
            young["leases"].as_array().unwrap().iter().map(|lease| lease["id"].clone()).collect();
        let named = json!({ "agent_id": "young", "lease_ids": ids });
        self.expects("POST /v1/leases/heartbeat", 200, &named);
        wait_until("the hasty agent gives up", || {
            self.expects("GET /v1/agents/hasty", 200, &Value::Null)["waits"].as_array().unwrap().is_empty()
        });
        self.expects("POST /v1/leases/release", 200, &named);
        let old = self.manifest("old", 10, &[("MUTATES", "src/lib.rs")], 60_000);
        assert_eq!(old["verdict"], "GRANTED", "{old}");
        self.expects("POST /v1/agents/old/state", 200, &json!({ "session_id": "s", "state": "COMPLETED" }));
    }

    fn use_up_lease_time(&mut self, repo: &TestRepository) {
        self.manifest("slow", 40, &[("MUTATES", "docs/")], 60_000);
        wait_until("its time is used up", || !repo.ledger_events("agent.used_up").is_empty());
    }

    /// What is held and waited for when the recording ends.
    fn last_state(&mut self) {
        self.acquire("deploy:staging", "ci-43", 24 * HOUR);
        let claim = json!({ "work_id": "T-18", "actor_id": "planner", "ttlMs": 24 * HOUR, "budget": { "episodes": 3 } });
        self.expects("POST /v1/work/claim", 201, &claim);
        self.manifest("young", 50, &[("MUTATES", "src/")], 60_000);
        self.manifest("old", 45, &[("MUTATES", "src/lib.rs")], 60_000);
        let mut waiter = self.client.reconnect();
        let request =
            json!({ "resource": "deploy:staging", "holder": "ci-44", "ttlMs": HOUR, "waitMs": 600_000 });
        waiter.send("POST /v1/leases", Some("request-3"), &request.to_string()).unwrap();
        self.waiting("deploy:staging", 1);
        sleep(Duration::from_millis(1_500));
    }
}

/// Sessions of coding agents: one edits, one is blocked, a person writes, all end.
fn files(repo: &TestRepository) {
    let (mut one, mut two) = (FakeAgent::start(repo, "one"), FakeAgent::start(repo, "two"));
    one.run_hook(&repo.event_payload("s1", "SessionStart"));
    one.edit_file(repo, "s1", "a", "two\n");
    let mut reads = repo.edit_payload("s2", "b");
    reads["tool_name"] = json!("Read");
    two.run_hook(&reads);
    let blocked = two.run_hook(&repo.edit_payload("s2", "a"));
    assert!(!blocked.is_allowed(), "{blocked:?}");
    assert_eq!(repo.ledger_events("file.blocked").len(), 1);
    wait_until("a violation is noted", || {
        fs::write(repo.file("a"), "by a person\n").unwrap();
        sleep(Duration::from_secs(1));
        !repo.ledger_events("file.violated").is_empty()
    });
    one.run_hook(&repo.event_payload("s1", "Stop"));
    sleep(Duration::from_millis(1_100));
    one.run_hook(&repo.event_payload("s1", "UserPromptSubmit"));
    one.run_hook(&repo.event_payload("s1", "SessionEnd"));
    drop(two);
    drop(one);
    wait_until("every session ends", || {
        repo.ledger_events("file.ended").len() == repo.ledger_events("file.began").len()
    });
}
