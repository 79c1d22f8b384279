//! What is refused before anything is decided, and why.

use serde_json::{Value, json};
use tenure_testkit::agents::{intent, manifest, with_field};
use tenure_testkit::server::set_segment_size;
use tenure_testkit::{TestServer, json_string};

/// The reason why a manifest is not even read.
#[track_caller]
fn refused(server: &TestServer, manifest: &Value) -> String {
    json_string(&server.post("/v1/manifest", manifest).expect_problem(400, "INVALID")["detail"])
}

fn one() -> Value {
    manifest("a", 1, &[("MUTATES", "x")])
}

// O-18
#[test]
fn manifest_fields_at_their_limits_are_accepted_and_beyond_are_rejected() {
    // So many leases at once take larger files than those of the other tests.
    let server = TestServer::start_with(|settings| set_segment_size(settings, 1 << 20));
    let long = "n".repeat(256);
    let path = "p".repeat(4_096);
    let at_limits = with_field(
        with_field(manifest(&long, 1, &[("MUTATES", &path)]), "session_id", json!(long)),
        "ttl",
        json!(1_000),
    );
    let verdict = server.declare(&at_limits);
    assert_eq!(verdict["leases"][0]["resource"], json!(format!("FILE:{path}")));
    assert_eq!(server.agent(&long)["session_id"], json!(long));
    for (field, value) in [
        ("agent_id", json!("n".repeat(257))),
        ("agent_id", json!("")),
        ("agent_id", json!("a\nb")),
        ("session_id", json!("n".repeat(257))),
        ("session_id", json!("")),
        ("waitTimeoutMs", json!(0)),
        ("intents", json!([])),
        ("intents", json!("x")),
        ("priority_timestamp", json!("1")),
        ("priority_timestamp", json!(1.5)),
        ("ttl", json!(-1)),
    ] {
        let reason = refused(&server, &with_field(one(), field, value));
        assert!(reason.starts_with(&format!("{field}: ")), "{field}: {reason}");
    }
    for path in ["", &"p".repeat(4_097), "a\u{0}b", "../a", "a/../b", "."] {
        let reason = refused(&server, &manifest("a", 1, &[("CONSUMES", "ok"), ("MUTATES", path)]));
        assert!(reason.starts_with("intents[1].object.path: "), "{reason}");
    }
    let many = |count: usize| {
        let intents: Vec<_> =
            (0..count).map(|number| intent("CONSUMES", &format!("file-{number}"))).collect();
        with_field(one(), "intents", json!(intents))
    };
    assert!(refused(&server, &many(257)).starts_with("intents: has 257 entries"));
    assert_eq!(server.declare(&many(256))["leases"].as_array().unwrap().len(), 256);
}

#[test]
fn an_invalid_intent_is_reported_with_its_index() {
    let server = TestServer::start();
    let third = |field: &str, value: Value| {
        let mut wrong = manifest("a", 1, &[("CONSUMES", "x"), ("CONSUMES", "y"), ("MUTATES", "z")]);
        wrong["intents"][2][field] = value;
        wrong
    };
    for (field, value, place) in [
        ("predicate", json!("mutates"), "intents[2].predicate: "),
        ("predicate", json!("EXCLUSIVE"), "intents[2].predicate: "),
        ("object", json!({ "resource_type": "file", "path": "z" }), "intents[2].object.resource_type: "),
        ("object", json!({ "resource_type": "FILE" }), "intents[2].object.path: is missing"),
        ("object", json!("FILE:z"), "intents[2].object: "),
        ("confidence", json!(1.01), "intents[2].confidence: "),
        ("confidence", json!("sure"), "intents[2].confidence: "),
        ("timestamp", json!(0.5), "intents[2].timestamp: "),
        ("session_id", json!("another"), "intents[2].session_id: "),
        ("id", json!("i".repeat(257)), "intents[2].id: "),
        ("colour", json!("red"), "intents[2].\"colour\": is not a field"),
    ] {
        let reason = refused(&server, &third(field, value));
        assert!(reason.starts_with(place), "{place} is not in {reason}");
    }
    for (field, value) in [
        ("confidence", json!(0)),
        ("confidence", json!(1)),
        ("session_id", json!("s")),
        ("subject", json!("me")),
    ] {
        assert_eq!(server.post("/v1/manifest", &third(field, value)).status, 200, "{field}");
    }
    let mut ageless = one();
    ageless.as_object_mut().unwrap().remove("priority_timestamp");
    assert!(refused(&server, &ageless).starts_with("priority_timestamp: is missing, and no intent"));
    assert!(refused(&server, &with_field(one(), "pass", json!("word"))).contains("\"pass\": is not a field"));
}

