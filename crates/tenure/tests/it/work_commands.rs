//! `tenure work`: from a claim to its end, and what the passport and the ledger say of it.

use serde_json::{Value, json};
use tenure_testkit::TestHome;

/// The answer of a command that needs a lease's token.
fn with_token(home: &TestHome, token: &Value, arguments: &[&str]) -> (Option<i32>, Value) {
    let mut command = home.command(arguments);
    let output = command.env("TENURE_LEASE_TOKEN", token.as_str().unwrap()).output().unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default())
}

// S2-107 to S2-111
#[test]
fn work_is_claimed_derived_spent_and_released() {
    let home = TestHome::new();
    let claimed = home.json(&[
        "work",
        "claim",
        "T-17",
        "--as",
        "planner",
        "--ttl",
        "10m",
        "--tokens",
        "1000",
        "--tool",
        "search",
        "--work",
        "T-17/tests",
        "--json",
    ]);
    let (id, token) = (claimed["lease"]["id"].as_str().unwrap(), &claimed["token"]);
    let derive =
        ["work", "derive", id, "T-17/tests", "--as", "tester", "--ttl", "1m", "--tokens", "400", "--json"];
    let (code, child) = with_token(&home, token, &derive);
    assert_eq!((code, &child["work"]["parent"]), (Some(0), &json!(id)), "{child}");
    let child_id = child["lease"]["id"].as_str().unwrap();
    let spend =
        ["work", "spend", child_id, "--tokens", "150", "--tool", "search", "--key", "call-1", "--json"];
    for _ in 0..2 {
        let (code, spent) = with_token(&home, &child["token"], &spend);
        assert_eq!((code, &spent["remaining"]["tokens"]), (Some(0), &json!(250)), "{spent}");
    }
    let more = ["work", "spend", child_id, "--tokens", "251"];
    assert_ne!(with_token(&home, &child["token"], &more).0, Some(0));
    let other = ["work", "spend", child_id, "--tokens", "1", "--tool", "shell"];
    assert_ne!(with_token(&home, &child["token"], &other).0, Some(0));
    let shown = home.run(&["work", "show", id]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.output.contains("600 tokens") && shown.output.contains(child_id), "{shown:?}");
    assert!(shown.output.contains("allows in     nothing"), "what is not named is not allowed: {shown:?}");
    assert!(!shown.output.contains(token.as_str().unwrap()));
    assert_eq!(with_token(&home, token, &["work", "release", id, "--json"]).0, Some(0));
    assert_eq!(home.json(&["work", "show", child_id, "--json"])["lease"]["state"], "RELEASED");
}
