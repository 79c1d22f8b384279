//! Who sees what of agents, and who waits for whom.

use serde_json::{Value, json};
use tenure_testkit::agents::{manifest, with_field};
use tenure_testkit::{
    TestServer, json_string, open_event_stream, open_event_stream_as, queued_lease_request,
};

fn verdict(server: &TestServer, agent: &str, priority: u64, path: &str) -> String {
    json_string(&server.declare(&manifest(agent, priority, &[("MUTATES", path)]))["verdict"])
}

fn pair(one: &str, other: &str) -> (String, String) {
    (one.to_owned(), other.to_owned())
}

// O-17
#[test]
fn two_agents_with_crossed_requests_do_not_deadlock() {
    // Whichever of the two asks first.
    for old_asks_first in [true, false] {
        let server = TestServer::start();
        server.declare_mutations("old", 10, &["x"]);
        server.declare_mutations("young", 20, &["y"]);
        if old_asks_first {
            assert_eq!(verdict(&server, "old", 10, "y"), "WAIT");
            assert_eq!(server.contention_edges(), [pair("old", "young")]);
            assert_eq!(verdict(&server, "young", 20, "x"), "DIE");
        } else {
            assert_eq!(verdict(&server, "young", 20, "x"), "DIE");
            assert_eq!(server.contention_edges(), []);
            assert_eq!(verdict(&server, "old", 10, "y"), "WAIT");
            assert_eq!(server.contention_edges(), [pair("old", "young")]);
            // It comes back, as it was told to, and loses what the old one waits for.
            assert_eq!(verdict(&server, "young", 20, "x"), "DIE");
        }
        assert_eq!(server.contention_edges(), [], "the old one has both");
        assert_eq!(server.agent("old")["leases"].as_array().unwrap().len(), 2);
    }
}

// O-17
#[test]
fn a_plain_request_under_an_agents_name_cannot_form_a_wait_cycle() {
    let server = TestServer::start();
    server.declare_mutations("old", 10, &["x"]);
    server.declare_mutations("young", 20, &["y"]);
    assert_eq!(verdict(&server, "old", 10, "y"), "WAIT");
    // An agent waits for what it has, so it does not get in line.
    let refused = server.post("/v1/leases", &queued_lease_request("FILE:x", "young", 60_000, 60_000));
    assert_eq!(refused.expect_problem(409, "HELD")["holder"], json!("old"));
    assert_eq!(server.contention_edges(), [pair("old", "young")]);
    server.report_agent_state("old", "ABORTED");
    // The other way round: who is in line is not waited for.
    server.declare_mutations("old", 11, &["x"]);
    let waiting = server.enqueue(None, &queued_lease_request("FILE:x", "young", 60_000, 60_000), 1);
    assert_eq!(server.contention_edges(), [pair("young", "old")]);
    assert_eq!(verdict(&server, "old", 11, "y"), "DIE");
    assert_eq!(server.contention_edges(), [pair("young", "old")]);
    drop(waiting);
}

// O-19
#[test]
fn the_contention_graph_reports_blockers_and_reasons() {
    let server = TestServer::start();
    server.declare_mutations("young", 20, &["src/"]);
    let request =
        with_field(manifest("old", 10, &[("CONSUMES", "src/lib.rs")]), "waitTimeoutMs", json!(60_000));
    assert_eq!(server.declare(&request)["verdict"], json!("WAIT"));
    assert_eq!(server.report_agent_state("young", "EXECUTING").status, 200);
    server.acquire("db:1", "first", 60_000);
    let _second = server.enqueue(None, &queued_lease_request("db:1", "second", 60_000, 60_000), 1);
    let _third = server.enqueue(None, &queued_lease_request("db:1", "third", 60_000, 60_000), 2);
    let graph = server.get("/v1/contention").json();
    let edges: Vec<_> = graph["edges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|edge| {
            let field = |name: &str| json_string(&edge[name]);
            assert!((1..=60_000).contains(&edge["waitTimeoutMs"].as_u64().unwrap()), "{edge}");
            [field("from"), field("to"), field("predicate"), field("resource"), field("because")].join(" ")
        })
        .collect();
    assert_eq!(
        edges,
        [
            "old young CONSUMES FILE:src/lib.rs HOLDS",
            "second first exclusive db:1 HOLDS",
            "third first exclusive db:1 HOLDS",
            "third second exclusive db:1 WAITS",
        ]
    );
    let node = |id: &str| {
        let nodes = graph["nodes"].as_array().unwrap();
        nodes.iter().find(|node| node["id"] == id).unwrap().clone()
    };
    assert_eq!(node("young"), json!({ "id": "young", "priority_timestamp": 20, "state": "EXECUTING" }));
    assert_eq!(node("third"), json!({ "id": "third" }));
    // The same is said of the resource, with agents in front.
    let _fourth = server.enqueue(None, &queued_lease_request("FILE:src/lib.rs", "fourth", 60_000, 60_000), 1);
    let state = server.get("/v1/resource/FILE:src%2Flib.rs/state").json();
    assert_eq!((&state["held"], &state["leases"][0]["resource"]), (&json!(true), &json!("FILE:src/")));
    assert_eq!(state["waiting"], json!(["old", "fourth"]));
    let explained = server.get("/v1/explain?resource=FILE:src/lib.rs").json();
    assert_eq!(explained["waiting"][0]["holder"], json!("old"));
    assert_eq!(explained["held"][0]["holder"], json!("young"));
}

