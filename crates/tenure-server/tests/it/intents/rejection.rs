//! What is refused, in which order, and that it leaves no trace.

use serde_json::{Value, json};
use tenure_testkit::TestServer;
use tenure_testkit::intents::{CHANNEL, channel_intent, recording_intent};

const LINE: &str = "POST /api/v3/intents";

/// Does something that must leave no trace in the ledger, and no session.
#[track_caller]
fn without_a_trace(server: &TestServer, refused: impl FnOnce()) {
    let head = server.ledger_head();
    refused();
    assert_eq!(server.ledger_head(), head, "something was stored");
}

// S1-2, S1-3, S1-44
#[test]
fn authentication_is_checked_before_permission_and_permission_before_the_body() {
    let server = TestServer::start();
    let bare = ["Content-Type: application/json".to_owned()];
    let wrong = server.create_token("wrong", &["leases:read", "leases:write", "control:write"], &[]);
    let right = server.create_token("right", &["v3:write"], &[]);
    let limited = server.create_token("limited", &["v3:write"], &["service:other"]);
    let (sound, unsound) = (channel_intent(CHANNEL), json!({ "colour": "red" }));
    without_a_trace(&server, || {
        for body in [&sound, &unsound] {
            server.request(LINE, &bare, &body.to_string()).expect_problem(401, "UNAUTHORIZED");
            server.request_with_token("tnr_unknown", LINE, body).expect_problem(401, "UNAUTHORIZED");
            let refused = server.request_with_token(&wrong, LINE, body).expect_problem(403, "FORBIDDEN");
            assert!(refused["detail"].as_str().unwrap().contains("v3:write"), "{refused}");
        }
        server.request_with_token(&limited, LINE, &sound).expect_problem(403, "FORBIDDEN");
        server.request_with_token(&right, LINE, &unsound).expect_problem(400, "INVALID");
        for line in ["GET /api/v3/sessions", "GET /api/v3/sessions/x", "DELETE /api/v3/sessions/x"] {
            server.request(line, &[], "").expect_problem(401, "UNAUTHORIZED");
            server.request_with_token(&wrong, line, &Value::Null).expect_problem(403, "FORBIDDEN");
        }
    });
    assert_eq!(server.intent_sessions(), Vec::<Value>::new());
    assert_eq!(server.request_with_token(&right, LINE, &sound).status, 202);
    assert_eq!(server.request_with_token(&limited, LINE, &channel_intent("other")).status, 202);
}

// S1-44
#[test]
fn a_rejected_intent_takes_no_lease() {
    let server = TestServer::start_with(|settings| settings.intents.api_leases = true);
    let wrong = server.create_token("wrong", &["leases:write"], &[]);
    without_a_trace(&server, || {
        server.request_with_token(&wrong, LINE, &channel_intent(CHANNEL)).expect_problem(403, "FORBIDDEN");
        server.request_with_token("", LINE, &channel_intent(CHANNEL)).expect_problem(401, "UNAUTHORIZED");
    });
    assert_eq!(server.leased_resources(), Vec::<String>::new());
}

// S1-4, S1-8
#[test]
fn an_invalid_intent_is_a_400_and_stores_nothing() {
    let server = TestServer::start();
    let with = |field: &str, value: Value| {
        let mut request = channel_intent(CHANNEL);
        request[field] = value;
        request
    };
    let long = "x".repeat(1_025);
    without_a_trace(&server, || {
        for intent in [
            json!({}),
            json!([]),
            json!({ "serviceRef": CHANNEL }),
            json!({ "profileID": "hd" }),
            json!({ "serviceRef": "", "profileID": "hd" }),
            json!({ "serviceRef": CHANNEL, "profileID": "" }),
            json!({ "serviceRef": "a|b", "profileID": "hd" }),
            json!({ "serviceRef": "-rf", "profileID": "hd" }),
            json!({ "serviceRef": "a\nb", "profileID": "hd" }),
            json!({ "serviceRef": long, "profileID": "hd" }),
            json!({ "recordingID": "a|b", "profileID": "hd" }),
            with("profileID", json!("h|d")),
            with("profileID", json!("h\u{1f}d")),
            with("profileID", json!(7)),
            with("recordingID", json!("rec")),
            with("startMs", json!(0)),
            with("type", json!("stream.pause")),
            with("type", Value::Null),
            with("session_id", json!("ses_1")),
            with("params", json!("audio=de")),
            with("params", json!([])),
            with("params", json!({ "text": "x".repeat(70_000) })),
            with("correlationId", json!(long)),
            with("correlationId", json!("a\nb")),
            with("colour", json!("red")),
            json!({ "recordingID": "rec", "profileID": "hd", "startMs": -1 }),
            json!({ "recordingID": "rec", "profileID": "hd", "startMs": 1.5 }),
            json!({ "type": "stream.stop" }),
            json!({ "type": "stream.stop", "session_id": "x", "profileID": "hd" }),
            json!({ "type": "stream.stop", "session_id": "x", "serviceRef": CHANNEL }),
            json!({ "type": "stream.stop", "session_id": "x", "params": {} }),
        ] {
            server.submit_intent(&intent).expect_problem(400, "INVALID");
        }
        for text in [r#"{"serviceRef":"a","serviceRef":"a","profileID":"hd"}"#, "{", "", "null"] {
            server.post_text("/api/v3/intents", text).expect_problem(400, "INVALID");
        }
        let text = [server.bearer(), "Content-Type: text/plain".to_owned()];
        server.request(LINE, &text, &channel_intent("a").to_string()).expect_problem(415, "UNSUPPORTED_TYPE");
    });
    assert_eq!(server.intent_sessions(), Vec::<Value>::new());
    assert_eq!(server.submit_intent(&recording_intent("rec", u64::MAX)).status, 202);
}

#[test]
fn an_intent_body_may_have_one_mebibyte() {
    let server = TestServer::start();
    let sized = |length: usize| {
        let body = channel_intent(CHANNEL).to_string();
        format!("{}{}}}", body.strip_suffix('}').unwrap(), " ".repeat(length - body.len()))
    };
    assert_eq!(server.post_text("/api/v3/intents", &sized(1 << 20)).status, 202);
    server.post_text("/api/v3/intents", &sized((1 << 20) + 1)).expect_problem(413, "TOO_LARGE");
}
