//! Which leases there are.

use serde_json::{Value, json};
use tenure_testkit::{Response, TestServer, json_string};

/// The fences of a list.
#[track_caller]
fn fences(answer: &Response) -> Vec<u64> {
    assert_eq!(answer.status, 200, "{answer:?}");
    let leases = answer.json()["leases"].as_array().unwrap().clone();
    leases.iter().map(|lease| lease["fence"].as_u64().unwrap()).collect()
}

fn shared(server: &TestServer, resource: &str, holder: &str) -> Value {
    let request = json!({"resource": resource, "holder": holder, "ttlMs": 60_000, "mode": "shared"});
    server.post("/v1/leases", &request).json()
}

#[test]
fn leases_are_filtered_by_resource_holder_and_state() {
    let server = TestServer::start();
    shared(&server, "db:1", "a");
    shared(&server, "db:1", "b");
    shared(&server, "db:2", "a");
    let gone = shared(&server, "db:1", "a");
    server.release(&json_string(&gone["lease"]["id"]), &json_string(&gone["token"]));
    let (short, _) = server.acquire("db:3", "a", 1_000);
    let expired = server.wait_until_lease_ended(&short);
    for (query, expected) in [
        ("", &[1, 2, 3][..]),
        ("?state=ACTIVE", &[1, 2, 3]),
        ("?resource=db:1", &[1, 2]),
        ("?resource=db%3A1&holder=a", &[1]),
        ("?holder=a", &[1, 3]),
        ("?holder=nobody", &[]),
        ("?state=RELEASED", &[4]),
        ("?state=RELEASED&resource=db:2", &[]),
        ("?state=EXPIRED", &[5]),
        ("?state=EXPIRED&holder=a", &[5]),
        ("?state=EXPIRED&holder=b", &[]),
        ("?after=&limit=1", &[]),
    ] {
        if query.contains("after=&") {
            server.get(&format!("/v1/leases{query}")).expect_problem(400, "INVALID");
        } else {
            assert_eq!(fences(&server.get(&format!("/v1/leases{query}"))), expected, "{query}");
        }
    }
    let listed = server.get("/v1/leases?state=EXPIRED").json();
    assert_eq!((&listed["leases"][0]["id"], &listed["next"]), (&expired["id"], &Value::Null));
}

#[test]
fn pages_of_a_list_are_complete_and_without_duplicates() {
    let server = TestServer::start();
    let all: Vec<_> = (1..=7).map(|number| shared(&server, "db:1", &format!("holder-{number}"))).collect();
    for (filter, limit) in [("", 3), ("&resource=db:1", 2), ("", 7), ("", 1)] {
        let (mut found, mut after, mut parts) = (Vec::new(), String::new(), 0);
        loop {
            parts += 1;
            let answer = server.get(&format!("/v1/leases?limit={limit}{filter}{after}"));
            let part = fences(&answer);
            assert!(part.len() <= limit, "{part:?}");
            found.extend(part);
            let next = answer.json()["next"].clone();
            if next.is_null() {
                break;
            }
            after = format!("&after={}", json_string(&next));
        }
        assert_eq!(found, (1..=7).collect::<Vec<_>>(), "{limit} {filter}");
        assert_eq!(parts, 7_usize.div_ceil(limit), "no part is empty: {limit} {filter}");
    }
    for lease in &all[..5] {
        server.release(&json_string(&lease["lease"]["id"]), &json_string(&lease["token"]));
    }
    let first = server.get("/v1/leases?state=RELEASED&limit=4");
    assert_eq!(fences(&first), [1, 2, 3, 4]);
    let next = json_string(&first.json()["next"]);
    assert_eq!(fences(&server.get(&format!("/v1/leases?state=RELEASED&after={next}"))), [5]);
}

#[test]
fn an_invalid_list_query_is_rejected() {
    let server = TestServer::start();
    for query in [
        "limit=0",
        "limit=1001",
        "limit=x",
        "limit=-1",
        "state=active",
        "state=",
        "resource=",
        "holder=%0a",
        "after=AAAA",
        "after=!",
        "color=red",
        "limit=1&limit=2",
    ] {
        server.get(&format!("/v1/leases?{query}")).expect_problem(400, "INVALID");
    }
    assert_eq!(fences(&server.get("/v1/leases?limit=1000")), [0_u64; 0]);
}
