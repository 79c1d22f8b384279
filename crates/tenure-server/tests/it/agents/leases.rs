//! How an agent keeps a lease, and how it ends.

use std::time::Duration;

use serde_json::{Value, json};
use tenure_testkit::agents::{lease_ids, manifest, with_field};
use tenure_testkit::{TestServer, json_string, open_event_stream, sleep, wait_until};

/// A lease that lasts two seconds.
#[track_caller]
fn brief(server: &TestServer, agent: &str, priority: u64, path: &str) -> Vec<String> {
    let verdict =
        server.declare(&with_field(manifest(agent, priority, &[("MUTATES", path)]), "ttl", json!(2_000)));
    assert_eq!(verdict["verdict"], json!("GRANTED"), "{verdict}");
    lease_ids(&verdict)
}

fn state<'a>(truth: &'a Value, id: &str) -> &'a str {
    truth[id]["state"].as_str().unwrap()
}

// S3-3, S3-7
#[test]
fn the_ttl_of_an_agents_lease_is_limited() {
    let server = TestServer::start();
    for ttl in [0, 999] {
        let refused = server
            .post("/v1/manifest", &with_field(manifest("a", 1, &[("MUTATES", "x")]), "ttl", json!(ttl)));
        refused.expect_problem(400, "TTL_OUT_OF_RANGE");
    }
    for (index, (requested, granted)) in
        [(1_000, 1_000), (300_000, 300_000), (300_001, 300_000), (u64::MAX, 300_000)].into_iter().enumerate()
    {
        let path = format!("file-{index}");
        let verdict =
            server.declare(&with_field(manifest("a", 1, &[("MUTATES", &path)]), "ttl", json!(requested)));
        let lease = &verdict["leases"][0];
        assert_eq!((&lease["ttl"], &lease["remainingMs"]), (&json!(granted), &json!(granted)), "{verdict}");
        // A heartbeat gives the same again, and no more.
        let beaten = server.heartbeat("a", &lease_ids(&verdict));
        assert_eq!(beaten["renewed"][0]["remainingMs"], json!(granted), "{beaten}");
    }
}

// S3-11, S3-13, S3-20
#[test]
fn a_heartbeat_renews_all_leases_for_their_ttl() {
    let server = TestServer::start();
    let leases = server.declare_mutations("a", 1, &["x", "y"]);
    let before = server.reconcile("a", &leases);
    sleep(Duration::from_millis(20));
    let beaten = server.heartbeat("a", &leases);
    assert_eq!(beaten["rejected"], json!([]));
    for (index, id) in leases.iter().enumerate() {
        let renewed = &beaten["renewed"][index];
        assert_eq!(
            (&renewed["id"], &renewed["remainingMs"]),
            (&json!(id), &json!(60_000)),
            "in the order asked"
        );
        assert!(json_string(&renewed["expires_at"]) > json_string(&before[id]["expires_at"]), "{beaten}");
        assert_eq!(state(&server.reconcile("a", &leases), id), "ACTIVE");
    }
}

// S3-14, S3-16, S3-22, S3-24, S3-25, S3-29
#[test]
fn a_lease_without_heartbeats_expires_and_cannot_be_renewed() {
    let server = TestServer::start();
    let mut stream = open_event_stream(&server, "/v1/events", None);
    let leases = brief(&server, "a", 1, "x");
    let other = server.declare_mutations("a", 1, &["y"]);
    // Nobody is asked, and nobody has to do anything: it is announced.
    while stream.next().unwrap().event_type() != "lease.expired" {}
    let requested = [leases[0].clone(), other[0].clone(), "lease-of-nobody".to_owned()];
    let beaten = server.heartbeat("a", &requested);
    assert_eq!(beaten["renewed"][0]["id"], json!(other[0]), "one that is over takes nothing from the others");
    let rejected =
        json!([{ "id": leases[0], "code": "EXPIRED" }, { "id": "lease-of-nobody", "code": "NOT_FOUND" }]);
    assert_eq!(beaten["rejected"], rejected);
    let truth = server.reconcile("a", &leases);
    assert_eq!((state(&truth, &leases[0]), &truth[&leases[0]]["held"]), ("EXPIRED", &json!(false)));
    // Neither does saying that it restarts.
    assert_eq!(server.report_agent_state("a", "DIE_RESTART").status, 200);
    assert_eq!(state(&server.reconcile("a", &leases), &leases[0]), "EXPIRED");
    // Somebody else gets it at once, however young.
    server.declare_mutations("b", 99, &["x"]);
    let truth = server.reconcile("a", &leases);
    assert_eq!((&truth[&leases[0]]["end"], &truth[&leases[0]]["heldBy"]), (&json!("EXPIRED"), &json!(["b"])));
}

