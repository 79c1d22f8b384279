//! Which intents are the same, also after a restart and after a change of the secret.

use serde_json::{Value, json};
use tenure_testkit::TestServer;
use tenure_testkit::intents::{CHANNEL, channel_intent, recording_intent, start_with_secret};

// S1-26, S1-27, S1-31
#[test]
fn equal_intents_of_different_callers_are_one_session() {
    let server = TestServer::start();
    let other = server.create_token("other", &["v3:write"], &[]);
    let first = server.start_intent_session(&channel_intent(CHANNEL));
    let theirs = server.request_with_token(&other, "POST /api/v3/intents", &channel_intent(CHANNEL)).json();
    assert_eq!(theirs["session_id"], json!(first));
    let with = |field: &str, value: Value| {
        let mut request = channel_intent(CHANNEL);
        request[field] = value;
        server.start_intent_session(&request)
    };
    let mut all = vec![
        first.clone(),
        with("profileID", json!("sd")),
        with("serviceRef", json!("1:0:19:283D:3FB:1:C00000:0:0:1:")),
        with("params", json!({ "audio": "de" })),
        with("params", json!({ "audio": "en" })),
        with("params", json!({ "audio": { "a": 1, "b": 2 } })),
    ];
    assert_eq!(with("params", json!({ "audio": { "b": 2, "a": 1 } })), all[5], "in whatever order");
    assert_eq!(with("params", json!({})), first, "no particulars are none");
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 6, "each is another session");
}

// S1-28, S1-29, S1-30
#[test]
fn a_recording_is_one_session_for_each_second() {
    let server = TestServer::start();
    let at = |id: &str, start_ms: u64| server.start_intent_session(&recording_intent(id, start_ms));
    let first = at("rec", 10_000);
    assert_eq!(at("rec", 10_500), first);
    assert_eq!(at("rec", 10_999), first);
    assert_ne!(at("rec", 60_000), first);
    assert_ne!(at("rec", 9_999), first);
    assert_ne!(at("other", 10_000), first);
    let from_the_start = server.start_intent_session(&json!({ "recordingID": "rec", "profileID": "hd" }));
    assert_eq!(at("rec", 999), from_the_start);
    assert_eq!(server.intent_session(&first)["startMs"], json!(10_000), "the first one said where");
    // What is live and what is recorded are never the same, whatever they are called.
    let live = server.start_intent_session(&channel_intent("rec"));
    assert_ne!(live, from_the_start);
    assert_eq!(server.start_intent_session(&channel_intent("rec")), live);
    assert_eq!(at("rec", 0), from_the_start);
    let stop = json!({ "type": "stream.stop", "session_id": from_the_start });
    assert_eq!(server.submit_intent(&stop).json()["state"], json!("ENDED"));
    assert_eq!(
        server.start_intent_session(&channel_intent("rec")),
        live,
        "it goes on, whatever became of the other"
    );
    assert_ne!(at("rec", 0), from_the_start);
    assert_eq!(server.start_intent_session(&channel_intent("rec")), live);
}

// S1-23
#[test]
fn without_a_configured_secret_keys_are_lost_on_a_restart() {
    let server = TestServer::start();
    let first = server.start_intent_session(&channel_intent(CHANNEL));
    assert_eq!(server.start_intent_session(&channel_intent(CHANNEL)), first);
    let server = TestServer::start_in(server.stop(), |_| {}).unwrap();
    assert_ne!(server.start_intent_session(&channel_intent(CHANNEL)), first);
    assert_eq!(server.intent_session(&first)["state"], json!("NEW"), "the session itself is not forgotten");
}

// S1-24, S1-25, S1-45
#[test]
fn keys_survive_a_restart_and_a_rotation_of_the_secret() {
    let server = start_with_secret(tempfile::tempdir().unwrap(), "the first", None);
    let first = server.start_intent_session(&channel_intent(CHANNEL));
    let server = start_with_secret(server.stop(), "the first", None);
    assert_eq!(server.start_intent_session(&channel_intent(CHANNEL)), first);
    let server = start_with_secret(server.stop(), "the second", Some("the first"));
    assert_eq!(server.start_intent_session(&channel_intent(CHANNEL)), first, "found by the previous one");
    let second = server.start_intent_session(&channel_intent("made with another one"));
    let server = start_with_secret(server.stop(), "the second", None);
    assert_eq!(
        server.start_intent_session(&channel_intent("made with another one")),
        second,
        "made by the current one"
    );
    assert_ne!(
        server.start_intent_session(&channel_intent(CHANNEL)),
        first,
        "nobody knows the first secret any more"
    );
    let folder = server.stop();
    for (path, content) in tenure_testkit::leak_recorder::files_below(folder.path()) {
        for secret in ["the first", "the second"] {
            let found = content.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!found, "{secret} is in {}", path.display());
        }
    }
}
