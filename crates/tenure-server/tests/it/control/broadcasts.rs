//! Everybody is told of every change, on five occasions and on no other.

use serde_json::{Value, json};
use tenure_testkit::control::{ControlClient, run_on_each_clock, start_control_server};

/// That a broadcast has the fields that clients know.
#[track_caller]
fn check(change: &Value, is_active: bool, lease_id: &str) {
    let mut fields: Vec<_> = change["data"].as_object().unwrap().keys().map(String::as_str).collect();
    fields.retain(|field| !["counters", "reason"].contains(field));
    fields.sort_unstable();
    let mut known = [
        "active",
        "leaseId",
        "scope",
        "ownerClientName",
        "ownerInstanceId",
        "ownerWsClientId",
        "ttlMs",
        "heartbeatIntervalMs",
        "remainingMs",
        "takeoverAllowed",
    ];
    known.sort_unstable();
    assert_eq!(fields, known);
    assert_eq!((&change["type"], &change["success"]), (&json!("control.stateChanged"), &json!(true)));
    assert_eq!(change["data"]["active"], json!(is_active), "{change}");
    assert_eq!(change["data"]["leaseId"], json!(lease_id));
    assert_eq!(change["data"]["remainingMs"].as_u64().unwrap() > 0, is_active, "{change}");
}

// S0-5, S0-12, S0-55, S0-56, S0-57, S0-59, S0-60, S0-61, S0-78
#[test]
fn acquire_heartbeat_release_and_disconnect_are_broadcast() {
    run_on_each_clock(|server| {
        let (mut owner, mut first, mut second) =
            (ControlClient::open(server), ControlClient::open(server), ControlClient::open(server));
        let lease = owner.acquire("K1 Composer");
        owner.heartbeat(&lease);
        owner.release(&lease);
        let again = owner.acquire("K1 Composer");
        let mut received = Vec::new();
        for client in [&mut owner, &mut first, &mut second] {
            received.push([
                client.next_state_change(),
                client.next_state_change(),
                client.next_state_change(),
                client.next_state_change(),
            ]);
        }
        owner.disconnect();
        for client in [&mut first, &mut second] {
            let gone = client.next_state_change();
            check(&gone, false, &again.id);
            assert_eq!(
                (&gone["event"], &gone["data"]["reason"]),
                (&json!("released"), &json!("ws_disconnect"))
            );
        }
        for [acquired, kept, released, acquired_again] in received {
            let events = [&acquired, &kept, &released].map(|change| change["event"].as_str().unwrap());
            assert_eq!(events, ["acquired", "heartbeat", "released"]);
            check(&acquired, true, &lease.id);
            check(&kept, true, &lease.id);
            check(&released, false, &lease.id);
            assert_eq!(released["data"]["reason"], "user_release");
            check(&acquired_again, true, &again.id);
        }
    });
}

// S0-58
#[test]
fn an_expiry_is_broadcast() {
    let server = start_control_server(1_000);
    let (mut owner, mut other) = (ControlClient::open(&server), ControlClient::open(&server));
    let lease = owner.acquire("K1 Composer");
    for client in [&mut owner, &mut other] {
        let expired = client.next_state_change_to("expired");
        check(&expired, false, &lease.id);
    }
    server.stop();
}

/// The lease of a connection that is gone is free at once, not after its time.
// S0-2, S0-61
#[test]
fn the_lease_of_a_disconnected_owner_is_free_at_once() {
    run_on_each_clock(|server| {
        let (mut owner, mut other) = (ControlClient::open(server), ControlClient::open(server));
        owner.acquire("K1 Composer");
        other.next_state_change_to("acquired");
        owner.disconnect();
        other.next_state_change_to("released");
        other.acquire("Tablet");
    });
}

// O-8
#[test]
fn a_broadcast_contains_counters_of_blocked_commands() {
    run_on_each_clock(|server| {
        let (mut owner, mut other) = (ControlClient::open(server), ControlClient::open(server));
        let lease = owner.acquire("K1 Composer");
        let idle = owner.next_state_change_to("acquired")["data"]["counters"].clone();
        let counted = |name: &str| idle[name].as_u64().unwrap();
        assert_eq!((counted("blockedWsCommands"), counted("blockedRestRequests")), (0, 0));
        for _ in 0..3 {
            assert_eq!(other.request_error("transport.play", &json!({})), "CONTROL_LOCKED");
        }
        tenure_testkit::control::send_rest_request(
            server,
            "POST /api/v1/transport/play",
            None,
            None,
            &json!({}),
        );
        // What is only looked at is not counted.
        other.request("transport.status", &json!({}));
        owner.heartbeat(&lease);
        let counters = owner.next_state_change_to("heartbeat")["data"]["counters"].clone();
        assert_eq!(counters["blockedWsCommands"], json!(3));
        assert_eq!(counters["blockedRestRequests"], json!(1));
        assert_eq!(counters["blockedLocalEncoderInputs"], json!(0));
        assert_eq!(counters["blockedLocalSerialInputs"], json!(0));
        assert!(counters["lastLeaseEventMs"].is_u64());
    });
}

/// A command that is not about the lease tells nobody.
#[test]
fn commands_that_do_not_change_the_lease_are_not_broadcast() {
    run_on_each_clock(|server| {
        let (mut client, mut other) = (ControlClient::open(server), ControlClient::open(server));
        client.request("transport.play", &json!({}));
        client.request_error("control.heartbeat", &json!({}));
        client.request("control.release", &json!({}));
        client.try_acquire("K1 Composer");
        // The first thing that the other one hears is the first change.
        assert_eq!(other.receive()["event"], "acquired");
    });
}
