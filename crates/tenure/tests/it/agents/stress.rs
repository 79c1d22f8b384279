//! Thirty-two agents that want to touch the same things, over HTTP, and what the ledger says of it afterwards.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};
use tenure_testkit::{ServerProcess, TestClient, now, serve_command, sleep};

use crate::agents::ledger::{LedgerStatistics, check_events};
use crate::histories::fixture::Rng;
use crate::intents::ledger::LedgerEvents;

const AGENTS: u64 = 32;
const PATHS: [&str; 12] = [
    "src/",
    "src/a.rs",
    "src/b.rs",
    "src/*.rs",
    "src/deep/",
    "src/deep/c.rs",
    "doc/",
    "doc/guide.md",
    "doc/*",
    "Cargo.toml",
    "Cargo.lock",
    "README.md",
];
const PREDICATES: [&str; 6] = ["PROVIDES", "CONSUMES", "DEPENDS_ON", "MUTATES", "DELETES", "RENAMES"];

// O-17, S3-5: no two hold what does not go together, nobody is stuck, every wait ends, and everybody gets through.
#[test]
fn agents_make_progress_without_conflicts_for_some_seconds() {
    let figures = play(Duration::from_secs(4));
    assert!(figures.granted >= AGENTS, "{figures:?}");
}

// O-17, S3-5
#[test]
fn long_agents_make_progress_without_conflicts_for_a_minute() {
    let figures = play(Duration::from_secs(60));
    println!("{figures:?}");
    assert!(figures.granted >= 10 * AGENTS && figures.queued > 0 && figures.aborts > 0, "{figures:?}");
}

fn play(duration: Duration) -> LedgerStatistics {
    let folder = tempfile::tempdir().unwrap();
    let mut command = serve_command(folder.path());
    // They come back soon, so that much happens in little time.
    command.env("TENURE_AGENTS_BACKOFF_MS", "10").env("TENURE_AGENTS_LONGEST_BACKOFF_MS", "200");
    let served = ServerProcess::start(&mut command);
    let data = folder.path().join("data");
    let end = now() + duration;
    let reported = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for number in 0..AGENTS {
            let client = served.client();
            let reported = &reported;
            scope.spawn(move || {
                let mut agent =
                    SimulatedAgent { client, number, rng: Rng::new(number + 1), fences: Vec::new() };
                let mut attempt = 0;
                while now() < end {
                    attempt += 1;
                    agent.attempt(attempt);
                }
                reported.lock().unwrap().push(agent.fences);
            });
        }
    });
    served.stop();
    let reported: Vec<Vec<u64>> = reported.into_inner().unwrap();
    check_events(&LedgerEvents::read(folder.path(), &data), &reported)
}

/// One agent, which does one thing after the other and keeps to the protocol.
struct SimulatedAgent {
    client: TestClient,
    number: u64,
    rng: Rng,
    /// Every fence that it was told of, in the order in which it was.
    fences: Vec<u64>,
}

impl SimulatedAgent {
    /// One attempt: it declares, works, sometimes declares more, and lets go. It gives up nothing: it asks until it has it.
    fn attempt(&mut self, attempt: u64) {
        // Many are of the same age, and whoever gets on becomes younger.
        let priority = 1 + attempt * 10 + self.rng.below(10);
        let mut leases = self.declare_until_granted(priority, &mut Vec::new());
        for _ in 0..self.rng.below(3) {
            sleep(Duration::from_millis(self.rng.below(20)));
            let beat = self.ask("/v1/leases/heartbeat", &self.about(&leases));
            // What it lost to an older one is told, and by its own cause.
            let kept: Vec<Value> = ids(&beat["renewed"]);
            leases.retain(|lease| kept.contains(lease));
            let more = self.declare_until_granted(priority, &mut leases);
            leases.extend(more.into_iter().filter(|lease| !leases.contains(lease)).collect::<Vec<_>>());
        }
        if self.rng.percent(50) {
            self.ask("/v1/leases/release", &self.about(&leases));
        }
        let done = json!({ "session_id": "s", "state": "COMPLETED" });
        let line = format!("/v1/agents/agent-{:02}/state", self.number);
        self.ask(&line, &done);
    }

    /// Asks until everything is granted. What it holds may end on the way: who dies keeps only what no older one waits for.
    fn declare_until_granted(&mut self, priority: u64, held: &mut Vec<Value>) -> Vec<Value> {
        let manifest = self.manifest(priority);
        let started_at = now();
        loop {
            // An agent that never gets through is what this is about: a minute is beyond everything that is waited for here.
            assert!(now() - started_at < Duration::from_secs(60), "agent {} is stuck", self.number);
            let verdict = self.ask("/v1/manifest", &manifest);
            match verdict["verdict"].as_str().unwrap() {
                "GRANTED" => {
                    let leases = verdict["leases"].as_array().unwrap();
                    self.fences.extend(leases.iter().map(|lease| lease["fence"].as_u64().unwrap()));
                    return ids(&verdict["leases"]);
                }
                "WAIT" => sleep(Duration::from_millis(5 + self.rng.below(20))),
                "DIE" => {
                    let ended = verdict["ended"].as_array().unwrap();
                    held.retain(|lease| !ended.contains(lease));
                    sleep(Duration::from_millis(verdict["retryAfterMs"].as_u64().unwrap()));
                }
                other => panic!("{other}"),
            }
        }
    }

    fn manifest(&mut self, priority: u64) -> Value {
        let mut intents = Vec::new();
        for _ in 0..1 + self.rng.below(3) {
            let path = PATHS[self.rng.index(PATHS.len())];
            let predicate = PREDICATES[self.rng.index(PREDICATES.len())];
            intents
                .push(json!({ "predicate": predicate, "object": { "resource_type": "FILE", "path": path } }));
        }
        json!({
            "session_id": "s",
            "agent_id": format!("agent-{:02}", self.number),
            "priority_timestamp": priority,
            "ttl": 10_000,
            "waitTimeoutMs": 300 + self.rng.below(3_000),
            "intents": intents,
        })
    }

    fn about(&self, leases: &[Value]) -> Value {
        json!({ "agent_id": format!("agent-{:02}", self.number), "lease_ids": leases })
    }

    fn ask(&mut self, path: &str, body: &Value) -> Value {
        let answer = self.client.request(&format!("POST {path}"), None, &body.to_string()).unwrap();
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.body
    }
}

fn ids(leases: &Value) -> Vec<Value> {
    leases.as_array().unwrap().iter().map(|lease| lease["id"].clone()).collect()
}
