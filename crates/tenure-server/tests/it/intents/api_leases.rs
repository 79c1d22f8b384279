//! The change from an API that takes leases to one that does not, while it serves.

use std::time::Duration;

use serde_json::{Value, json};
use tenure_testkit::intents::{CHANNEL, FakeWorker, channel_intent, recording_intent};
use tenure_testkit::{TestServer, json_string, sleep, wait_until};

fn in_phase_one(change: impl FnOnce(&mut tenure_server::IntentSettings)) -> TestServer {
    let folder = tempfile::tempdir().unwrap();
    TestServer::start_in(folder, |settings| {
        settings.intents.api_leases = true;
        change(&mut settings.intents);
    })
    .unwrap()
}

// S1-34, S1-48, O-13
#[test]
fn with_api_leases_a_busy_target_is_rejected() {
    let server = in_phase_one(|_| {});
    let id = server.start_intent_session(&channel_intent(CHANNEL));
    let leases = server.get("/v1/leases").json()["leases"].clone();
    let resource = format!("service:{CHANNEL}");
    assert_eq!((&leases[0]["resource"], &leases[0]["holder"]), (&json!(resource), &json!(id)));
    assert_eq!((&leases[0]["ttlMs"], leases.as_array().unwrap().len()), (&json!(30_000), 1));
    let head = server.ledger_head();
    for request in [channel_intent(CHANNEL), json!({ "serviceRef": CHANNEL, "profileID": "sd" })] {
        let answer = server.submit_intent(&request);
        let refused = answer.expect_problem(409, "LEASE_BUSY");
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert_eq!((&refused["holder"], &refused["resource"]), (&json!(id), &json!(resource)));
        assert!(refused["remainingMs"].as_u64().unwrap() <= 30_000, "{refused}");
    }
    assert_eq!(server.ledger_head(), head, "a refusal is no event");
    assert_eq!(server.start_intent_session(&recording_intent("rec", 61_500)).len(), id.len());
    assert!(server.leased_resources().contains(&"recording:rec:61".to_owned()));
    // The worker takes what the API took: the same lease, and not one of its own beside it.
    let worker = FakeWorker::start(&server);
    let taken = worker.take(&id, 1);
    assert_eq!(taken["taken"]["fences"][0], leases[0]["fence"]);
    assert_eq!(server.leased_resources().iter().filter(|name| **name == resource).count(), 1);
}

// S1-35, S1-9, S1-10
#[test]
fn without_api_leases_every_intent_is_accepted_and_the_worker_finds_the_conflict() {
    let server = TestServer::start();
    let (first, second) = (channel_intent(CHANNEL), json!({ "serviceRef": CHANNEL, "profileID": "sd" }));
    let (first, second) = (server.start_intent_session(&first), server.start_intent_session(&second));
    // Somebody else's lease is no business of the API either, and nobody asks how many tuners there are.
    server.acquire("service:taken", "somebody", 60_000);
    let (taken, no_tuner) = (
        server.start_intent_session(&channel_intent("taken")),
        server.start_intent_session(&channel_intent("no tuner")),
    );
    assert_eq!(server.leased_resources(), ["service:taken"]);
    let worker = FakeWorker::start(&server);
    assert_eq!(worker.take(&first, 1)["state"], json!("STARTING"));
    assert_eq!(worker.take(&second, 1)["outcome"], json!("REJECTED_BUSY"));
    assert_eq!(worker.take(&taken, 1)["outcome"], json!("REJECTED_BUSY"));
    assert_eq!(worker.take(&no_tuner, 1)["outcome"], json!("REJECTED_NO_TUNER"));
}