#[test]
fn explain_reports_a_die_verdict() {
    let server = TestServer::start();
    server.declare_mutations("old", 10, &["x"]);
    assert_eq!(verdict(&server, "young", 20, "x"), "DIE");
    let explained = server.get("/v1/explain?resource=FILE:x").json();
    let last = &explained["lastRefusal"];
    assert_eq!(last["holder"], json!("young"));
    assert!(json_string(&last["detail"]).starts_with("the verdict was DIE: old is in the way"), "{last}");
}

#[test]
fn a_token_limited_to_prefixes_sees_only_agents_on_its_resources() {
    let server = TestServer::start();
    let secret = server.create_token("limited", &["leases:write", "leases:read"], &["FILE:docs/"]);
    let refused = manifest("mine", 1, &[("MUTATES", "docs/a.md"), ("CONSUMES", "src/lib.rs")]);
    server.request_with_token(&secret, "POST /v1/manifest", &refused).expect_problem(403, "FORBIDDEN");
    let granted = server.request_with_token(
        &secret,
        "POST /v1/manifest",
        &manifest("mine", 1, &[("MUTATES", "docs/a.md")]),
    );
    assert_eq!(granted.json()["verdict"], json!("GRANTED"));
    server.declare_mutations("both", 5, &["docs/b.md", "src/lib.rs"]);
    server.declare_mutations("foreign", 6, &["src/main.rs"]);
    assert_eq!(verdict(&server, "both", 5, "src/main.rs"), "WAIT");
    let get = |path: &str| server.request_with_token(&secret, &format!("GET {path}"), &Value::Null);
    let seen = get("/v1/agents").json();
    let names: Vec<_> =
        seen["agents"].as_array().unwrap().iter().map(|agent| json_string(&agent["agent_id"])).collect();
    assert_eq!(names, ["both", "mine"]);
    let both = get("/v1/agents/both").json();
    assert_eq!((both["leases"].as_array().unwrap().len(), &both["waits"]), (1, &json!([])), "{both}");
    get("/v1/agents/foreign").expect_problem(404, "NOT_FOUND");
    assert_eq!(get("/v1/contention").json(), json!({ "nodes": [], "edges": [] }));
    get("/v1/resource/FILE:src%2Flib.rs/state").expect_problem(403, "FORBIDDEN");
    assert_eq!(get("/v1/resource/FILE:docs%2Fb.md/state").json()["held"], json!(true));
}

