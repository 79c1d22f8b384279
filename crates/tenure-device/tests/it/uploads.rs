//! Firmware in pieces, over commands.

use base64_text as text;
use serde_json::{Value, json};
use tenure_device::{PersistentState, VirtualDevice};

use crate::firmware_image::ImageBuilder;
use crate::support::{device, device_with_state, execute, execute_ok, execute_rejected};

/// Bytes as base64, for tests alone.
mod base64_text {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    pub fn encode(bytes: &[u8]) -> String {
        let mut text = String::new();
        for chunk in bytes.chunks(3) {
            let group =
                (0..3).fold(0, |group, place| group << 8 | usize::from(*chunk.get(place).unwrap_or(&0)));
            for place in 0..4 {
                let character =
                    if place <= chunk.len() { ALPHABET[group >> (18 - 6 * place) & 63] } else { b'=' };
                text.push(char::from(character));
            }
        }
        text
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// Sends all pieces; what the last one was answered.
fn send(device: &mut VirtualDevice, bytes: &[u8], piece: usize) -> Result<Value, tenure_control::Problem> {
    let mut last = execute_ok(device, "ota.begin", json!({ "size": bytes.len() }), 0);
    for (number, data) in bytes.chunks(piece).enumerate() {
        let offset = number * piece;
        let fields = match number % 2 {
            0 => json!({ "offset": offset, "data": text::encode(data) }),
            _ => json!({ "offset": offset, "data": hex(data), "encoding": "hex" }),
        };
        last = execute(device, "ota.chunk", fields, 1)?;
    }
    Ok(last)
}

// S0-85
#[test]
fn firmware_uploaded_in_chunks_runs_after_a_restart() {
    let mut device = device();
    let bytes = ImageBuilder::new("9.9.9", "other-light").build();
    let last = send(&mut device, &bytes, 1_000).expect("it is whole");
    assert_eq!((&last["state"], &last["received"]), (&json!("receiving"), &json!(bytes.len())));
    let done = device
        .execute("ota.finish", serde_json::Map::new(), crate::support::tick_at_millis(2))
        .expect("it is whole");
    assert!(done.must_store);
    let version = execute_ok(&mut device, "ota.version", json!({}), 3);
    assert_eq!(
        (&version["version"], &version["next"]["version"]),
        (&json!(env!("CARGO_PKG_VERSION")), &json!("9.9.9"))
    );
    assert_eq!(execute_ok(&mut device, "ota.status", json!({}), 3)["state"], json!("ready"));

    // A start from what was stored is a restart too.
    let stored = PersistentState::from_json(&device.persistent_state().to_json()).expect("it can be read");
    let started = execute_ok(&mut device_with_state(stored), "ota.version", json!({}), 3);
    execute_ok(&mut device, "device.restart", json!({}), 4);
    let restarted = execute_ok(&mut device, "ota.version", json!({}), 5);
    assert_eq!((&restarted["version"], &restarted["next"]), (&json!("9.9.9"), &Value::Null));
    assert_eq!(started, restarted);
    assert_eq!(execute_ok(&mut device, "device.info", json!({}), 5)["project"], json!("other-light"));
}

#[test]
fn invalid_firmware_fails_the_upload_at_the_first_invalid_byte() {
    let mut device = device();
    let mut bytes = ImageBuilder::new("9.9.9", "other-light").build();
    bytes[1] = 0;
    let problem = send(&mut device, &bytes, 100).expect_err("it has no segments");
    assert_eq!(problem.code.as_str(), "FIRMWARE_INVALID");
    let status = execute_ok(&mut device, "ota.status", json!({}), 1);
    assert_eq!(status["state"], json!("failed"));
    assert!(status["message"].as_str().expect("a text").contains("segments"));
    assert_eq!(execute_rejected(&mut device, "ota.finish", json!({}), 2).0, "NOT_FOUND");
    assert_eq!(device.persistent_state(), PersistentState::default());
}

#[test]
fn chunks_must_be_in_order_and_within_the_announced_size() {
    let mut device = device();
    let bytes = ImageBuilder::new("9.9.9", "other-light").build();
    let chunk =
        |offset: usize, data: &[u8]| json!({ "offset": offset, "data": hex(data), "encoding": "hex" });
    assert_eq!(execute_rejected(&mut device, "ota.chunk", chunk(0, &bytes[..9]), 0).0, "NOT_FOUND");
    execute_ok(&mut device, "ota.begin", json!({ "size": bytes.len() }), 0);
    execute_ok(&mut device, "ota.chunk", chunk(0, &bytes[..9]), 0);
    for offset in [0, 8, 10] {
        let answer = execute_rejected(&mut device, "ota.chunk", chunk(offset, &bytes[offset..20]), 0);
        assert_eq!(answer, ("CONFLICT", Some("offset".to_owned())));
    }
    assert_eq!(execute_rejected(&mut device, "ota.finish", json!({}), 0).0, "CONFLICT");
    let mut more = bytes[9..].to_vec();
    more.push(0);
    assert_eq!(execute_rejected(&mut device, "ota.chunk", chunk(9, &more), 0).0, "TOO_LARGE");
    execute_ok(&mut device, "ota.chunk", chunk(9, &bytes[9..]), 0);
    execute_ok(&mut device, "ota.finish", json!({}), 0);
}

#[test]
fn a_second_upload_is_rejected_until_the_first_times_out() {
    let mut device = device();
    let begin = || json!({ "size": 5_000 });
    execute_ok(&mut device, "ota.begin", begin(), 0);
    assert_eq!(execute_rejected(&mut device, "ota.begin", begin(), 59_999).0, "CONFLICT");
    execute_ok(&mut device, "ota.begin", begin(), 60_000);
    assert_eq!(execute_ok(&mut device, "ota.abort", json!({}), 60_001), json!({ "aborted": true }));
    assert_eq!(execute_ok(&mut device, "ota.abort", json!({}), 60_001), json!({ "aborted": false }));
    assert_eq!(execute_ok(&mut device, "ota.status", json!({}), 60_001)["state"], json!("aborted"));
    execute_ok(&mut device, "ota.begin", begin(), 60_002);
    execute_ok(&mut device, "device.restart", json!({}), 60_003);
    assert_eq!(execute_ok(&mut device, "ota.status", json!({}), 60_004)["state"], json!("idle"));
}

#[test]
fn an_invalid_chunk_is_rejected_and_the_upload_can_proceed() {
    let mut device = device();
    execute_ok(&mut device, "ota.begin", json!({ "size": 4 << 20 }), 0);
    let cases = [
        (json!({ "offset": 0, "data": "6" }), "INVALID_VALUE", "data"),
        (json!({ "offset": 0, "data": "" }), "INVALID_VALUE", "data"),
        (json!({ "offset": 0, "data": "zz", "encoding": "hex" }), "INVALID_VALUE", "data"),
        (json!({ "offset": 0, "data": "e9", "encoding": "octal" }), "INVALID_VALUE", "encoding"),
        (json!({ "offset": 0, "data": 7 }), "INVALID_TYPE", "data"),
        (json!({ "offset": 0 }), "MISSING_FIELD", "data"),
        (json!({ "data": "6Q==" }), "MISSING_FIELD", "offset"),
        (json!({ "offset": 0, "data": "A".repeat(131_073) }), "TOO_LARGE", "data"),
        (json!({ "offset": 0, "data": "A".repeat(100_000) }), "TOO_LARGE", "data"),
    ];
    for (fields, code, field) in cases {
        assert_eq!(execute_rejected(&mut device, "ota.chunk", fields, 1), (code, Some(field.to_owned())));
    }
    execute_ok(&mut device, "ota.chunk", json!({ "offset": 0, "data": "6Q==" }), 2);
    for (size, code) in [(0, "OUT_OF_RANGE"), ((4 << 20) + 1, "OUT_OF_RANGE")] {
        assert_eq!(execute_rejected(&mut device, "ota.begin", json!({ "size": size }), 3).0, code);
    }
}
