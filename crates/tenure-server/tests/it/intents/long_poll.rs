//! Waiting for a session: whoever polls is told when it changes, and not before.

use std::io::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use tenure_testkit::intents::{CHANNEL, FakeWorker, channel_intent};
use tenure_testkit::{TestServer, now, read_to_end, sleep};

fn poll(server: &TestServer, id: &str, query: &str) -> Value {
    server.get(&format!("/api/v3/sessions/{id}?{query}")).expect_status(200)
}

// S1-33
#[test]
fn polling_returns_at_once_when_the_session_is_rejected_as_busy() {
    let server = TestServer::start();
    let worker = FakeWorker::start(&server);
    let (first, second) = (channel_intent(CHANNEL), json!({ "serviceRef": CHANNEL, "profileID": "sd" }));
    let (first, second) = (server.start_intent_session(&first), server.start_intent_session(&second));
    std::thread::scope(|scope| {
        let running = scope.spawn(|| poll(&server, &first, "waitMs=60000"));
        let starting = running_after(&worker, &first);
        let received = running.join().unwrap();
        assert!(["STARTING", "RUNNING"].contains(&received["state"].as_str().unwrap()), "{received}");
        assert_eq!(starting["state"], json!("RUNNING"));
        let busy = scope.spawn(|| poll(&server, &second, "waitMs=60000"));
        worker.take(&second, 2);
        let session = busy.join().unwrap();
        let end: Vec<_> = ["state", "reason", "outcome"].iter().map(|field| &session[field]).collect();
        assert_eq!(end, [&json!("ENDED"), &json!("R_LEASE_BUSY"), &json!("REJECTED_BUSY")]);
    });
    // What is over, or runs, is not waited for.
    assert_eq!(poll(&server, &second, "waitMs=60000")["state"], json!("ENDED"));
    assert_eq!(poll(&server, &first, "waitMs=60000")["state"], json!("RUNNING"));
}

fn running_after(worker: &FakeWorker<'_>, id: &str) -> Value {
    worker.take(id, 1);
    worker.run(id)
}

#[test]
fn polling_with_a_known_revision_returns_at_a_later_one() {
    let server = TestServer::start();
    let worker = FakeWorker::start(&server);
    let id = server.start_intent_session(&channel_intent(CHANNEL));
    assert_eq!(poll(&server, &id, "since=0&waitMs=60000")["state"], json!("NEW"), "it is later already");
    worker.take(&id, 1);
    worker.run(&id);
    let known = poll(&server, &id, "")["revision"].clone();
    std::thread::scope(|scope| {
        let polling = scope.spawn(|| poll(&server, &id, &format!("since={known}&waitMs=60000")));
        // Another session is no reason to wake.
        server.start_intent_session(&channel_intent("another"));
        worker.finish(&id, "R_PIPELINE_EXITED");
        assert_eq!(polling.join().unwrap()["state"], json!("ENDED"));
    });
    let started = now();
    let same = poll(&server, &id, "since=99&waitMs=300");
    assert!((now() - started) >= Duration::from_millis(300), "it waited in vain");
    assert_eq!(same["state"], json!("ENDED"));
    for wrong in ["waitMs=60001", "waitMs=-1", "waitMs=soon", "since=x", "wait=1"] {
        server.get(&format!("/api/v3/sessions/{id}?{wrong}")).expect_problem(400, "INVALID");
    }
}

#[test]
fn polling_ends_with_the_server_and_with_the_token() {
    let mut server = TestServer::start();
    let id = server.start_intent_session(&channel_intent(CHANNEL));
    let begin = |server: &TestServer, bearer: &str| {
        let mut stream = server.connect();
        let path = format!("/api/v3/sessions/{id}?waitMs=60000");
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\n{bearer}\r\nConnection: close\r\n\r\n",
            server.address
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let request = json!({ "name": "brief", "scopes": ["v3:write"], "expiresInMs": 500 });
    let brief = server.post("/v1/tokens", &request).json();
    let brief = begin(&server, &format!("Authorization: Bearer {}", brief["secret"].as_str().unwrap()));
    let waiting = begin(&server, &server.bearer());
    // So that it is waiting by then, and the token is over.
    sleep(Duration::from_millis(600));
    server.start_intent_session(&channel_intent("another"));
    read_to_end(brief).expect_problem(401, "UNAUTHORIZED");
    let started = now();
    server.stop_with_outcome().unwrap();
    let answer = read_to_end(waiting);
    assert_eq!((answer.status, &answer.json()["state"]), (200, &json!("NEW")));
    assert!((now() - started) < Duration::from_secs(8), "the server did not wait for it");
}