#[test]
fn agent_events_are_sent_only_to_tokens_that_may_see_them() {
    let server = TestServer::start();
    let secret = server.create_token("limited", &["leases:write", "leases:read"], &["FILE:docs/"]);
    let mut every = open_event_stream(&server, "/v1/events?type=agent.*", None);
    let mut limited = open_event_stream_as(&server, &secret, "/v1/events?type=agent.*", None);
    server.declare_mutations("young", 20, &["src/a", "docs/a"]);
    let began = every.expect("agent.began").data;
    assert_eq!(
        (&began["agent"]["agent_id"], &began["agent"]["priority_timestamp"]),
        (&json!("young"), &json!(20))
    );
    assert_eq!(verdict(&server, "old", 10, "src/a"), "WAIT");
    every.expect("agent.began");
    let waiting = every.expect("agent.waits").data;
    assert_eq!(waiting["agent"]["wants"], json!([{ "resource": "FILE:src/a", "predicate": "MUTATES" }]));
    assert_eq!(verdict(&server, "older", 5, "docs/a"), "WAIT");
    every.expect("agent.began");
    every.expect("agent.waits");
    server.report_agent_state("old", "ABORTED");
    let ended = every.expect("agent.left").data;
    assert_eq!((&ended["cause"], &ended["agent"]["agent_id"]), (&json!("WITHDRAWN"), &json!("old")));
    assert_eq!(every.expect("agent.reported").data["agent"]["state"], json!("ABORTED"));
    assert_eq!(verdict(&server, "youngest", 30, "src/a"), "DIE");
    every.expect("agent.began");
    assert!(every.expect("agent.died").data["agent"]["retryAfterMs"].as_u64().unwrap() >= 250);
    // Of all this it may hear of one wait; and of what becomes of its own agents.
    let granted = server.request_with_token(
        &secret,
        "POST /v1/manifest",
        &manifest("mine", 1, &[("MUTATES", "docs/own")]),
    );
    assert_eq!(granted.json()["verdict"], json!("GRANTED"));
    assert_eq!(limited.expect("agent.waits").data["agent"]["agent_id"], json!("older"));
    assert_eq!(limited.expect("agent.began").data["agent"]["agent_id"], json!("mine"));
    // Who comes later reads the same from the ledger.
    let mut again = open_event_stream(&server, "/v1/events?type=agent.left&from=1", None);
    assert_eq!(again.expect("agent.left").data["agent"]["wants"][0]["resource"], json!("FILE:src/a"));
    for (name, expected) in
        [("tenure_agents_waiting", 1), ("tenure_agents", 5), ("tenure_agent_deaths_total", 1)]
    {
        assert_eq!(crate::subscribers::metric(&server, name), expected, "{name}");
    }
}

#[test]
fn revoking_a_token_ends_its_agents_leases_and_queued_manifests() {
    let server = TestServer::start();
    let request = json!({ "name": "agents", "scopes": ["leases:write"] });
    let made = server.post("/v1/tokens", &request).json();
    let (id, secret) = (json_string(&made["token"]["id"]), json_string(&made["secret"]));
    let lease = server.declare_mutations("young", 20, &["x"]);
    let theirs = manifest("old", 10, &[("MUTATES", "y")]);
    assert_eq!(
        server.request_with_token(&secret, "POST /v1/manifest", &theirs).json()["verdict"],
        json!("GRANTED")
    );
    let theirs = manifest("old", 10, &[("MUTATES", "x")]);
    assert_eq!(
        server.request_with_token(&secret, "POST /v1/manifest", &theirs).json()["verdict"],
        json!("WAIT")
    );
    let revoked = server.request(&format!("DELETE /v1/tokens/{id}"), &[server.bearer()], "");
    assert_eq!(revoked.json()["revokedLeases"], json!(1), "{revoked:?}");
    server.release_agent_leases("young", &lease);
    let old = server.agent("old");
    assert_eq!((&old["leases"], &old["waits"]), (&json!([]), &json!([])));
}

// A pattern means whatever begins as it does before its first wildcard, and in a pattern a bracket is one.
#[test]
fn a_limited_token_cannot_widen_its_prefix_with_a_pattern() {
    let server = TestServer::start();
    let request = json!({ "name": "limited", "scopes": ["leases:write"], "resources": ["FILE:app/[id]/"] });
    let secret = json_string(&server.post("/v1/tokens", &request).json()["secret"]);
    let headers = [format!("Authorization: Bearer {secret}"), "Content-Type: application/json".into()];
    let ask =
        |route: &str, body: Value| server.request(&format!("POST {route}"), &headers, &body.to_string());
    let manifest_for = |path: &str| manifest("limited", 10, &[("MUTATES", path)]);
    let refused = ask("/v1/manifest", manifest_for("app/[id]/*"));
    let detail = json_string(&refused.expect_problem(403, "FORBIDDEN")["detail"]);
    assert!(detail.contains("this pattern means whatever begins with FILE:app/,"), "{detail}");
    let plain = json!({ "resource": "FILE:app/[id]/*", "holder": "limited", "ttlMs": 60_000 });
    ask("/v1/leases", plain).expect_problem(403, "FORBIDDEN");
    for path in ["app/[id]/", "app/[id]/page.tsx"] {
        assert_eq!(ask("/v1/manifest", manifest_for(path)).json()["verdict"], json!("GRANTED"), "{path}");
    }
}
