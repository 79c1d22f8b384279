//! An intent is accepted: stored, told, and found again.

use serde_json::{Value, json};
use tenure_testkit::intents::{CHANNEL, Worker, channel, recording};
use tenure_testkit::{TestServer, listen, text};

// S1-6, S1-7, S1-8, S1-9, S1-11
#[test]
fn an_accepted_intent_becomes_a_published_session_and_takes_no_lease() {
    let server = TestServer::start();
    let mut stream = listen(&server, "/v1/events?type=intent.*", None);
    let mut wish = channel(CHANNEL);
    wish["params"] = json!({ "audio": "de", "quality": { "b": 1, "a": 2 } });
    wish["correlationId"] = json!("remote-17");
    let accepted = server.intend(&wish).with_status(202);
    let id = text(&accepted["session_id"]);
    let whole = json!({ "session_id": id, "state": "NEW", "correlationId": "remote-17" });
    assert_eq!(accepted, whole, "and nothing else");
    let told = stream.expect("intent.accepted");
    let stored = server.session(&id);
    assert_eq!(told.data["session"], stored, "it is told as it is stored");
    for (field, value) in [
        ("state", json!("NEW")),
        ("serviceRef", json!(CHANNEL)),
        ("profileID", json!("hd")),
        ("params", wish["params"].clone()),
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
    assert_eq!(server.leased(), Vec::<String>::new());
}

// S1-5, O-9
#[test]
fn a_repeated_intent_returns_the_same_session_without_an_event() {
    let server = TestServer::start();
    let first = server.intend(&channel(CHANNEL)).json();
    assert!(!text(&first["correlationId"]).is_empty(), "the server makes one");
    let head = server.head();
    let mut again = channel(CHANNEL);
    again["type"] = json!("stream.start");
    again["correlationId"] = json!("another");
    again["params"] = json!({});
    assert_eq!(server.intend(&again).json(), first, "with the session's own correlation");
    assert_eq!(server.head(), head, "nothing was stored, so nothing was told");
    assert_eq!(server.sessions().len(), 1);
    let worker = Worker::start(&server);
    let id = text(&first["session_id"]);
    worker.take(&id, 1);
    worker.run(&id);
    assert_eq!(server.intend(&channel(CHANNEL)).json()["state"], json!("RUNNING"));
}

// O-10
#[test]
fn an_intent_equal_to_an_ended_session_starts_a_new_one() {
    let server = TestServer::start();
    let worker = Worker::start(&server);
    let first = server.session_of(&channel(CHANNEL));
    worker.take(&first, 1);
    worker.finish(&first, "R_PIPELINE_EXITED");
    let second = server.session_of(&channel(CHANNEL));
    assert_ne!(first, second);
    assert_eq!(server.session(&second)["state"], json!("NEW"));
    assert_eq!(server.session_of(&channel(CHANNEL)), second);
    assert_eq!(server.session(&first)["outcome"], json!("COMPLETED"), "the first one is remembered");
}

#[test]
fn sessions_are_listed_newest_first_and_by_state() {
    let server = TestServer::start();
    let worker = Worker::start(&server);
    let ids: Vec<_> = (0..5).map(|number| server.session_of(&recording(&format!("r{number}"), 0))).collect();
    worker.take(&ids[1], 0);
    worker.take(&ids[2], 0);
    worker.run(&ids[2]);
    worker.finish(&ids[2], "R_PIPELINE_FAILED");
    let listed = |query: &str| -> Vec<String> {
        let answer = server.get(&format!("/api/v3/sessions{query}")).json();
        answer["sessions"].as_array().unwrap().iter().map(|session| text(&session["session_id"])).collect()
    };
    let newest_first: Vec<_> = ids.iter().rev().cloned().collect();
    assert_eq!(listed(""), newest_first);
    assert_eq!(listed("?limit=2"), newest_first[..2]);
    assert_eq!(listed("?state=STARTING"), [ids[1].clone()]);
    assert_eq!(listed("?state=ENDED"), [ids[2].clone()]);
    assert_eq!(listed("?state=NEW").len(), 3);
    for wrong in ["?state=new", "?state=", "?limit=0", "?limit=1001", "?colour=red"] {
        server.get(&format!("/api/v3/sessions{wrong}")).is_problem(400, "INVALID");
    }
    let ended = server.session(&ids[2]);
    let end: Vec<&Value> = ["state", "reason", "outcome"].iter().map(|field| &ended[field]).collect();
    assert_eq!(end, [&json!("ENDED"), &json!("R_PIPELINE_FAILED"), &json!("FAILED")]);
}
