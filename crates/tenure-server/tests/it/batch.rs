//! Several leases in one request: all or nothing.

use serde_json::{Value, json};
use tenure_testkit::{Response, TestServer, json_string, lease_request, queued_lease_request, read_to_end};

fn batch_request(resources: &[&str], holder: &str, wait_ms: u64) -> Value {
    let request = |resource: &&str| {
        let mut lease = queued_lease_request(resource, holder, 60_000, wait_ms);
        lease["labels"] = json!({ "of": resource });
        lease
    };
    json!({ "leases": resources.iter().map(request).collect::<Vec<_>>() })
}

/// Ids and tokens, in their order.
#[track_caller]
fn all(answer: &Response) -> Vec<(String, String)> {
    assert_eq!(answer.status, 201, "{answer:?}");
    let json = answer.json();
    let leases = json["leases"].as_array().unwrap().iter();
    leases.map(|granted| (json_string(&granted["lease"]["id"]), json_string(&granted["token"]))).collect()
}

#[test]
fn a_batch_is_granted_in_the_order_of_its_entries() {
    let server = TestServer::start();
    let answer = server.post("/v1/leases/batch", &batch_request(&["db:2", "db:1", "db:3"], "a", 0));
    let leases = all(&answer);
    for (index, resource) in ["db:2", "db:1", "db:3"].into_iter().enumerate() {
        let granted = answer.json()["leases"][index].clone();
        assert_eq!(granted["lease"]["resource"], json!(resource));
        assert_eq!(granted["lease"]["labels"], json!({ "of": resource }));
        assert_eq!(granted["validForMs"], json!(60_000));
        assert!(granted["passport"].is_string());
        assert_eq!(server.renew(&leases[index].0, &leases[index].1).status, 200);
    }
}

#[test]
fn if_one_is_held_none_is_granted() {
    let server = TestServer::start();
    server.acquire("db:2", "b", 60_000);
    let held = server.post("/v1/leases/batch", &batch_request(&["db:1", "db:2", "db:3"], "a", 0));
    let held = held.expect_problem(409, "HELD");
    assert_eq!((&held["resource"], &held["holder"]), (&json!("db:2"), &json!("b")));
    for resource in ["db:1", "db:3"] {
        server.acquire(resource, "c", 60_000);
    }
}

#[test]
fn a_waiting_batch_holds_nothing_until_all_resources_are_free() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "b", 60_000);
    let (other, other_token) = server.acquire("db:2", "b", 60_000);
    let pending = server.start_post("/v1/leases/batch", None, &batch_request(&["db:1", "db:2"], "a", 60_000));
    server.wait_for_waiters("db:2", 1);
    server.release(&id, &token);
    assert_eq!(server.holders("db:1"), [""; 0]);
    server.release(&other, &other_token);
    let leases = all(&read_to_end(pending));
    assert_eq!((server.holders("db:1"), server.holders("db:2")), (vec!["a".into()], vec!["a".into()]));
    leases.iter().for_each(|(id, token)| assert_eq!(server.release(id, token).status, 200));
    // Gone while it waits: nothing stays.
    server.acquire("db:1", "b", 60_000);
    let gone = server.start_post("/v1/leases/batch", None, &batch_request(&["db:1", "db:2"], "a", 60_000));
    server.wait_for_waiters("db:1", 1);
    drop(gone);
    server.wait_for_waiters("db:1", 0);
    server.acquire("db:2", "c", 60_000);
}

#[test]
fn a_batch_repeated_with_its_key_returns_the_same_leases_after_a_restart() {
    let server = TestServer::start();
    let body = batch_request(&["db:1", "db:2"], "a", 0);
    let first = all(&server.post_with_key("/v1/leases/batch", "once", &body));
    assert_eq!(all(&server.post_with_key("/v1/leases/batch", "once", &body)), first);
    let other = batch_request(&["db:1", "db:3"], "a", 0);
    server.post_with_key("/v1/leases/batch", "once", &other).expect_problem(409, "KEY_REUSED");
    server
        .post_with_key("/v1/leases", "once", &lease_request("db:1", "a", 60_000))
        .expect_problem(409, "KEY_REUSED");
    let server = TestServer::start_in(server.stop(), |_| {}).unwrap();
    assert_eq!(all(&server.post_with_key("/v1/leases/batch", "once", &body)), first);
}

#[test]
fn an_invalid_batch_is_rejected_with_the_index() {
    let server = TestServer::start();
    let entry = |more: &str| format!(r#"{{"resource":"db:1","holder":"a","ttlMs":9000{more}}}"#);
    let two = |other: &str| format!(r#"{{"leases":[{},{other}]}}"#, entry(""));
    for (body, reason) in [
        ("{}".to_owned(), "leases: is missing"),
        (r#"{"leases":{}}"#.into(), "leases: must be an array"),
        (r#"{"leases":[1]}"#.into(), "leases[0]: must be an object"),
        (r#"{"leases":[]}"#.into(), "leases: is empty"),
        (r#"{"leases":[],"waitMs":1}"#.into(), "\"waitMs\": is not a field"),
        (two(&entry("")), "leases: names a resource twice"),
        (two(&entry(r#","color":1"#)), "leases[1].\"color\": is not a field"),
        (two(r#"{"resource":"","holder":"a","ttlMs":9000}"#), "leases[1].resource: "),
        (two(r#"{"resource":"db:2","holder":"b","ttlMs":9000}"#), "leases[1].holder: must be the same"),
        (
            two(r#"{"resource":"db:2","holder":"a","ttlMs":9000,"waitMs":1}"#),
            "leases[1].waitMs: must be the same",
        ),
    ] {
        let problem = server.post_text("/v1/leases/batch", &body).expect_problem(400, "INVALID");
        assert!(json_string(&problem["detail"]).starts_with(reason), "{body}: {problem}");
    }
    let short = two(r#"{"resource":"db:2","holder":"a","ttlMs":1}"#);
    server.post_text("/v1/leases/batch", &short).expect_problem(400, "TTL_OUT_OF_RANGE");
    server.acquire("db:1", "c", 60_000);
}
