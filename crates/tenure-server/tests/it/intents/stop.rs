//! The end of a session, because somebody wants it.

use serde_json::json;
use tenure_testkit::TestServer;
use tenure_testkit::intents::{CHANNEL, FakeWorker, channel_intent};

fn stop(server: &TestServer, id: &str) -> tenure_testkit::Response {
    server.submit_intent(&json!({ "type": "stream.stop", "session_id": id }))
}

#[test]
fn stop_of_a_session_without_a_worker_ends_it_at_once() {
    let server = TestServer::start();
    for is_delete in [false, true] {
        let accepted = server.submit_intent(&channel_intent(CHANNEL)).json();
        let id = accepted["session_id"].as_str().unwrap();
        let line = format!("DELETE /api/v3/sessions/{id}");
        let ask =
            || if is_delete { server.request(&line, &[server.bearer()], "") } else { stop(&server, id) };
        let answer = ask().expect_status(202);
        let ended = json!({ "session_id": id, "state": "ENDED", "reason": "R_STOPPED", "outcome": "STOPPED",
            "correlationId": accepted["correlationId"] });
        assert_eq!(answer, ended);
        let head = server.ledger_head();
        assert_eq!(
            (ask().json(), server.ledger_head()),
            (ended, head),
            "ending what is over changes nothing"
        );
    }
}

#[test]
fn stop_of_a_running_session_is_reported_to_its_worker() {
    let server = TestServer::start();
    let worker = FakeWorker::start(&server);
    let id = server.start_intent_session(&channel_intent(CHANNEL));
    worker.take(&id, 1);
    worker.run(&id);
    let since = worker.changes(0, 0)["revision"].as_u64().unwrap();
    std::thread::scope(|scope| {
        let polling = scope.spawn(|| worker.changes(since, 60_000));
        assert_eq!(stop(&server, &id).json()["state"], json!("STOPPING"));
        assert_eq!(polling.join().unwrap()["sessions"][0]["state"], json!("STOPPING"));
    });
    assert_eq!(
        worker.keep_alive(&[&id])["sessions"][0]["state"],
        json!("STOPPING"),
        "its leases live on until then"
    );
    assert_eq!(worker.finish(&id, "R_STOPPED")["outcome"], json!("STOPPED"));
    assert_eq!(stop(&server, &id).json()["state"], json!("ENDED"));
}

#[test]
fn stop_of_an_unknown_or_foreign_session_is_rejected() {
    let server = TestServer::start();
    stop(&server, "ses_unknown").expect_problem(404, "NOT_FOUND");
    stop(&server, "").expect_problem(404, "NOT_FOUND");
    server
        .request("DELETE /api/v3/sessions/ses_unknown", &[server.bearer()], "")
        .expect_problem(404, "NOT_FOUND");
    server.get("/api/v3/sessions/ses_unknown").expect_problem(404, "NOT_FOUND");
    server.get("/api/v3/sessions/%ff").expect_problem(404, "NOT_FOUND");
    let id = server.start_intent_session(&channel_intent(CHANNEL));
    let limited = server.create_token("limited", &["v3:write"], &["service:other"]);
    for line in ["GET", "DELETE"] {
        let line = format!("{line} /api/v3/sessions/{id}");
        server.request_with_token(&limited, &line, &json!(null)).expect_problem(403, "FORBIDDEN");
    }
    let theirs = json!({ "type": "stream.stop", "session_id": id });
    server.request_with_token(&limited, "POST /api/v3/intents", &theirs).expect_problem(403, "FORBIDDEN");
    assert_eq!(server.intent_session(&id)["state"], json!("NEW"));
    let seen = server.request_with_token(&limited, "GET /api/v3/sessions", &json!(null)).json();
    assert_eq!(seen, json!({ "sessions": [] }));
}