// S3-25
#[test]
fn a_lease_expires_exactly_when_no_time_remains() {
    let server = TestServer::start();
    let leases = brief(&server, "a", 1, "x");
    // As long as anybody is told that there is time left, there is; then there is none, and never again.
    let mut last = 2_000;
    wait_until("over", || {
        let truth = server.reconcile("a", &leases)[&leases[0]].clone();
        let remaining = truth["remainingMs"].as_u64().unwrap();
        assert!(remaining <= last, "time does not come back: {truth}");
        last = remaining;
        assert_eq!(truth["held"], json!(truth["state"] == "ACTIVE"));
        truth["state"] == "EXPIRED"
    });
    assert_eq!(server.heartbeat("a", &leases)["rejected"][0]["code"], json!("EXPIRED"));
}

// S3-15, S3-21, S3-23, S3-28
#[test]
fn releasing_leases_is_idempotent() {
    let server = TestServer::start();
    let leases = server.declare_mutations("a", 1, &["x", "y"]);
    let mut requested = leases.clone();
    requested.push(leases[0].clone());
    requested.push("unknown".to_owned());
    for _ in 0..2 {
        let released = server.release_agent_leases("a", &requested);
        assert_eq!(released, json!({ "released": leases, "unknown": ["unknown"] }));
    }
    let head = server.ledger_head();
    server.release_agent_leases("a", &leases);
    assert_eq!(server.ledger_head(), head, "giving back what is over is no event");
    assert_eq!(server.heartbeat("a", &leases)["rejected"][0]["code"], json!("RELEASED"));
    let truth = server.reconcile("a", &leases);
    assert_eq!((state(&truth, &leases[0]), &truth[&leases[0]]["end"]), ("RELEASED", &json!("COMPLETED")));
    // Who wants it again gets another one.
    assert_ne!(server.declare_mutations("a", 1, &["x"]), leases[..1]);
}

// S3-28
#[test]
fn releasing_an_expired_lease_succeeds() {
    let server = TestServer::start();
    let leases = brief(&server, "a", 1, "x");
    wait_until("over", || state(&server.reconcile("a", &leases), &leases[0]) == "EXPIRED");
    assert_eq!(server.release_agent_leases("a", &leases)["released"], json!(leases));
    assert_eq!(state(&server.reconcile("a", &leases), &leases[0]), "EXPIRED", "as it was");
}

// S3-8
#[test]
fn die_restart_extends_leases_by_fifteen_seconds_once() {
    let server = TestServer::start();
    let leases = brief(&server, "a", 1, "x");
    let silent = brief(&server, "b", 2, "y");
    let remaining_ms = |answer: &Value| answer["leases"][0]["remainingMs"].as_u64().unwrap();
    let graced = server.report_agent_state("a", "DIE_RESTART").json();
    assert_eq!(graced["state"], json!("DIE_RESTART"));
    assert!((15_000..=17_000).contains(&remaining_ms(&graced)), "{graced}");
    let again = server.report_agent_state("a", "DIE_RESTART").json();
    assert!(remaining_ms(&again) <= remaining_ms(&graced), "only once: {again}");
    wait_until("over", || state(&server.reconcile("b", &silent), &silent[0]) == "EXPIRED");
    assert_eq!(state(&server.reconcile("a", &leases), &leases[0]), "ACTIVE", "though a heartbeat was missed");
    // When it is back it goes on as before: a heartbeat never takes anything away.
    let beaten = server.heartbeat("a", &leases);
    assert!(beaten["renewed"][0]["remainingMs"].as_u64().unwrap() > 10_000, "{beaten}");
}

