//! The one worker: over HTTP, and in the server's own process.

use serde_json::{Value, json};
use tenure_api::{
    Code, IntentSessionChangesRequest, IntentSessionFinishRequest, IntentSessionRenewalRequest,
    IntentSessionRunningReport, IntentSessionTakeRequest, IntentSessionWipeRequest, LeaderLockReleaseRequest,
    LeaderLockRequest,
};
use tenure_testkit::intents::{CHANNEL, FakeWorker, channel_intent, recording_intent, worker_name};
use tenure_testkit::{TestServer, json_string};

fn guard(server: &TestServer, worker: &str, dead: Option<&str>) -> tenure_testkit::Response {
    let mut body = json!({ "worker": worker, "ttlMs": 60_000 });
    if let Some(dead) = dead {
        body["dead"] = json!(dead);
    }
    server.post("/api/v3/worker/guard", &body)
}

#[test]
fn only_one_worker_holds_the_guard_and_renews_it() {
    let server = TestServer::start();
    let first = guard(&server, &worker_name(1), None).json();
    assert!((59_000..=60_000).contains(&first["remainingMs"].as_u64().unwrap()), "{first}");
    assert_eq!(guard(&server, &worker_name(1), None).json()["guard"], first["guard"], "it renews");
    let refused = guard(&server, &worker_name(2), None).expect_problem(409, "HELD");
    assert_eq!(refused["holder"], json!(worker_name(1)));
    assert!(refused["remainingMs"].as_u64().unwrap() > 59_000, "{refused}");
    let fence = json!({ "guard": first["guard"] });
    assert_eq!(server.post("/api/v3/worker/leave", &fence).json(), json!({}));
    assert_eq!(server.post("/api/v3/worker/leave", &fence).json(), json!({}), "twice is as good");
    let second = guard(&server, &worker_name(2), None).json();
    assert_ne!(second["guard"], first["guard"]);
    let stranger = json!({ "guard": 4_711 });
    server.post("/api/v3/worker/leave", &stranger).expect_problem(409, "GUARD_LOST");
}

#[test]
fn the_guard_of_a_worker_proven_dead_is_reclaimed() {
    let server = TestServer::start();
    let first = guard(&server, &worker_name(1), None).json();
    let elsewhere = "worker:5d1e-b008:4026531836:9:7";
    let contained = "worker:5d1e-b007:4026531837:9:7";
    for (asks, dead) in [
        (worker_name(2), worker_name(3)),
        (elsewhere.to_owned(), worker_name(1)),
        (contained.to_owned(), worker_name(1)),
    ] {
        guard(&server, &asks, Some(&dead)).expect_problem(409, "HELD");
    }
    let second = guard(&server, &worker_name(2), Some(&worker_name(1))).json();
    assert!(second["guard"].as_u64().unwrap() > first["guard"].as_u64().unwrap(), "{second}");
    let fields = json!({ "guard": first["guard"], "ttlMs": 30_000, "sessions": [] });
    server.post("/api/v3/worker/keep", &fields).expect_problem(409, "GUARD_LOST");
    for wrong in ["", "me", "worker:a:b:c:d", "system:orchestrator"] {
        guard(&server, wrong, None).expect_problem(400, "INVALID");
        guard(&server, &worker_name(2), Some(wrong)).expect_problem(400, "INVALID");
    }
}

