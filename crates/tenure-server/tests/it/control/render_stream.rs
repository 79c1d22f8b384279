//! Frames that the owner sends.

use std::time::Duration;

use serde_json::{Value, json};
use tenure_testkit::control::{
    ControlClient, ControlLeaseCredentials, run_on_each_clock, start_control_server,
};
use tenure_testkit::{TestServer, now, sleep, wait_until};

/// A frame, byte for byte.
fn frame(sequence: u32, colour: u8) -> Vec<u8> {
    let mut bytes = b"K1F1".to_vec();
    bytes.extend([1, 1, 0, 0]);
    bytes.extend(sequence.to_le_bytes());
    bytes.extend(320_u16.to_le_bytes());
    bytes.extend([0, 0]);
    bytes.extend([colour; 960]);
    bytes
}

fn status(client: &mut ControlClient) -> Value {
    client.request("render.stream.status", &json!({}))["data"].clone()
}

/// Waits until the stream is over, and says why.
fn stop_reason(client: &mut ControlClient) -> Value {
    let mut last = Value::Null;
    wait_until("over", || {
        last = status(client);
        last["active"] == json!(false)
    });
    last["stopReason"].clone()
}

fn streaming(client: &mut ControlClient, fields: &Value) -> ControlLeaseCredentials {
    let lease = client.acquire("K1 Composer");
    let started = client.request("render.stream.start", fields);
    assert_eq!(started["success"], json!(true), "{started}");
    lease
}

// S0-17, S0-18, S0-19, S0-20, S0-21, O-7
#[test]
fn frames_of_the_owner_are_shown_and_the_stream_ends_with_the_lease() {
    run_on_each_clock(|server| {
        let (mut owner, mut other) = (ControlClient::open(server), ControlClient::open(server));
        assert_eq!(owner.request_error("render.stream.start", &json!({})), "LEASE_REQUIRED");
        let lease = streaming(&mut owner, &json!({ "targetFps": 240, "staleTimeoutMs": 5000 }));
        assert_eq!(other.request_error("render.stream.start", &json!({})), "CONTROL_LOCKED");
        assert_eq!(other.request_error("render.stream.stop", &json!({})), "CONTROL_LOCKED");
        owner.send_bytes(&frame(7, 0xAB));
        // What the owner sent before is done before what it sends after.
        let shown = owner.request("device.frame", &json!({}))["data"].to_string().to_lowercase();
        assert!(shown.contains(&"ab".repeat(960)), "{}", &shown[..200]);
        other.send_bytes(&frame(8, 0xCD));
        other.receive_where(|message| message["error"]["code"] == "CONTROL_LOCKED");
        assert_eq!(status(&mut other)["framesReceived"], json!(1));
        owner.release(&lease);
        assert_eq!(stop_reason(&mut other), json!("lease_lost"));
    });
}

// O-7
#[test]
fn a_stream_ends_when_its_owner_disconnects_or_stops_sending() {
    run_on_each_clock(|server| {
        let mut other = ControlClient::open(server);
        let mut owner = ControlClient::open(server);
        streaming(&mut owner, &json!({ "staleTimeoutMs": 5000 }));
        owner.disconnect();
        assert_eq!(stop_reason(&mut other), json!("owner_disconnected"));
        let mut owner = ControlClient::open(server);
        other.receive_where(|message| message["event"] == "released");
        streaming(&mut owner, &json!({ "staleTimeoutMs": 250 }));
        assert_eq!(stop_reason(&mut other), json!("stale_timeout"));
        owner.send_bytes(&frame(1, 1));
        owner.receive_where(|message| message["error"]["code"] == "STREAM_NOT_ACTIVE");
    });
}

#[test]
fn a_stream_ends_when_the_lease_expires() {
    let server = start_control_server(1_000);
    let (mut owner, mut other) = (ControlClient::open(&server), ControlClient::open(&server));
    streaming(&mut owner, &json!({ "staleTimeoutMs": 5000 }));
    assert_eq!(stop_reason(&mut other), json!("lease_lost"));
    server.stop();
}

/// 240 frames a second, none lost, while somebody looks.
#[test]
fn no_frame_is_lost_at_full_speed() {
    send_at_full_speed(10);
}

#[test]
fn long_no_frame_is_lost_in_ten_minutes() {
    send_at_full_speed(600);
}

fn send_at_full_speed(seconds: u32) {
    let server = TestServer::start();
    let (mut owner, mut other) = (ControlClient::open(&server), ControlClient::open(&server));
    let lease = streaming(&mut owner, &json!({ "targetFps": 240, "staleTimeoutMs": 5000 }));
    let frames = 240 * seconds;
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let started = now();
            for sequence in 0..frames {
                owner.send_bytes(&frame(sequence, 9));
                if sequence % 240 == 0 {
                    owner.send_command("control.heartbeat", &lease.credentials());
                }
                let due = Duration::from_secs(1) / 240 * (sequence + 1);
                sleep(due.saturating_sub(now() - started));
            }
            owner.request("device.status", &json!({}));
        });
        while !sending.is_finished() {
            status(&mut other);
            other.request("device.status", &json!({}));
            other.pending.clear();
        }
        sending.join().unwrap();
    });
    let status = status(&mut other);
    assert_eq!(status["framesReceived"], json!(frames), "{status}");
    assert_eq!(
        (&status["framesInvalid"], &status["lastSequence"]),
        (&json!(0), &json!(frames - 1)),
        "{status}"
    );
    server.stop();
}
