//! What is the server's own: no lease, no token and no holder of others is called so.

use serde_json::json;
use tenure_testkit::intents::{CHANNEL, FakeWorker, channel_intent, worker_name};
use tenure_testkit::{TestServer, json_string, lease_request};

#[test]
fn reserved_resources_and_token_names_are_rejected() {
    let server = TestServer::start();
    for resource in ["system:orchestrator:guard_lock", "system:", "system:anything"] {
        server.post("/v1/leases", &lease_request(resource, "a", 60_000)).expect_problem(403, "FORBIDDEN");
        let both =
            json!({ "leases": [lease_request("db:1", "a", 60_000), lease_request(resource, "a", 60_000)] });
        server.post("/v1/leases/batch", &both).expect_problem(403, "FORBIDDEN");
    }
    assert_eq!(server.leased_resources(), Vec::<String>::new());
    for name in ["system:orchestrator", "system:"] {
        let request = json!({ "name": name, "scopes": ["admin"] });
        server.post("/v1/tokens", &request).expect_problem(400, "INVALID");
    }
}

#[test]
fn acquire_with_the_holder_of_a_session_or_worker_is_rejected() {
    let server = TestServer::start();
    let worker = FakeWorker::start(&server);
    let id = server.start_intent_session(&channel_intent(CHANNEL));
    worker.take(&id, 1);
    for holder in [id, worker_name(1)] {
        server
            .post("/v1/leases", &lease_request("db:1", &holder, 60_000))
            .expect_problem(403, "HOLDER_TAKEN");
    }
}

#[test]
fn revoking_a_lease_of_a_session_ends_the_session() {
    let server = TestServer::start();
    let worker = FakeWorker::start(&server);
    let id = server.start_intent_session(&channel_intent(CHANNEL));
    let taken = worker.take(&id, 1);
    worker.run(&id);
    let listed = server.get(&format!("/v1/leases?holder={id}")).json();
    assert_eq!(listed["leases"].as_array().unwrap().len(), 2);
    let lease = json_string(&taken["taken"]["leases"][1]);
    assert_eq!(server.get("/v1/explain?resource=tuner:0").status, 200);
    let revoked = server.post(&format!("/v1/leases/{lease}/revoke"), &json!({ "reason": "maintenance" }));
    assert_eq!(revoked.status, 200, "{revoked:?}");
    let ended = server.intent_session(&id);
    assert_eq!((&ended["state"], &ended["reason"]), (&json!("ENDED"), &json!("R_LEASE_EXPIRED")));
    assert_eq!(worker.keep_alive(&[&id])["sessions"][0]["held"], json!(false));
    assert_eq!(server.leased_resources(), ["system:orchestrator:guard_lock"]);
}
