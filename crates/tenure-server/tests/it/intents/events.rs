//! Who hears of sessions, and what is counted.

use serde_json::json;
use tenure_testkit::intents::{CHANNEL, FakeWorker, channel_intent};
use tenure_testkit::{TestServer, open_event_stream, open_event_stream_as};

// S1-7
#[test]
fn every_state_change_is_published_live_and_from_the_ledger_with_its_session() {
    let server = TestServer::start();
    let from = server.ledger_head() + 1;
    let worker = FakeWorker::start(&server);
    let mut live = open_event_stream(&server, "/v1/events?type=intent.*", None);
    let id = server.start_intent_session(&channel_intent(CHANNEL));
    worker.take(&id, 1);
    worker.run(&id);
    server.submit_intent(&json!({ "type": "stream.stop", "session_id": id }));
    worker.finish(&id, "R_STOPPED");
    let steps = ["accepted", "starting", "running", "stopping", "ended"];
    let states = ["NEW", "STARTING", "RUNNING", "STOPPING", "ENDED"];
    let (mut published, mut numbers) = (Vec::new(), Vec::new());
    for (step, state) in steps.iter().zip(states) {
        let event = live.expect(&format!("intent.{step}"));
        numbers.push(event.seq());
        let session = event.data["session"].clone();
        assert_eq!((&session["session_id"], &session["state"]), (&json!(id), &json!(state)));
        assert_eq!(session["slot"].is_null(), state == "NEW", "{session}");
        assert_eq!(session["process"].is_null(), ["NEW", "STARTING"].contains(&state), "{session}");
        assert_eq!(session["reason"].is_null(), state != "ENDED", "{session}");
        published.push(session);
    }
    assert_eq!(published[4], server.intent_session(&id));
    let revisions: Vec<_> = published.iter().map(|session| session["revision"].as_u64().unwrap()).collect();
    assert_eq!(revisions, [1, 2, 3, 4, 5]);
    // A server that was started anew reads them from the ledger.
    let server = TestServer::start_in(server.stop(), |_| {}).unwrap();
    let mut past = open_event_stream(&server, &format!("/v1/events?type=intent.*&from={from}"), None);
    for (step, session) in steps.iter().zip(&published) {
        assert_eq!(past.expect(&format!("intent.{step}")).data["session"], *session);
    }
    // Whoever begins in the middle is not told how it ended before it did.
    let mut middle =
        open_event_stream(&server, &format!("/v1/events?type=intent.*&from={}", numbers[2]), None);
    assert_eq!(middle.expect("intent.running").data["session"], published[2]);
    assert_eq!(middle.expect("intent.stopping").data["session"], published[3]);
    let mut usual = open_event_stream(&server, &format!("/v1/events?from={from}"), None);
    usual.expect("lease.issued");
}

#[test]
fn session_events_are_hidden_from_tokens_limited_to_other_channels() {
    let server = TestServer::start();
    let secret = server.create_token("limited", &["leases:read", "v3:write"], &["service:seen"]);
    let mut stream = open_event_stream_as(&server, &secret, "/v1/events?type=intent.*", None);
    server.start_intent_session(&channel_intent("hidden"));
    let id = server.start_intent_session(&channel_intent("seen"));
    assert_eq!(stream.expect("intent.accepted").data["session"]["session_id"], json!(id));
    let listed = server.request_with_token(&secret, "GET /api/v3/sessions", &json!(null)).json();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    let mut of_one = open_event_stream(&server, "/v1/events?type=intent.*&resource=service:seen", None);
    server.start_intent_session(&json!({ "serviceRef": "hidden", "profileID": "sd" }));
    let second = server.start_intent_session(&json!({ "serviceRef": "seen", "profileID": "sd" }));
    assert_eq!(of_one.expect("intent.accepted").data["session"]["session_id"], json!(second));
}

#[test]
fn metrics_count_sessions_by_state() {
    let server = TestServer::start();
    let worker = FakeWorker::start(&server);
    let (first, second) = (
        server.start_intent_session(&channel_intent("a")),
        server.start_intent_session(&channel_intent("b")),
    );
    server.start_intent_session(&channel_intent("b"));
    worker.take(&first, 1);
    worker.take(&second, 1);
    server.start_intent_session(&channel_intent("c"));
    for (state, count) in [("NEW", 1), ("STARTING", 1), ("RUNNING", 0), ("STOPPING", 0), ("ENDED", 1)] {
        assert_eq!(server.metric(&format!("tenure_sessions{{state=\"{state}\"}}")), count, "{state}");
    }
    assert_eq!(server.metric("tenure_intents_accepted_total"), 3);
}
