//! An intent is accepted: stored, told, and found again.

use serde_json::{Value, json};
use tenure_testkit::intents::{CHANNEL, FakeWorker, channel_intent, recording_intent};
use tenure_testkit::{TestServer, json_string, open_event_stream};

// S1-6, S1-7, S1-8, S1-9, S1-11
#[test]
fn an_accepted_intent_becomes_a_published_session_and_takes_no_lease() {
    let server = TestServer::start();
    let mut stream = open_event_stream(&server, "/v1/events?type=intent.*", None);
    let mut request = channel_intent(CHANNEL);
    request["params"] = json!({ "audio": "de", "quality": { "b": 1, "a": 2 } });
    request["correlationId"] = json!("remote-17");
    let accepted = server.submit_intent(&request).expect_status(202);
    let id = json_string(&accepted["session_id"]);
    let whole = json!({ "session_id": id, "state": "NEW", "correlationId": "remote-17" });
    assert_eq!(accepted, whole, "and nothing else");
    let published = stream.expect("intent.accepted");
    let stored = server.intent_session(&id);
    assert_eq!(published.data["session"], stored, "it is told as it is stored");
    for (field, value) in [
        ("state", json!("NEW")),
        ("serviceRef", json!(CHANNEL)),
        ("profileID", json!("hd")),
        ("params", request["params"].clone()),
        ("correlationId", json!("remote-17")),
        ("revision", json!(1)),
    ] {
        assert_eq!(stored[field], value, "{stored}");
    }
    assert!(
        ["recordingID", "startMs", "slot", "worker", "reason"]
            .iter()
            .all(|field| stored.get(field).is_none())
    );
    assert_eq!(server.leased_resources(), Vec::<String>::new());
}

// S1-5, O-9
#[test]
fn a_repeated_intent_returns_the_same_session_without_an_event() {
    let server = TestServer::start();
    let first = server.submit_intent(&channel_intent(CHANNEL)).json();
    assert!(!json_string(&first["correlationId"]).is_empty(), "the server makes one");
    let head = server.ledger_head();
    let mut again = channel_intent(CHANNEL);
    again["type"] = json!("stream.start");
    again["correlationId"] = json!("another");
    again["params"] = json!({});
    assert_eq!(server.submit_intent(&again).json(), first, "with the session's own correlation");
    assert_eq!(server.ledger_head(), head, "nothing was stored, so nothing was told");
    assert_eq!(server.intent_sessions().len(), 1);
    let worker = FakeWorker::start(&server);
    let id = json_string(&first["session_id"]);
    worker.take(&id, 1);
    worker.run(&id);
    assert_eq!(server.submit_intent(&channel_intent(CHANNEL)).json()["state"], json!("RUNNING"));
}

// O-10
#[test]
fn an_intent_equal_to_an_ended_session_starts_a_new_one() {
    let server = TestServer::start();
    let worker = FakeWorker::start(&server);
    let first = server.start_intent_session(&channel_intent(CHANNEL));
    worker.take(&first, 1);
    worker.finish(&first, "R_PIPELINE_EXITED");
    let second = server.start_intent_session(&channel_intent(CHANNEL));
    assert_ne!(first, second);
    assert_eq!(server.intent_session(&second)["state"], json!("NEW"));
    assert_eq!(server.start_intent_session(&channel_intent(CHANNEL)), second);
    assert_eq!(server.intent_session(&first)["outcome"], json!("COMPLETED"), "the first one is remembered");
}

#[test]
fn sessions_are_listed_newest_first_and_by_state() {
    let server = TestServer::start();
    let worker = FakeWorker::start(&server);
    let ids: Vec<_> = (0..5)
        .map(|number| server.start_intent_session(&recording_intent(&format!("r{number}"), 0)))
        .collect();
    worker.take(&ids[1], 0);
    worker.take(&ids[2], 0);
    worker.run(&ids[2]);
    worker.finish(&ids[2], "R_PIPELINE_FAILED");
    let listed = |query: &str| -> Vec<String> {
        let answer = server.get(&format!("/api/v3/sessions{query}")).json();
        answer["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|session| json_string(&session["session_id"]))
            .collect()
    };
    let newest_first: Vec<_> = ids.iter().rev().cloned().collect();
    assert_eq!(listed(""), newest_first);
    assert_eq!(listed("?limit=2"), newest_first[..2]);
    assert_eq!(listed("?state=STARTING"), [ids[1].clone()]);
    assert_eq!(listed("?state=ENDED"), [ids[2].clone()]);
    assert_eq!(listed("?state=NEW").len(), 3);
    for wrong in ["?state=new", "?state=", "?limit=0", "?limit=1001", "?colour=red"] {
        server.get(&format!("/api/v3/sessions{wrong}")).expect_problem(400, "INVALID");
    }
    let ended = server.intent_session(&ids[2]);
    let end: Vec<&Value> = ["state", "reason", "outcome"].iter().map(|field| &ended[field]).collect();
    assert_eq!(end, [&json!("ENDED"), &json!("R_PIPELINE_FAILED"), &json!("FAILED")]);
}
