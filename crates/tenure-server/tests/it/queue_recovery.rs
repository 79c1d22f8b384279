//! What becomes of those who wait when the server stops, or dies.

use std::path::Path;

use serde_json::json;
use tempfile::TempDir;
use tenure_testkit::{TestServer, json_string, lease_request, queued_lease_request, read_to_end};

#[test]
fn shutdown_answers_waiters_and_keeps_positions_with_a_key() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 600_000);
    let with_key = queued_lease_request("db:1", "b", 600_000, 600_000);
    let kept = server.enqueue(Some("mine"), &with_key, 1);
    let not_kept = server.enqueue(None, &queued_lease_request("db:1", "c", 600_000, 600_000), 2);
    let folder = server.stop();
    for (stream, word) in [(kept, "is kept"), (not_kept, "is over")] {
        let problem = read_to_end(stream).expect_problem(503, "UNAVAILABLE");
        assert!(json_string(&problem["detail"]).contains(word), "{problem}");
    }
    let server = TestServer::start_in(folder, |_| {}).unwrap();
    assert_eq!(server.waiter_count("db:1"), 1, "the one without a key left");
    let later = server.enqueue(None, &queued_lease_request("db:1", "d", 600_000, 600_000), 2);
    let again = server.start_post("/v1/leases", Some("mine"), &with_key);
    server.release(&id, &token);
    let answer = read_to_end(again);
    assert_eq!(json_string(&answer.json()["lease"]["holder"]), "b", "{answer:?}");
    let (id, token) = answer.lease_id_and_token();
    let server = TestServer::start_in(server.stop(), |_| {}).unwrap();
    assert_eq!(server.post_with_key("/v1/leases", "mine", &with_key).lease_id_and_token(), (id, token));
    drop(later);
}

#[test]
fn recovered_tickets_that_are_not_claimed_in_time_are_withdrawn() {
    let server = TestServer::start();
    server.acquire("db:1", "a", 600_000);
    let (one, other) = (
        queued_lease_request("db:1", "b", 600_000, 600_000),
        queued_lease_request("db:1", "c", 600_000, 600_000),
    );
    let streams = [server.enqueue(Some("one"), &one, 1), server.enqueue(Some("other"), &other, 2)];
    let server = TestServer::start_in(server.stop(), |_| {}).unwrap();
    drop(streams);
    assert_eq!(server.waiter_count("db:1"), 2);
    let back = server.start_post("/v1/leases", Some("other"), &other);
    server.wait_for_waiters("db:1", 1);
    drop(back);
    // It came back: from now on its key keeps its place, whatever its connection does.
    let waiters = server.get("/v1/leases?resource=db:1").json()["leases"][0]["recall"].clone();
    assert_eq!((&waiters["by"], &waiters["waiting"]), (&json!("c"), &json!(1)), "{waiters}");
}

#[test]
fn after_a_crash_waiters_without_a_key_are_withdrawn() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 600_000);
    let _gone = server.enqueue(None, &queued_lease_request("db:1", "gone", 600_000, 600_000), 1);
    let _kept = server.enqueue(Some("mine"), &queued_lease_request("db:1", "kept", 600_000, 600_000), 2);
    let server = TestServer::start_in(as_after_a_crash(server.folder.path()), |_| {}).unwrap();
    assert_eq!(server.waiter_count("db:1"), 1);
    server.release(&id, &token);
    assert_eq!(server.holders("db:1"), ["kept"]);
}

#[test]
fn after_a_crash_a_grant_to_a_lost_waiter_is_revoked() {
    let server = TestServer::start();
    let (id, _) = server.acquire("db:1", "a", 1_000);
    let gone = server.enqueue(None, &queued_lease_request("db:1", "gone", 600_000, 600_000), 1);
    let copy = as_after_a_crash(server.folder.path());
    server.wait_until_lease_ended(&id);
    // The new server finds that the lease is over and that somebody waited, who has its turn.
    let server = TestServer::start_in(copy, |_| {}).unwrap();
    let answer = server.post("/v1/leases", &queued_lease_request("db:1", "b", 600_000, 60_000));
    assert_eq!(answer.status, 201, "{answer:?}");
    let ended = server.get("/v1/leases?state=RELEASED&holder=gone").json();
    assert_eq!(ended["leases"][0]["end"], json!("DISCONNECTED"), "the test made it happen: {ended}");
    drop(gone);
    server.post("/v1/leases", &lease_request("db:1", "c", 60_000)).expect_problem(409, "HELD");
}

/// What a server that dies now leaves behind.
fn as_after_a_crash(folder: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    std::fs::create_dir(copy.path().join("data")).unwrap();
    for entry in std::fs::read_dir(folder.join("data")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, copy.path().join("data").join(path.file_name().unwrap())).unwrap();
    }
    copy
}