#[test]
fn a_session_is_taken_run_and_finished_with_its_leases() {
    let server = TestServer::start();
    let worker = FakeWorker::start(&server);
    let id = server.start_intent_session(&channel_intent(CHANNEL));
    let taken = worker.take(&id, 2);
    assert_eq!((&taken["state"], &taken["taken"]["slot"]), (&json!("STARTING"), &json!(0)));
    assert!(taken["taken"]["remainingMs"].as_u64().unwrap() > 29_000, "{taken}");
    let leases = taken["taken"]["leases"].as_array().unwrap();
    let shown =
        |lease: &Value| server.get(&format!("/v1/leases/{}", json_string(lease))).json()["lease"].clone();
    assert_eq!(shown(&leases[0])["resource"], json!(format!("service:{CHANNEL}")));
    assert_eq!(shown(&leases[1])["resource"], json!("tuner:0"));
    assert_eq!(shown(&leases[1])["holder"], json!(id));
    assert_eq!(shown(&leases[1])["fence"], taken["taken"]["fences"][1]);
    assert_eq!(worker.run(&id)["state"], json!("RUNNING"));
    let kept = worker.keep_alive(&[&id, "ses_unknown"]);
    let (one, other) = (&kept["sessions"][0], &kept["sessions"][1]);
    assert_eq!(
        (&one["held"], &one["state"], &one["session_id"]),
        (&json!(true), &json!("RUNNING"), &json!(id))
    );
    assert_eq!((&other["held"], &other["remainingMs"]), (&json!(false), &json!(0)));
    let shown = server.intent_session(&id);
    assert_eq!((&shown["worker"], &shown["process"]), (&json!(worker_name(1)), &json!("pid 17")));
    assert_eq!(worker.finish(&id, "R_PIPELINE_EXITED")["outcome"], json!("COMPLETED"));
    assert!(
        !server
            .leased_resources()
            .iter()
            .any(|name| name.starts_with("service:") || name.starts_with("tuner:"))
    );
    worker
        .request("finish", &json!({ "session_id": id, "reason": "R_LEASE_BUSY" }))
        .expect_problem(400, "INVALID");
    let unknown = json!({ "session_id": "ses_unknown", "tuners": 1, "ttlMs": 30_000 });
    worker.request("take", &unknown).expect_problem(404, "NOT_FOUND");
    worker
        .request("take", &json!({ "session_id": id, "tuners": 65, "ttlMs": 30_000 }))
        .expect_problem(400, "INVALID");
    let short = server.start_intent_session(&recording_intent("r", 0));
    let short = json!({ "session_id": short, "tuners": 0, "ttlMs": 1 });
    worker.request("take", &short).expect_problem(400, "TTL_OUT_OF_RANGE");
}

#[test]
fn changes_returns_when_a_session_changes_or_the_guard_is_lost() {
    let server = TestServer::start();
    let worker = FakeWorker::start(&server);
    assert_eq!(worker.changes(0, 0), json!({ "revision": 0, "sessions": [], "more": false }));
    let first = std::thread::scope(|scope| {
        let polling = scope.spawn(|| worker.changes(0, 60_000));
        let id = server.start_intent_session(&channel_intent(CHANNEL));
        let changes = polling.join().unwrap();
        assert_eq!((&changes["revision"], &changes["sessions"][0]["session_id"]), (&json!(1), &json!(id)));
        id
    });
    worker.take(&first, 1);
    worker.finish(&first, "R_PIPELINE_EXITED");
    let news = worker.changes(1, 60_000);
    assert_eq!((&news["revision"], &news["sessions"][0]["state"]), (&json!(3), &json!("ENDED")));
    assert_eq!(
        worker.changes(0, 60_000),
        json!({ "revision": 3, "sessions": [], "more": false }),
        "nothing goes on"
    );
    assert_eq!(worker.changes(3, 10)["sessions"], json!([]), "the time is up");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| worker.request("changes", &json!({ "since": 3, "waitMs": 60_000 })));
        guard(&server, &worker_name(2), Some(&worker_name(1)));
        waiting.join().unwrap().expect_problem(409, "GUARD_LOST");
    });
    worker.request("changes", &json!({ "since": 3 })).expect_problem(409, "GUARD_LOST");
}

#[test]
fn changes_returns_when_the_guard_expires() {
    let server = TestServer::start();
    let short = json!({ "worker": worker_name(1), "ttlMs": 1_000 });
    let guard = server.post("/api/v3/worker/guard", &short).json()["guard"].clone();
    let wait = json!({ "guard": guard, "since": 0, "waitMs": 60_000 });
    server.post("/api/v3/worker/changes", &wait).expect_problem(409, "GUARD_LOST");
}

#[test]
fn wipe_ends_only_the_sessions_of_a_dead_worker() {
    let server = TestServer::start();
    let first = FakeWorker::start(&server);
    let (taken, waiting) = (
        server.start_intent_session(&channel_intent("a")),
        server.start_intent_session(&channel_intent("b")),
    );
    first.take(&taken, 1);
    let guard = guard(&server, &worker_name(2), Some(&worker_name(1))).json()["guard"].clone();
    let wipe = |sessions: &[&str]| {
        server.post("/api/v3/worker/wipe", &json!({ "guard": guard, "sessions": sessions })).json()
    };
    assert_eq!(wipe(&[&taken, &waiting, "ses_unknown"]), json!({ "wiped": 1 }));
    assert_eq!(wipe(&[&taken]), json!({ "wiped": 0 }));
    assert_eq!(server.intent_session(&taken)["reason"], json!("R_WORKER_RESTARTED"));
    assert_eq!(server.intent_session(&waiting)["state"], json!("NEW"));
    assert!(!server.leased_resources().contains(&"service:a".to_owned()));
}

