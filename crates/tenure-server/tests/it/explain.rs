//! Who waits, and why a resource is as it is.

use serde_json::{Value, json};
use tenure_testkit::{TestServer, lease_request};

fn explain(server: &TestServer, resource: &str) -> Value {
    server.get(&format!("/v1/explain?resource={resource}")).expect_status(200)
}

fn words(explanation: &Value) -> String {
    let sentences =
        explanation["words"].as_array().unwrap().iter().map(|sentence| sentence.as_str().unwrap());
    let sentences: Vec<_> =
        sentences.inspect(|sentence| assert!(sentence.ends_with('.'), "{sentence}")).collect();
    sentences.join("\n")
}

/// Waits until so many wait for `db:1`.
fn until_waiting(server: &TestServer, count: usize) -> Value {
    loop {
        let queue = server.get("/v1/queue?resource=db:1").json();
        if queue["waiting"].as_array().unwrap().len() == count {
            return queue;
        }
    }
}

#[test]
fn the_queue_lists_waiters_in_order_of_service() {
    let server = TestServer::start();
    let empty = server.get("/v1/queue?resource=db:1").json();
    assert_eq!(empty, json!({"resource": "db:1", "waiting": []}));
    let (id, token) = server.acquire("db:1", "a", 600_000);
    std::thread::scope(|scope| {
        let wait = |holder: &str, mode: &str| {
            let request = json!({"resource": "db:1", "holder": holder, "ttlMs": 60_000, "mode": mode, "waitMs": 60_000});
            let server = &server;
            scope.spawn(move || server.post("/v1/leases", &request).status);
        };
        wait("b", "exclusive");
        until_waiting(&server, 1);
        wait("c", "shared");
        let queue = until_waiting(&server, 2);
        let waiting = queue["waiting"].as_array().unwrap();
        for (index, (holder, mode)) in [("b", "exclusive"), ("c", "shared")].into_iter().enumerate() {
            let waiter = &waiting[index];
            assert_eq!(waiter["position"], json!(index + 1));
            assert_eq!((&waiter["holder"], &waiter["mode"]), (&json!(holder), &json!(mode)));
            assert_eq!(waiter["resources"], json!(["db:1"]));
            let (waited, remaining) =
                (waiter["waitedMs"].as_u64().unwrap(), waiter["remainingMs"].as_u64().unwrap());
            assert!((59_999..=60_000).contains(&(waited + remaining)), "{waiter}");
        }
        let explanation = explain(&server, "db:1");
        assert_eq!(explanation["waiting"].as_array().unwrap().len(), 2);
        let words = words(&explanation);
        for part in [
            "a holds db:1 (exclusive, fence 1) since 2",
            "Number 1 in line is b (exclusive)",
            "b is then next",
        ] {
            assert!(words.contains(part), "no {part:?} in {words}");
        }
        server.release(&id, &token);
        until_waiting(&server, 1);
        // The one that was served still holds it; the other one is let in by its end.
        let holder = server.get("/v1/leases?resource=db:1").json()["leases"][0]["id"].clone();
        let revoked = server
            .post(&format!("/v1/leases/{}/revoke", holder.as_str().unwrap()), &json!({"reason": "test"}));
        assert_eq!(revoked.status, 200, "{revoked:?}");
    });
}

#[test]
fn explain_reports_the_last_denial_and_the_last_end() {
    let server = TestServer::start();
    let free = explain(&server, "db:1");
    assert!(words(&free).contains("Nobody holds db:1."), "{free}");
    assert!(words(&free).contains("It is free"), "{free}");
    assert!(free.get("lastRefusal").is_none() && free.get("lastEnd").is_none(), "{free}");
    let (id, token) = server.acquire("db:1", "a", 600_000);
    server.post("/v1/leases", &lease_request("db:1", "b", 60_000)).expect_problem(409, "HELD");
    server.post("/v1/leases", &lease_request("db:2", "c", 1)).expect_problem(400, "TTL_OUT_OF_RANGE");
    let held = explain(&server, "db:1");
    assert_eq!(held["held"][0]["holder"], json!("a"));
    let refused = &held["lastRefusal"];
    assert_eq!((&refused["code"], &refused["holder"]), (&json!("HELD"), &json!("b")));
    assert_eq!(refused["principal"], json!("admin"));
    assert!(words(&held).contains("came from b of admin"), "{held}");
    assert!(words(&held).contains("It becomes free when a releases it"), "{held}");
    assert_eq!(explain(&server, "db:2")["lastRefusal"]["code"], json!("TTL_OUT_OF_RANGE"));
    server.release(&id, &token);
    let ended = explain(&server, "db:1");
    assert_eq!(ended["held"], json!([]));
    assert_eq!((&ended["lastEnd"]["id"], &ended["lastEnd"]["end"]), (&json!(id), &json!("COMPLETED")));
    assert!(words(&ended).contains("The lease that ended last was a's (fence 1)"), "{ended}");
}

#[test]
fn explain_and_queue_reject_an_invalid_query() {
    let server = TestServer::start();
    for route in ["/v1/queue", "/v1/explain"] {
        for query in ["", "?resource=", "?resource=%0a", "?resource=a&resource=b", "?resource=a&colour=red"] {
            server.get(&format!("{route}{query}")).expect_problem(400, "INVALID");
        }
    }
}
