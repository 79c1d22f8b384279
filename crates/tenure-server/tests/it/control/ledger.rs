//! The lease is a lease like any other: fenced, recorded, and without its secret.

use serde_json::json;
use tenure_testkit::control::{ControlClient, run_on_each_clock};
use tenure_testkit::leak_recorder::files_below;

// S0-13
#[test]
fn the_control_lease_is_fenced_and_its_token_is_not_stored() {
    run_on_each_clock(|server| {
        let mut owner = ControlClient::open(server);
        let lease = owner.acquire("K1 Composer");
        let listed = server.get("/v1/leases?resource=control:global").json()["leases"][0].clone();
        assert_eq!((&listed["state"], &listed["mode"]), (&json!("ACTIVE"), &json!("exclusive")));
        assert!(
            listed["fence"].as_u64().unwrap() > 0 && listed["holder"].as_str().unwrap().starts_with("ws-")
        );
        owner.heartbeat(&lease);
        owner.release(&lease);
        let next = owner.acquire("K1 Composer");
        assert_ne!(lease.id, next.id);
        assert_ne!(lease.token, next.token);
        for (path, content) in files_below(server.folder.path()) {
            for token in [&lease.token, &next.token] {
                let found = content.windows(token.len()).any(|window| window == token.as_bytes());
                assert!(!found, "the token is in {}", path.display());
            }
        }
        let metrics = server.get("/metrics").text;
        assert!(!metrics.contains(&next.token));
    });
}

/// An administrator may end it like any other lease; everybody is told.
#[test]
fn an_administrator_may_revoke_the_control_lease() {
    run_on_each_clock(|server| {
        let (mut owner, mut other) = (ControlClient::open(server), ControlClient::open(server));
        let lease = owner.acquire("K1 Composer");
        let id = server.get("/v1/leases?resource=control:global").json()["leases"][0]["id"].clone();
        let path = format!("/v1/leases/{}/revoke", id.as_str().unwrap());
        assert_eq!(server.post(&path, &json!({ "reason": "maintenance" })).status, 200);
        let change = other.next_state_change_to("released");
        assert_eq!(
            (&change["data"]["active"], &change["data"]["reason"]),
            (&json!(false), &json!("revoked"))
        );
        assert_eq!(owner.request_error("control.heartbeat", &lease.credentials()), "LEASE_EXPIRED");
        other.acquire("Tablet");
    });
}
