//! The device itself: what it keeps, and its firmware.

use serde_json::json;
use tenure_testkit::TestServer;
use tenure_testkit::control::{ControlClient, run_on_each_clock, send_rest_request};

use crate::firmware_image::ImageBuilder;

/// Sends bytes that are no text.
fn upload(server: &TestServer, path: &str, image: &[u8]) -> tenure_testkit::Response {
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{}\r\nContent-Type: application/octet-stream\r\n\
         Content-Length: {}\r\n\r\n",
        server.address,
        server.bearer(),
        image.len(),
    )
    .into_bytes();
    request.extend(image);
    server.exchange(&request)
}

// S0-83, S0-84, S0-85
#[test]
fn firmware_is_accepted_under_any_lease_and_runs_after_a_restart() {
    let server = TestServer::start();
    let mut owner = ControlClient::open(&server);
    let lease = owner.acquire("K1 Composer");
    let image = ImageBuilder::new("9.8.7", "k1-composer").build();
    for path in ["/api/v1/firmware/update", "/update"] {
        let mut damaged = image.clone();
        damaged[500] ^= 1;
        let refused = upload(&server, path, &damaged);
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!("FIRMWARE_INVALID")));
        let answer = upload(&server, path, &image);
        assert_eq!((answer.status, &answer.json()["success"]), (200, &json!(true)), "{answer:?}");
    }
    let version = || server.get("/api/v1/firmware/version").json()["data"].to_string();
    assert!(!owner.request("ota.version", &json!({}))["data"]["version"].to_string().contains("9.8.7"));
    let restarted =
        send_rest_request(&server, "POST /api/v1/device/restart", Some(&lease.token), None, &json!({}));
    assert_eq!(restarted.status, 200, "{restarted:?}");
    assert!(version().contains("9.8.7"), "{}", version());
    let folder = server.stop();
    let server = TestServer::start_in(folder, |_| {}).unwrap();
    assert!(server.get("/api/v1/firmware/version").json()["data"].to_string().contains("9.8.7"));
    server.stop();
}

#[test]
fn settings_and_presets_survive_a_restart() {
    let server = TestServer::start();
    let named =
        send_rest_request(&server, "PATCH /api/v1/settings", None, None, &json!({ "deviceName": "Stairs" }));
    assert_eq!(named.status, 200, "{named:?}");
    let preset =
        send_rest_request(&server, "POST /api/v1/presets", None, None, &json!({ "name": "Evening" }));
    assert_eq!(preset.status, 200, "{preset:?}");
    let before = (
        server.get("/api/v1/settings").json()["data"].clone(),
        server.get("/api/v1/presets").json()["data"].clone(),
    );
    let folder = server.stop();
    let server = TestServer::start_in(folder, |_| {}).unwrap();
    let after = (
        server.get("/api/v1/settings").json()["data"].clone(),
        server.get("/api/v1/presets").json()["data"].clone(),
    );
    assert_eq!(before, after);
    assert_eq!(after.0["deviceName"], "Stairs");
    server.stop();
}

/// What cannot be stored is not done by halves: who asked is told, and it is as before.
#[test]
fn a_change_that_cannot_be_stored_is_rolled_back() {
    let server = TestServer::start();
    let path = server.folder.path().join("data/device.json.new");
    std::fs::create_dir(&path).unwrap();
    let named =
        send_rest_request(&server, "PATCH /api/v1/settings", None, None, &json!({ "deviceName": "Stairs" }));
    assert_eq!((named.status, &named.json()["error"]["code"]), (500, &json!("STORAGE_FAILED")), "{named:?}");
    assert_ne!(server.get("/api/v1/settings").json()["data"]["deviceName"], "Stairs");
    std::fs::remove_dir(&path).unwrap();
    let named =
        send_rest_request(&server, "PATCH /api/v1/settings", None, None, &json!({ "deviceName": "Stairs" }));
    assert_eq!(named.status, 200, "{named:?}");
    server.stop();
}

#[test]
fn a_damaged_store_stops_the_start_and_is_named() {
    let folder = TestServer::start().stop();
    std::fs::write(folder.path().join("data/device.json"), "{").unwrap();
    let Err(refused) = TestServer::start_in(folder, |_| {}) else { panic!("it started") };
    assert!(refused.to_string().contains("device.json"), "{refused}");
}

// O-8
#[test]
fn blocked_commands_are_counted_in_the_metrics() {
    run_on_each_clock(|server| {
        let (mut owner, mut other) = (ControlClient::open(server), ControlClient::open(server));
        let lease = owner.acquire("K1 Composer");
        other.request_error("transport.play", &json!({}));
        owner.heartbeat(&lease);
        owner.release(&lease);
        let text = server.get("/metrics").text;
        for (event, count) in [
            ("control.lease.acquired", 1),
            ("control.lease.heartbeat", 1),
            ("control.lease.released", 1),
            ("control.lease.expired", 0),
            ("control.command.blocked.ws", 1),
            ("control.command.blocked.rest", 0),
            ("control.command.blocked.local.encoder", 0),
            ("control.command.blocked.local.serial", 0),
        ] {
            let line = format!("tenure_control_events_total{{event=\"{event}\"}} {count}");
            assert!(text.contains(&line), "{line}");
        }
    });
}