/// Two equal intents at the same time: their statuses, and which sessions they are.
fn two_at_once(server: &TestServer) -> (Vec<u16>, Vec<Value>) {
    let answers: Vec<_> = std::thread::scope(|scope| {
        let both = [(); 2].map(|()| scope.spawn(|| server.submit_intent(&channel_intent(CHANNEL))));
        both.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let mut statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    let accepted = answers.iter().filter(|answer| answer.status == 202);
    (statuses, accepted.map(|answer| answer.json()["session_id"].clone()).collect())
}

// S1-37
#[test]
fn with_api_leases_one_of_two_concurrent_equal_intents_is_accepted() {
    let server = in_phase_one(|_| {});
    assert_eq!(two_at_once(&server).0, [202, 409]);
    assert_eq!(server.intent_sessions().len(), 1);
}

// S1-38
#[test]
fn without_api_leases_two_concurrent_equal_intents_are_one_session() {
    let server = TestServer::start();
    let (statuses, sessions) = two_at_once(&server);
    assert_eq!(statuses, [202, 202]);
    assert_eq!(sessions[0], sessions[1]);
}

// S1-40
#[test]
fn intents_with_different_params_are_different_sessions() {
    let server = TestServer::start();
    let with =
        |audio: &str| json!({ "serviceRef": CHANNEL, "profileID": "hd", "params": { "audio": audio } });
    assert_ne!(server.start_intent_session(&with("de")), server.start_intent_session(&with("en")));
}

// S1-36
#[test]
fn api_leases_can_be_switched_while_intents_arrive() {
    let server = in_phase_one(|_| {});
    let id = server.start_intent_session(&channel_intent(CHANNEL));
    server.submit_intent(&channel_intent(CHANNEL)).expect_problem(409, "LEASE_BUSY");
    server.set_api_leases(false);
    assert_eq!(
        server.start_intent_session(&channel_intent(CHANNEL)),
        id,
        "what was accepted before is found"
    );
    std::thread::scope(|scope| {
        let senders: Vec<_> = (0..4)
            .map(|sender| {
                let server = &server;
                scope.spawn(move || {
                    let ids = (0..25).map(|number| {
                        server.start_intent_session(&recording_intent(&format!("{sender}-{number}"), 0))
                    });
                    ids.collect::<Vec<_>>()
                })
            })
            .collect();
        (0..20).for_each(|turn| server.set_api_leases(turn % 2 == 0));
        let mut ids: Vec<_> = senders.into_iter().flat_map(|sender| sender.join().unwrap()).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 100);
    });
    let worker = FakeWorker::start(&server);
    for session in server.intent_sessions() {
        assert_eq!(
            worker.take(&json_string(&session["session_id"]), 1)["state"],
            json!("STARTING"),
            "in whichever phase"
        );
    }
}

// S1-47
#[test]
fn a_lease_taken_by_the_api_expires_if_no_worker_takes_the_session() {
    let server = in_phase_one(|intents| intents.lease_ttl_ms = 1_000);
    let id = server.start_intent_session(&channel_intent(CHANNEL));
    wait_until("free again", || server.leased_resources().is_empty());
    assert_eq!(server.intent_session(&id)["state"], json!("NEW"), "only the lease is over");
    let second = server.start_intent_session(&json!({ "serviceRef": CHANNEL, "profileID": "sd" }));
    // Whoever of them the worker takes first has it; nothing of the other is in its way for longer than its time.
    sleep(Duration::from_millis(1_100));
    let worker = FakeWorker::start(&server);
    assert_eq!(worker.take(&id, 1)["state"], json!("STARTING"));
    assert_eq!(worker.take(&second, 1)["outcome"], json!("REJECTED_BUSY"));
}

// S1-47
#[test]
fn a_session_not_taken_in_time_ends_with_its_lease() {
    let server = in_phase_one(|intents| intents.start_within_ms = 1_000);
    let id = server.start_intent_session(&channel_intent(CHANNEL));
    let ended = server.get(&format!("/api/v3/sessions/{id}?waitMs=60000")).json();
    assert_eq!((&ended["state"], &ended["outcome"]), (&json!("ENDED"), &json!("REJECTED_NO_WORKER")));
    assert_eq!(server.leased_resources(), Vec::<String>::new());
}