/// Whoever sends long intents must not make an answer that no worker can read.
#[test]
fn changes_returns_many_long_sessions_in_pages() {
    let server = TestServer::start();
    let request = |number: u64| {
        let mut intent = recording_intent("long", number * 1_000);
        intent["params"] = json!({ "text": "x".repeat(60_000) });
        intent
    };
    let mut accepted: Vec<String> =
        (0..24).map(|number| server.start_intent_session(&request(number))).collect();
    let worker = FakeWorker::start(&server);
    let (mut since, mut received, mut parts) = (0, Vec::new(), 0);
    loop {
        let part = worker.changes(since, 0);
        assert!(part.to_string().len() < 5 << 18, "each part is short");
        since = part["revision"].as_u64().unwrap();
        received.extend(
            part["sessions"].as_array().unwrap().iter().map(|session| json_string(&session["session_id"])),
        );
        parts += 1;
        if parts == 1 {
            // It is told before, and again as it became: who asks for the rest misses nothing.
            server.submit_intent(&json!({ "type": "stream.stop", "session_id": accepted[0] }));
        }
        if part["more"] != json!(true) {
            break;
        }
    }
    assert_eq!(parts, 2);
    accepted.push(accepted[0].clone());
    assert_eq!(received, accepted, "in order");
    assert_eq!(worker.changes(since, 0)["sessions"], json!([]));
}

#[test]
fn the_guard_requires_write_permission_on_its_resource() {
    let server = TestServer::start();
    let body = json!({ "worker": worker_name(1), "ttlMs": 60_000 });
    let limited = server.create_token("limited", &["leases:write"], &["service:"]);
    server.request_with_token(&limited, "POST /api/v3/worker/guard", &body).expect_problem(403, "FORBIDDEN");
    let sender = server.create_token("sender", &["v3:write", "leases:read"], &[]);
    server.request_with_token(&sender, "POST /api/v3/worker/guard", &body).expect_problem(403, "FORBIDDEN");
    let worker = server.create_token("worker", &["leases:write"], &["system:orchestrator:"]);
    assert_eq!(server.request_with_token(&worker, "POST /api/v3/worker/guard", &body).status, 200);
}

#[test]
fn the_in_process_worker_api_equals_the_routes() {
    let server = TestServer::start();
    let (worker_api, id) =
        (server.worker_api(), server.start_intent_session(&recording_intent("rec", 61_000)));
    server.block_on(async {
        let guard = LeaderLockRequest { worker: worker_name(1), ttl_ms: 60_000, dead: None };
        let guard = worker_api.acquire_leader_lock(&guard).await.unwrap().guard;
        let changes = worker_api
            .changed_sessions(&IntentSessionChangesRequest { guard, since: 0, wait_ms: None })
            .await
            .unwrap();
        assert_eq!(changes.sessions[0].start_ms, Some(61_000));
        let take = IntentSessionTakeRequest { guard, session_id: id.clone(), tuners: 0, ttl_ms: 30_000 };
        let taken = worker_api.take_session(&take).await.unwrap().taken.unwrap();
        assert_eq!((taken.leases.len(), taken.slot), (1, None));
        let runs = IntentSessionRunningReport { guard, session_id: id.clone(), process: "pid 1".into() };
        assert_eq!(worker_api.report_running(&runs).await.unwrap().state, "RUNNING");
        let keep = IntentSessionRenewalRequest { guard, ttl_ms: 30_000, sessions: vec![id.clone()] };
        assert!(worker_api.renew_leases(&keep).await.unwrap().sessions[0].held);
        let wipe = IntentSessionWipeRequest { guard, sessions: vec![id.clone()] };
        assert_eq!(worker_api.wipe_sessions(&wipe).await.unwrap().wiped, 0, "its own stay");
        let finish = IntentSessionFinishRequest {
            guard,
            session_id: id.clone(),
            reason: "R_WORKER_STOPPED".into(),
            detail: Some("bye".into()),
        };
        assert_eq!(worker_api.finish_session(&finish).await.unwrap().outcome.as_deref(), Some("STOPPED"));
        worker_api.release_leader_lock(&LeaderLockReleaseRequest { guard }).await.unwrap();
        let lost = worker_api
            .changed_sessions(&IntentSessionChangesRequest { guard, since: 0, wait_ms: None })
            .await
            .unwrap_err();
        assert_eq!(lost.code, Code::GuardLost);
    });
    assert_eq!(server.intent_session(&id)["detail"], json!("bye"));
}
