//! What a manifest leads to.

use serde_json::json;
use tenure_testkit::agents::{lease_ids, manifest, with_field};
use tenure_testkit::{TestServer, json_string};

// S3-1, S3-2, S3-4, S3-6, S3-19
#[test]
fn a_manifest_is_granted_as_expiring_leases() {
    let server = TestServer::start();
    let verdict = server.declare(&manifest("a", 1, &[("MUTATES", "src/lib.rs"), ("CONSUMES", "Cargo.toml")]));
    assert_eq!(verdict["verdict"], json!("GRANTED"));
    let leases = verdict["leases"].as_array().unwrap();
    assert_eq!(leases.len(), 2);
    let first = &leases[0];
    assert_eq!((&first["resource"], &first["predicate"]), (&json!("FILE:src/lib.rs"), &json!("MUTATES")));
    assert_eq!((&first["agent_id"], &first["ttl"]), (&json!("a"), &json!(60_000)), "by default a minute");
    assert_eq!(first["remainingMs"], json!(60_000));
    for time in ["acquired_at", "expires_at"] {
        assert!(json_string(&first[time]).ends_with('Z'), "{first}");
    }
    assert!(json_string(&first["acquired_at"]) < json_string(&first["expires_at"]));
    assert_eq!((&first["fence"], &leases[1]["fence"]), (&json!(1), &json!(2)));
    assert_ne!(first["id"], leases[1]["id"]);
    assert_eq!(
        server.reconcile("a", &lease_ids(&verdict))[lease_ids(&verdict)[0].as_str()]["state"],
        json!("ACTIVE")
    );
}

// S3-5, O-17
#[test]
fn an_older_agent_gets_wait_and_a_younger_one_gets_die() {
    let server = TestServer::start();
    server.declare_mutations("middle", 20, &["x"]);
    let old =
        server.declare(&with_field(manifest("old", 10, &[("MUTATES", "x")]), "waitTimeoutMs", json!(5_000)));
    assert_eq!((&old["verdict"], &old["waitTimeoutMs"]), (&json!("WAIT"), &json!(5_000)), "{old}");
    assert_eq!((&old["position"], &old["blockedBy"]), (&json!(1), &json!(["middle"])));
    let young = server.declare(&manifest("young", 30, &[("MUTATES", "x")]));
    assert_eq!((&young["verdict"], &young["priority_timestamp"]), (&json!("DIE"), &json!(30)), "{young}");
    assert_eq!(young["blockedBy"], json!(["middle", "old"]));
    let retry = young["retryAfterMs"].as_u64().unwrap();
    assert!((250..=313).contains(&retry), "{young}");
    assert_eq!(server.contention_edges(), [("old".to_owned(), "middle".to_owned())]);
}
