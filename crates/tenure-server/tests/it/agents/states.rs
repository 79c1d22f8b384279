//! What agents say that they do, and what is taken from those who keep what they do not use.

use std::time::Duration;

use serde_json::{Value, json};
use tenure_testkit::agents::{intent, manifest};
use tenure_testkit::{TestServer, json_string, open_event_stream, sleep, wait_until};

/// What an agent remembers of itself.
pub fn digest(agent: &str, priority: u64, epoch: u64, intents: &[(&str, &str)]) -> Value {
    let intents: Vec<_> = intents.iter().map(|(predicate, path)| intent(predicate, path)).collect();
    json!({
        "version": "1.0",
        "identity": { "agent_id": agent, "priority_timestamp": priority, "epoch": epoch },
        "recovery": { "last_phase": "EXECUTING", "pending_intents": intents },
    })
}

// O-19
#[test]
fn completed_ends_the_attempt_and_its_leases() {
    let server = TestServer::start();
    for state in ["PLANNING", "ACQUIRING", "EXECUTING", "PAUSED", "VERIFYING"] {
        let response = server.report_agent_state("a", state);
        assert_eq!((response.status, &response.json()["state"]), (200, &json!(state)));
        assert_eq!(server.agent("a")["state"], json!(state));
    }
    let lease = server.declare_mutations("a", 10, &["x"]);
    let done = server.report_agent_state("a", "COMPLETED").json();
    assert_eq!(done["leases"], json!([]));
    assert_eq!(server.reconcile("a", &lease)[&lease[0]]["end"], json!("COMPLETED"));
}

// O-19, S3-18
#[test]
fn a_digest_is_accepted_for_the_latest_epoch_and_does_not_restore_leases() {
    let server = TestServer::start();
    server.declare_mutations("a", 10, &["held", "lost"]);
    server.declare_mutations("b", 20, &["blocked"]);
    let leases = server.agent("a")["leases"].as_array().unwrap().clone();
    let lost = json_string(&leases[1]["id"]);
    assert_eq!(server.report_agent_state("a", "DIE_RESTART").status, 200);
    server.release_agent_leases("a", std::slice::from_ref(&lost));
    let pending = [("MUTATES", "held"), ("MUTATES", "lost"), ("CONSUMES", "blocked")];
    let report = |epoch: u64, priority: u64| {
        let digest = digest("a", priority, epoch, &pending);
        let body = json!({ "session_id": "s2", "state": "PAUSED", "digest": digest });
        server.post("/v1/agents/a/state", &body)
    };
    let back = report(1, 10).json();
    assert_eq!((&back["epoch"], &back["session_id"]), (&json!(1), &json!("s2")));
    let now: Vec<_> =
        back["pending"].as_array().unwrap().iter().map(|each| json_string(&each["now"])).collect();
    assert_eq!(now, ["HELD", "FREE", "BLOCKED"]);
    assert_eq!(
        server.reconcile("a", std::slice::from_ref(&lost))[&lost]["held"],
        json!(false),
        "whatever it remembers"
    );
    report(0, 10).expect_problem(409, "DIGEST_STALE");
    report(2, 11).expect_problem(409, "PRIORITY_FIXED");
    assert_eq!(report(2, 10).json()["epoch"], json!(2));
}

// S3-33
#[test]
fn leases_held_beyond_the_lease_time_are_revoked() {
    let settings = |settings: &mut tenure_server::Settings| settings.agents.lease_time_ms = Some(1_000);
    let server = TestServer::start_with(settings);
    let mut stream = open_event_stream(&server, "/v1/events?type=*", None);
    let leases = server.declare_mutations("a", 10, &["x"]);
    wait_until("used up", || server.heartbeat("a", &leases)["renewed"] == json!([]));
    let revoked = loop {
        let message = stream.next().unwrap();
        if message.event_type() == "lease.revoked" {
            break message;
        }
    };
    assert!(json_string(&revoked.data["detail"]).starts_with("quota: "), "{revoked:?}");
    let used = stream.expect("agent.used_up").data;
    assert_eq!(used["agent"]["agent_id"], json!("a"));
    assert!(used["agent"]["heldMs"].as_u64().unwrap() >= 1_000, "{used}");
    let refused = server.post("/v1/manifest", &manifest("a", 10, &[("MUTATES", "x")]));
    refused.expect_problem(429, "LEASE_TIME_USED");
    assert_eq!(server.declare_mutations("a", 11, &["x"]).len(), 1);
}

