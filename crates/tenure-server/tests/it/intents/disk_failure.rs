//! What becomes of an intent when the ledger cannot be written.

use serde_json::json;
use tenure_testkit::intents::{channel_intent, set_secret, start_with_secret};
use tenure_testkit::server::set_segment_size;
use tenure_testkit::{TestServer, json_string};

// O-10
#[test]
fn an_intent_that_was_not_stored_leaves_no_key_and_no_session() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = TestServer::start_in(folder, |settings| {
        set_segment_size(settings, 4_096);
        set_secret(settings, "secret", None);
    })
    .unwrap();
    // Without its directory there is no next file, which is needed soon.
    let (data, elsewhere) = (server.folder.path().join("data"), server.folder.path().join("elsewhere"));
    std::fs::rename(&data, &elsewhere).unwrap();
    let mut accepted = Vec::new();
    let failed = (0..1_000).find_map(|number| {
        let name = format!("channel-{number}");
        let answer = server.submit_intent(&channel_intent(&name));
        if answer.status == 202 {
            accepted.push((name, json_string(&answer.json()["session_id"])));
            return None;
        }
        answer.expect_problem(503, answer.json()["code"].as_str().unwrap());
        Some(name)
    });
    let failed = failed.expect("the disk must fail at some time");
    assert_eq!(server.intent_sessions().len(), accepted.len(), "what is not durable is not shown");
    server.submit_intent(&channel_intent(&failed)).expect_problem(503, "UNAVAILABLE");
    server.stop_with_outcome().unwrap_err();
    std::fs::rename(&elsewhere, &data).unwrap();
    let server = start_with_secret(server.folder, "secret", None);
    assert_eq!(server.intent_sessions().len(), accepted.len());
    let found = server.intent_sessions().iter().any(|session| session["serviceRef"] == json!(failed));
    assert!(!found, "neither a session");
    let again = server.start_intent_session(&channel_intent(&failed));
    assert!(!accepted.iter().any(|(_, id)| *id == again), "nor a key");
    let (name, id) = accepted.last().expect("some were stored");
    assert_eq!(server.start_intent_session(&channel_intent(name)), *id, "what was acknowledged is there");
}
