//! Whatever comes: an answer with a code, and the connection lives on.

use std::time::Duration;

use serde_json::{Value, json};
use tenure_testkit::control::{ControlClient, run_on_each_clock};
use tenure_testkit::now;

#[test]
fn an_invalid_message_is_answered_and_the_connection_stays_open() {
    run_on_each_clock(|server| {
        let mut client = ControlClient::open(server);
        for (text, code) in [
            ("", "INVALID_JSON"),
            ("hello", "INVALID_JSON"),
            ("[]", "INVALID_JSON"),
            ("7", "INVALID_JSON"),
            (r#"{"type":"control.status","type":"control.status"}"#, "INVALID_JSON"),
            ("{}", "MISSING_FIELD"),
            (r#"{"type":7}"#, "INVALID_TYPE"),
            (r#"{"type":"control.steal"}"#, "UNKNOWN_COMMAND"),
            (r#"{"type":"ota.upload"}"#, "UNKNOWN_COMMAND"),
            (r#"{"type":"control.status","requestId":7}"#, "INVALID_TYPE"),
            (r#"{"type":"control.acquire"}"#, "MISSING_FIELD"),
            (r#"{"type":"control.acquire","clientName":"a"}"#, "MISSING_FIELD"),
            (r#"{"type":"control.acquire","clientName":7,"clientInstanceId":"b"}"#, "INVALID_TYPE"),
            (r#"{"type":"control.acquire","clientName":"","clientInstanceId":"b"}"#, "INVALID_VALUE"),
            (r#"{"type":"control.acquire","clientName":"a\u0007","clientInstanceId":"b"}"#, "INVALID_VALUE"),
            (
                r#"{"type":"control.acquire","clientName":"a","clientInstanceId":"b","scope":"room"}"#,
                "INVALID_VALUE",
            ),
        ] {
            client.send_text(text);
            let answer = client.receive();
            assert_eq!(
                (&answer["type"], &answer["success"]),
                (&json!("error"), &json!(false)),
                "{text}: {answer}"
            );
            assert_eq!(answer["error"]["code"], code, "{text}: {answer}");
            assert!(answer["error"]["message"].as_str().is_some_and(|message| message.len() > 8), "{answer}");
        }
        let deep = "[".repeat(40) + &"]".repeat(40);
        client.send_text(&format!(r#"{{"type":"control.status","x":{deep}}}"#));
        assert_eq!(client.receive()["error"]["code"], "INVALID_JSON");
        assert_eq!(client.status()["active"], json!(false));
    });
}

#[test]
fn frames_without_a_stream_or_with_a_wrong_size_are_answered_with_an_error() {
    run_on_each_clock(|server| {
        let mut client = ControlClient::open(server);
        let code = |client: &mut ControlClient, bytes: &[u8]| {
            client.send_bytes(bytes);
            let answer: Value = client.receive_where(|message| message["type"] == "error");
            answer["error"]["code"].as_str().unwrap().to_owned()
        };
        assert_eq!(code(&mut client, &[0; 976]), "LEASE_REQUIRED");
        client.acquire("K1 Composer");
        for size in [0, 1, 975, 976, 977, 100_000] {
            assert_eq!(code(&mut client, &vec![0; size]), "STREAM_NOT_ACTIVE");
        }
        assert_eq!(client.request("render.stream.start", &json!({}))["success"], json!(true));
        for size in [0, 1, 975, 976, 977, 100_000] {
            assert_eq!(code(&mut client, &vec![0; size]), "STREAM_FRAME_INVALID");
        }
        assert_eq!(client.status()["active"], json!(true));
    });
}

/// What a client may call itself is what it is called everywhere.
#[test]
fn client_names_in_any_language_are_accepted() {
    run_on_each_clock(|server| {
        let mut client = ControlClient::open(server);
        client.acquire("Übungsraum 灯 🎛");
        assert_eq!(client.status()["ownerClientName"], "Übungsraum 灯 🎛");
        let listed = server.get("/v1/leases?resource=control:global").json();
        assert_eq!(listed["leases"][0]["labels"]["client"], "Übungsraum 灯 🎛");
    });
}

/// Who floods is slowed, whatever it floods with.
#[test]
fn a_flood_of_pings_is_rate_limited() {
    let server = tenure_testkit::TestServer::start();
    let mut client = ControlClient::open(&server);
    let started = now();
    for _ in 0..2_500 {
        client.ping();
    }
    assert_eq!(client.status()["active"], json!(false));
    let took = now() - started;
    assert!(took >= Duration::from_millis(1_200), "2,500 of them in {took:?}");
    server.stop();
}
