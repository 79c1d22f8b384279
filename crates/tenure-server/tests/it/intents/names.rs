//! What is the server's own: no lease, no token and no holder of others is called so.

use serde_json::json;
use tenure_testkit::intents::{CHANNEL, Worker, channel, worker_name};
use tenure_testkit::{TestServer, lease_request, text};

#[test]
fn reserved_resources_and_token_names_are_rejected() {
    let server = TestServer::start();
    for resource in ["system:orchestrator:guard_lock", "system:", "system:anything"] {
        server.post("/v1/leases", &lease_request(resource, "a", 60_000)).is_problem(403, "FORBIDDEN");
        let both =
            json!({ "leases": [lease_request("db:1", "a", 60_000), lease_request(resource, "a", 60_000)] });
        server.post("/v1/leases/batch", &both).is_problem(403, "FORBIDDEN");
    }
    assert_eq!(server.leased(), Vec::<String>::new());
    for name in ["system:orchestrator", "system:"] {
        let wish = json!({ "name": name, "scopes": ["admin"] });
        server.post("/v1/tokens", &wish).is_problem(400, "INVALID");
    }
}

#[test]
fn acquire_with_the_holder_of_a_session_or_worker_is_rejected() {
    let server = TestServer::start();
    let worker = Worker::start(&server);
    let id = server.session_of(&channel(CHANNEL));
    worker.take(&id, 1);
    for holder in [id, worker_name(1)] {
        server.post("/v1/leases", &lease_request("db:1", &holder, 60_000)).is_problem(403, "HOLDER_TAKEN");
    }
}

#[test]
fn revoking_a_lease_of_a_session_ends_the_session() {
    let server = TestServer::start();
    let worker = Worker::start(&server);
    let id = server.session_of(&channel(CHANNEL));
    let taken = worker.take(&id, 1);
    worker.run(&id);
    let listed = server.get(&format!("/v1/leases?holder={id}")).json();
    assert_eq!(listed["leases"].as_array().unwrap().len(), 2);
    let lease = text(&taken["taken"]["leases"][1]);
    assert_eq!(server.get("/v1/explain?resource=tuner:0").status, 200);
    let revoked = server.post(&format!("/v1/leases/{lease}/revoke"), &json!({ "reason": "maintenance" }));
    assert_eq!(revoked.status, 200, "{revoked:?}");
    let over = server.session(&id);
    assert_eq!((&over["state"], &over["reason"]), (&json!("ENDED"), &json!("R_LEASE_EXPIRED")));
    assert_eq!(worker.keep(&[&id])["sessions"][0]["held"], json!(false));
    assert_eq!(server.leased(), ["system:orchestrator:guard_lock"]);
}
