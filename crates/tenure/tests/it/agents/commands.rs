//! `tenure agents` and `tenure contention`.

use serde_json::json;
use tenure_testkit::TestHome;

fn declare(home: &TestHome, agent: &str, priority: u64, path: &str) {
    let manifest = json!({
        "session_id": "s",
        "agent_id": agent,
        "priority_timestamp": priority,
        "intents": [{ "predicate": "MUTATES", "object": { "resource_type": "FILE", "path": path } }],
    });
    let answer = home.client().request("POST /v1/manifest", None, &manifest.to_string()).unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
}

// O-19
#[test]
fn agents_and_contention_show_holders_and_waiters() {
    let home = TestHome::new();
    assert_eq!(home.run(&["agents"]).output, "No agents.\n");
    assert_eq!(home.run(&["contention"]).output, "Nobody waits.\n");
    declare(&home, "young", 20, "src/");
    declare(&home, "old", 10, "src/lib.rs");
    let lines = home.run(&["contention"]);
    assert_eq!(
        (lines.code, lines.output.as_str()),
        (Some(0), "old waits for young: MUTATES FILE:src/lib.rs\n")
    );
    let table = home.run(&["agents"]).output;
    let lines: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    assert_eq!(lines[0], ["AGENT", "STATE", "PRIORITY", "HOLDS", "WAITS FOR", "BLOCKED BY"]);
    assert_eq!(lines[1], ["old", "-", "10", "-", "MUTATES FILE:src/lib.rs", "young"]);
    assert_eq!(lines[2], ["young", "-", "20", "MUTATES FILE:src/", "-", "-"]);
    let agents = home.json(&["agents", "--json"]);
    assert_eq!(agents["agents"][0]["waits"][0]["blockedBy"], json!(["young"]));
    let graph = home.json(&["contention", "--json"]);
    assert_eq!((&graph["edges"][0]["from"], &graph["edges"][0]["because"]), (&json!("old"), &json!("HOLDS")));
}