#[test]
fn equivalent_paths_are_merged_into_one_lease_of_the_strongest_mode() {
    let server = TestServer::start();
    let intents =
        [("CONSUMES", "./a//b"), ("PROVIDES", "other"), ("MUTATES", "a/./b"), ("DEPENDS_ON", "a/b")];
    let verdict = server.declare(&manifest("a", 1, &intents));
    let leases = verdict["leases"].as_array().unwrap();
    let shown: Vec<_> = leases
        .iter()
        .map(|lease| (json_string(&lease["resource"]), json_string(&lease["predicate"])))
        .collect();
    let expected = [("FILE:a/b", "MUTATES"), ("FILE:other", "PROVIDES")];
    assert_eq!(shown, expected.map(|(name, way)| (name.to_owned(), way.to_owned())));
    let state = server.get("/v1/resource/FILE:.%2Fa%2F%2Fb/state").json();
    assert_eq!((&state["resource"], &state["held"]), (&json!("FILE:a/b"), &json!(true)));
    // One that begins with a slash is another, as everywhere.
    let absolute = server.declare(&manifest("b", 2, &[("MUTATES", "/a/b")]));
    assert_eq!(absolute["verdict"], json!("GRANTED"));
}

// O-19
#[test]
fn invalid_agent_requests_are_reported_with_the_field() {
    let server = TestServer::start();
    server.declare_mutations("a", 1, &["x"]);
    let invalid = |path: &str, body: Value, place: &str| {
        let reason = json_string(&server.post(path, &body).expect_problem(400, "INVALID")["detail"]);
        assert!(reason.starts_with(place), "{path}: {place} is not in {reason}");
    };
    for what in ["heartbeat", "release", "reconcile"] {
        let path = format!("/v1/leases/{what}");
        invalid(&path, json!({ "agent_id": "a" }), "lease_ids: is missing");
        invalid(&path, json!({ "agent_id": "a", "lease_ids": [1] }), "lease_ids[0]: must be a string");
        invalid(&path, json!({ "agent_id": "", "lease_ids": [] }), "agent_id: ");
        invalid(
            &path,
            json!({ "agent_id": "a", "lease_ids": vec!["x"; 1_025] }),
            "lease_ids: has 1025 entries",
        );
        invalid(&path, json!({ "agent_id": "a", "lease_ids": [], "more": 1 }), "\"more\": ");
    }
    let state = "/v1/agents/a/state";
    invalid(state, json!({ "session_id": "s", "state": "SLEEPING" }), "state: must be one of PLANNING");
    invalid(state, json!({ "state": "PLANNING" }), "session_id: is missing");
    let digest = |field: &str, value: Value| {
        let mut digest = super::states::digest("a", 1, 0, &[]);
        digest[field] = value;
        json!({ "session_id": "s", "state": "PLANNING", "digest": digest })
    };
    invalid(state, digest("version", json!("2.0")), "digest.version: ");
    let identity = json!({ "agent_id": "b", "priority_timestamp": 1, "epoch": 0 });
    invalid(state, digest("identity", identity), "digest.identity.agent_id: ");
    invalid(
        state,
        digest("identity", json!({ "agent_id": "a" })),
        "digest.identity.priority_timestamp: is missing",
    );
    let recovery = json!({ "last_phase": "?", "pending_intents": [] });
    invalid(state, digest("recovery", recovery), "digest.recovery.last_phase: ");
    let object = json!({ "resource_type": "FILE", "path": "x" });
    let intents =
        json!({ "last_phase": "PLANNING", "pending_intents": [{ "predicate": "?", "object": object }] });
    invalid(state, digest("recovery", intents), "digest.recovery.pending_intents[0].predicate: ");
    let touch = "/v1/agents/a/touch";
    invalid(touch, json!({ "resources": [] }), "resources: is empty");
    let wrong = json!({ "resources": [{ "resource": "x", "predicate": "MUTATES" }] });
    invalid(touch, wrong, "resources[0].resource: must be TYPE:path");
    server.get("/v1/resource/FILE:..%2Fa/state").expect_problem(400, "INVALID");
    server.get("/v1/agents?limit=0").expect_problem(400, "INVALID");
    server.get("/v1/agents/nobody").expect_problem(404, "NOT_FOUND");
    server.touch("nobody", "MUTATES", &["x"]).expect_problem(404, "NOT_FOUND");
}