// S3-17, S3-18
#[test]
fn reconcile_reports_exactly_the_requested_leases_of_the_agent() {
    let server = TestServer::start();
    let own = server.declare_mutations("a", 1, &["x", "y", "z"]);
    let foreign = server.declare_mutations("b", 2, &["w"]);
    server.release_agent_leases("a", &own[1..2]);
    let requested = [own[1].clone(), own[0].clone(), foreign[0].clone(), "lease-x".to_owned()];
    let truth = server.reconcile("a", &requested);
    assert_eq!(truth.as_object().unwrap().len(), 4, "not the one that was not asked for: {truth}");
    let held = &truth[&own[0]];
    assert_eq!((&held["held"], &held["state"]), (&json!(true), &json!("ACTIVE")));
    assert_eq!((&held["resource"], &held["predicate"]), (&json!("FILE:x"), &json!("MUTATES")));
    assert!((59_000..=60_000).contains(&held["remainingMs"].as_u64().unwrap()), "{held}");
    assert_eq!((&truth[&own[1]]["held"], &truth[&own[1]]["end"]), (&json!(false), &json!("COMPLETED")));
    assert!(json_string(&truth[&own[1]]["ended_at"]).ends_with('Z'));
    for unknown in [&foreign[0], "lease-x"] {
        assert_eq!(truth[unknown], json!({ "held": false, "state": "UNKNOWN", "remainingMs": 0 }));
    }
    // Also of those whom nobody knows.
    assert_eq!(server.reconcile("stranger", &own)[&own[0]]["state"], json!("UNKNOWN"));
    assert_eq!(server.reconcile("a", &[]), json!({}));
}

// S3-18
#[test]
fn reconcile_after_release_never_reports_a_lease_as_held() {
    let server = TestServer::start();
    // Many ask at once; whoever was told that its lease is given back is never told that it has it.
    std::thread::scope(|scope| {
        for number in 0..4_u64 {
            let server = &server;
            scope.spawn(move || {
                let agent = format!("agent-{number}");
                for round in 0..10 {
                    let lease = server.declare_mutations(&agent, number, &[&format!("{number}/{round}")]);
                    assert_eq!(state(&server.reconcile(&agent, &lease), &lease[0]), "ACTIVE");
                    server.release_agent_leases(&agent, &lease);
                    assert_eq!(state(&server.reconcile(&agent, &lease), &lease[0]), "RELEASED");
                }
            });
        }
    });
}

// S3-26
#[test]
fn expiry_uses_the_servers_clock_and_not_the_agents_timestamp() {
    let server = TestServer::start();
    let far = (1 << 53) - 1;
    let early = server.declare(&manifest("early", 0, &[("MUTATES", "x")]));
    let late = server.declare(&manifest("late", far, &[("MUTATES", "y")]));
    for verdict in [&early, &late] {
        assert_eq!(verdict["leases"][0]["remainingMs"], json!(60_000), "{verdict}");
    }
    let (first, second) =
        (json_string(&early["leases"][0]["expires_at"]), json_string(&late["leases"][0]["expires_at"]));
    assert_eq!(first[..16], second[..16], "both end in a minute from now");
}

// O-18
#[test]
fn leases_of_another_principals_agent_are_not_accessible() {
    let server = TestServer::start();
    let lease = server.declare_mutations("a", 1, &["x"]);
    let secret = server.create_token("other", &["leases:write", "leases:read"], &[]);
    let body = json!({ "agent_id": "a", "lease_ids": lease });
    for what in ["heartbeat", "release", "reconcile"] {
        let refused = server.request_with_token(&secret, &format!("POST /v1/leases/{what}"), &body);
        refused.expect_problem(403, "HOLDER_TAKEN");
    }
    let refused =
        server.request_with_token(&secret, "POST /v1/manifest", &manifest("a", 1, &[("MUTATES", "y")]));
    refused.expect_problem(403, "HOLDER_TAKEN");
    let own = json!({ "agent_id": "mine", "lease_ids": lease });
    let response = server.request_with_token(&secret, "POST /v1/leases/release", &own).json();
    assert_eq!(response, json!({ "released": [], "unknown": lease }));
    assert_eq!(state(&server.reconcile("a", &lease), &lease[0]), "ACTIVE");
}
