//! Who may keep the lease, and what is asked first.

use std::time::Duration;

use serde_json::json;
use tenure_testkit::control::{
    ControlClient, ControlLeaseCredentials, run_on_each_clock, start_control_server,
};
use tenure_testkit::{now, sleep};

// S0-41, O-4
#[test]
fn the_owner_may_acquire_again_and_keeps_its_lease_and_token() {
    run_on_each_clock(|server| {
        let mut client = ControlClient::open(server);
        let first = client.try_acquire("K1 Composer")["data"].clone();
        sleep(Duration::from_millis(50));
        let second = client.try_acquire("K1 Composer")["data"].clone();
        for field in ["leaseId", "leaseToken", "acquiredAtMs"] {
            assert_eq!(first[field], second[field], "{field}");
        }
        assert_ne!(first["expiresAtMs"], second["expiresAtMs"]);
        assert_eq!(second["remainingMs"], json!(5000));
    });
}

// S0-48, S0-79, O-1, O-2
#[test]
fn heartbeat_errors_have_a_fixed_precedence() {
    run_on_each_clock(|server| {
        let (mut owner, mut other) = (ControlClient::open(server), ControlClient::open(server));
        let nothing = ControlLeaseCredentials { id: "cl_0".into(), token: "A".repeat(22) };
        // Nothing active comes before everything else, also before a field that is missing.
        assert_eq!(owner.request_error("control.heartbeat", &nothing.credentials()), "LEASE_EXPIRED");
        assert_eq!(owner.request_error("control.heartbeat", &json!({})), "LEASE_EXPIRED");
        let lease = owner.acquire("K1 Composer");
        // Another connection, whatever it shows: also the right token.
        assert_eq!(other.request_error("control.heartbeat", &lease.credentials()), "CONTROL_LOCKED");
        assert_eq!(other.request_error("control.heartbeat", &json!({})), "CONTROL_LOCKED");
        assert_eq!(
            owner.request_error("control.heartbeat", &json!({ "leaseId": lease.id })),
            "MISSING_FIELD"
        );
        assert_eq!(
            owner.request_error("control.heartbeat", &json!({ "leaseToken": lease.token })),
            "MISSING_FIELD"
        );
        let wrong = |id: &str, token: &str| json!({ "leaseId": id, "leaseToken": token });
        for fields in
            [wrong("cl_0", &lease.token), wrong(&lease.id, "short"), wrong(&lease.id, &nothing.token)]
        {
            assert_eq!(owner.request_error("control.heartbeat", &fields), "LEASE_INVALID");
        }
        let number = json!({ "leaseId": 7, "leaseToken": lease.token });
        assert_eq!(owner.request_error("control.heartbeat", &number), "INVALID_TYPE");
        assert_eq!(owner.heartbeat(&lease)["success"], json!(true));
    });
}

// S0-80, O-3
#[test]
fn only_the_owner_may_release_and_releasing_again_succeeds() {
    run_on_each_clock(|server| {
        let (mut owner, mut other) = (ControlClient::open(server), ControlClient::open(server));
        let lease = owner.acquire("K1 Composer");
        assert_eq!(other.request_error("control.release", &lease.credentials()), "LEASE_INVALID");
        let wrong = json!({ "leaseId": lease.id, "leaseToken": "A".repeat(22) });
        assert_eq!(owner.request_error("control.release", &wrong), "LEASE_INVALID");
        assert_eq!(owner.request_error("control.release", &json!({ "leaseId": lease.id })), "MISSING_FIELD");
        assert_eq!(owner.release(&lease)["data"]["reason"], "user_release");
        for client in [&mut owner, &mut other] {
            let again = client.release(&lease);
            assert_eq!(
                (&again["type"], &again["data"]["released"]),
                (&json!("control.released"), &json!(true))
            );
        }
    });
}

// S0-49, S0-50, S0-58
#[test]
fn a_lease_without_heartbeats_expires_and_another_client_can_acquire_it() {
    let server = start_control_server(1_000);
    let (mut owner, mut other) = (ControlClient::open(&server), ControlClient::open(&server));
    let lease = owner.acquire("K1 Composer");
    other.next_state_change_to("expired");
    assert_eq!(owner.request_error("control.heartbeat", &lease.credentials()), "LEASE_EXPIRED");
    other.acquire("Tablet");
    assert_eq!(owner.request_error("control.heartbeat", &lease.credentials()), "CONTROL_LOCKED");
    server.stop();
}

// S0-16
#[test]
fn remaining_ms_never_increases_and_at_zero_the_lease_is_free() {
    let server = start_control_server(1_000);
    let (mut owner, mut other) = (ControlClient::open(&server), ControlClient::open(&server));
    for _ in 0..3 {
        owner.acquire("K1 Composer");
        // Counted from after the answer: it can only be less than this.
        let started = now();
        let mut last = 1_000;
        loop {
            let status = other.status();
            let remaining = status["remainingMs"].as_u64().unwrap();
            assert!(remaining <= last, "{remaining} after {last}");
            let truth =
                Duration::from_millis(1_000).saturating_sub(now() - started) + Duration::from_millis(50);
            assert!(u128::from(remaining) <= truth.as_millis(), "{remaining} is more than {truth:?}");
            last = remaining;
            if remaining == 0 {
                break;
            }
        }
        let lease = other.acquire("Tablet");
        assert_eq!(other.release(&lease)["success"], json!(true));
    }
    server.stop();
}
