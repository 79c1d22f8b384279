//! What clients are told, field by field as the device's documentation shows it.

use std::time::Duration;

use serde_json::{Value, json};
use tenure_testkit::control::{ControlClient, run_on_each_clock};
use tenure_testkit::sleep;

/// The names of the fields, in their order.
fn names(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn millis(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap()).unwrap()
}

// S0-9, S0-10, S0-14, S0-24, S0-25, S0-26, S0-27, S0-28, S0-29, S0-30, S0-31, S0-32, S0-33, S0-34, S0-35, S0-36, S0-37,
// S0-38, S0-39, S0-40
#[test]
fn acquired_contains_all_documented_fields_and_the_token() {
    run_on_each_clock(|server| {
        let mut client = ControlClient::open(server);
        client.send_text(
            r#"{"type":"control.acquire","requestId":"req-101","clientName":"K1 Composer",
                "clientInstanceId":"6f0d84a3-8f49-4da8-8c70-0b8f6db5a870","scope":"global"}"#,
        );
        let answer = client.wait_for_response("req-101");
        assert_eq!((&answer["type"], &answer["success"]), (&json!("control.acquired"), &json!(true)));
        let data = &answer["data"];
        let mut fields = names(data);
        fields.sort_unstable();
        let mut known = [
            "active",
            "leaseId",
            "leaseToken",
            "scope",
            "ownerWsClientId",
            "ownerClientName",
            "ownerInstanceId",
            "ttlMs",
            "heartbeatIntervalMs",
            "acquiredAtMs",
            "expiresAtMs",
            "remainingMs",
            "takeoverAllowed",
        ];
        known.sort_unstable();
        assert_eq!(fields, known);
        let (id, token) = (data["leaseId"].as_str().unwrap(), data["leaseToken"].as_str().unwrap());
        let hex = id.strip_prefix("cl_").unwrap();
        assert!(
            !hex.is_empty()
                && hex.bytes().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit))
        );
        // 16 random bytes in the URL-safe alphabet, without padding.
        let is_url_safe = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        assert!(token.len() == 22 && token.bytes().all(is_url_safe), "{}", token.len());
        let shown = ["active", "scope", "ownerClientName", "ownerInstanceId", "ttlMs", "heartbeatIntervalMs"];
        let shown: Vec<_> = shown.iter().map(|field| data[*field].clone()).collect();
        let instance = "6f0d84a3-8f49-4da8-8c70-0b8f6db5a870";
        assert_eq!(json!(shown), json!([true, "global", "K1 Composer", instance, 5000, 1000]));
        assert!(data["ownerWsClientId"].is_u64() && data["takeoverAllowed"] == json!(false));
        assert_eq!(millis(&data["expiresAtMs"]), millis(&data["acquiredAtMs"]).wrapping_add(5_000));
        assert_eq!(data["remainingMs"], json!(5000));
    });
}

// S0-7, S0-42, S0-44
#[test]
fn a_denied_acquire_reports_the_owner_and_the_remaining_time() {
    run_on_each_clock(|server| {
        let (mut owner, mut other) = (ControlClient::open(server), ControlClient::open(server));
        owner.acquire("K1 Composer");
        let answer = other.try_acquire("Tablet");
        assert_eq!(names(&answer).len(), 4, "{answer}");
        assert_eq!((&answer["type"], &answer["success"]), (&json!("error"), &json!(false)));
        let error = &answer["error"];
        assert_eq!(error["code"], "CONTROL_LOCKED");
        assert_eq!(error["message"], "Control lease is held by another client");
        assert_eq!(error["ownerClientName"], "K1 Composer");
        assert_eq!(error["scope"], "global");
        assert!((4_000..=5_000).contains(&millis(&error["remainingMs"])), "{error}");
        assert_eq!(names(error).len(), 5, "{error}");
    });
}

// S0-45, S0-46, S0-47
#[test]
fn a_heartbeat_restarts_the_ttl() {
    run_on_each_clock(|server| {
        let mut client = ControlClient::open(server);
        let lease = client.acquire("K1 Composer");
        sleep(Duration::from_millis(200));
        let before = millis(&client.status()["remainingMs"]);
        let answer = client.heartbeat(&lease);
        assert_eq!((&answer["type"], &answer["success"]), (&json!("control.heartbeatAck"), &json!(true)));
        let mut fields = names(&answer["data"]);
        fields.sort_unstable();
        assert_eq!(fields, ["expiresAtMs", "leaseId", "remainingMs", "ttlMs"]);
        assert_eq!(answer["data"]["leaseId"], json!(lease.id));
        assert_eq!((&answer["data"]["ttlMs"], &answer["data"]["remainingMs"]), (&json!(5000), &json!(5000)));
        assert!(before <= 4_800 && millis(&client.status()["remainingMs"]) > before);
    });
}

// S0-51, S0-52
#[test]
fn released_contains_the_time_and_repeats_the_reason() {
    run_on_each_clock(|server| {
        let mut client = ControlClient::open(server);
        let lease = client.acquire("K1 Composer");
        let mut fields = lease.credentials();
        fields["reason"] = json!("user_exit");
        let answer = client.request("control.release", &fields);
        assert_eq!((&answer["type"], &answer["success"]), (&json!("control.released"), &json!(true)));
        let data = &answer["data"];
        assert_eq!(names(data).len(), 4, "{data}");
        assert_eq!(data["released"], json!(true));
        assert_eq!(data["leaseId"], json!(lease.id));
        assert_eq!(data["reason"], "user_exit");
        assert!(data["releasedAtMs"].is_u64());
    });
}

// S0-11, S0-23, S0-53, S0-54, S0-81
#[test]
fn status_never_contains_the_token() {
    run_on_each_clock(|server| {
        let (mut owner, mut other) = (ControlClient::open(server), ControlClient::open(server));
        let idle = other.request("control.status", &json!({}));
        assert_eq!((&idle["type"], &idle["success"]), (&json!("control.status"), &json!(true)));
        assert_eq!(idle["data"]["active"], json!(false));
        owner.acquire("K1 Composer");
        let data = other.status();
        let mut fields = names(&data);
        fields.sort_unstable();
        let mut known = [
            "active",
            "leaseId",
            "scope",
            "ownerClientName",
            "ownerInstanceId",
            "ownerWsClientId",
            "remainingMs",
            "ttlMs",
            "heartbeatIntervalMs",
            "takeoverAllowed",
        ];
        known.sort_unstable();
        assert_eq!(fields, known);
        // Where there is no lease, the same fields are there.
        let mut idle_fields = names(&idle["data"]);
        idle_fields.sort_unstable();
        assert_eq!(idle_fields, known);
    });
}