// S3-34
#[test]
fn a_lease_that_is_not_touched_is_revoked_as_idle() {
    let settings = |settings: &mut tenure_server::Settings| settings.agents.idle_ms = Some(3_000);
    let server = TestServer::start_with(settings);
    let mut stream = open_event_stream(&server, "/v1/events", None);
    let intents = [("MUTATES", "used"), ("MUTATES", "unused"), ("CONSUMES", "read")];
    let verdict = server.declare(&manifest("a", 10, &intents));
    let leases = tenure_testkit::agents::lease_ids(&verdict);
    // Heartbeats alone do not show that it is used.
    wait_until("taken", || {
        assert_eq!(server.touch("a", "MUTATES", &["used"]).status, 200);
        server.heartbeat("a", &leases)["rejected"] != json!([])
    });
    let truth = server.reconcile("a", &leases);
    let held: Vec<_> = leases.iter().map(|id| truth[id]["held"].clone()).collect();
    assert_eq!(held, [json!(true), json!(false), json!(true)], "who only reads changes nothing: {truth}");
    let revoked = loop {
        let message = stream.next().unwrap();
        if message.event_type() == "lease.revoked" {
            break message.data;
        }
    };
    assert_eq!(revoked["lease"]["id"], json!(leases[1]));
    assert!(json_string(&revoked["detail"]).starts_with("idle: "), "{revoked}");
}

// O-19
#[test]
fn touching_without_a_lease_is_rejected_and_published_once() {
    let server = TestServer::start();
    let mut stream = open_event_stream(&server, "/v1/events?type=agent.strayed", None);
    let wants = [("MUTATES", "src/"), ("CONSUMES", "docs/")];
    assert_eq!(server.declare(&manifest("a", 10, &wants))["verdict"], json!("GRANTED"));
    let within = server.touch("a", "MUTATES", &["src/lib.rs", "src/deep/mod.rs"]);
    assert_eq!((within.status, within.json()), (200, json!({ "within": 2 })));
    assert_eq!(server.touch("a", "CONSUMES", &["docs/a.md", "src/lib.rs"]).status, 200);
    for _ in 0..2 {
        let beyond = server.touch("a", "MUTATES", &["src/lib.rs", "docs/a.md", "Cargo.toml"]);
        let problem = beyond.expect_problem(409, "SCOPE_VIOLATION");
        let outside = json!([
            { "resource": "FILE:docs/a.md", "predicate": "MUTATES" },
            { "resource": "FILE:Cargo.toml", "predicate": "MUTATES" },
        ]);
        assert_eq!(problem["outside"], outside);
    }
    let published = stream.expect("agent.strayed").data;
    assert_eq!(published["agent"]["outside"][0]["resource"], json!("FILE:docs/a.md"), "{published}");
    assert_eq!(server.agent("a")["outside"], json!(["FILE:docs/a.md", "FILE:Cargo.toml"]));
    assert_eq!(crate::subscribers::metric(&server, "tenure_agent_strays_total"), 2, "once each");
    // A lease that is over permits nothing.
    server.report_agent_state("a", "COMPLETED");
    server.touch("a", "CONSUMES", &["docs/a.md"]).expect_problem(409, "SCOPE_VIOLATION");
}

#[test]
fn an_agent_is_known_between_two_attempts() {
    let server = TestServer::start();
    server.declare_mutations("a", 10, &["x"]);
    server.report_agent_state("a", "COMPLETED");
    sleep(Duration::from_millis(20));
    let known = server.agent("a");
    assert_eq!((&known["priority_timestamp"], &known["deaths"]), (&json!(10), &json!(0)));
    let all = server.get("/v1/agents").json();
    assert_eq!(all["agents"].as_array().unwrap().len(), 1);
}
