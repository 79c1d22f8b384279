//! What happens, told as it happens.

use serde_json::json;
use tenure_testkit::event_stream::SseMessage;
use tenure_testkit::server::set_segment_size;
use tenure_testkit::{Response, TestServer, json_string, lease_request, open_event_stream};

fn release(server: &TestServer, (id, token): &(String, String)) {
    assert_eq!(server.release(id, token).status, 200);
}

#[test]
fn every_event_contains_the_lease_as_it_was_right_after() {
    let server = TestServer::start();
    let mut stream = open_event_stream(&server, "/v1/events", None);
    let lease = server.acquire("deploy:prod", "ci-42", 60_000);
    server.renew(&lease.0, &lease.1);
    server.renew(&lease.0, &lease.1);
    release(&server, &lease);
    let issued = stream.expect("lease.issued");
    assert_eq!((&issued.name, issued.id.as_str()), (&String::new(), format!("1-{}", issued.seq()).as_str()));
    let shown = &issued.data["lease"];
    assert_eq!(shown["id"], json!(lease.0));
    assert_eq!((&shown["resource"], &shown["holder"]), (&json!("deploy:prod"), &json!("ci-42")));
    assert_eq!((&shown["state"], &shown["remainingMs"]), (&json!("ACTIVE"), &json!(60_000)));
    assert_eq!(shown["acquiredAt"], issued.data["at"]);
    for count in [1, 2] {
        let renewed = stream.expect("lease.renewed");
        assert_eq!(renewed.data["lease"]["renewalCount"], json!(count));
        assert_eq!(renewed.data["lease"]["remainingMs"], json!(60_000));
        assert_eq!(renewed.data["lease"]["resource"], json!("deploy:prod"));
    }
    let released = stream.expect("lease.released");
    let shown = &released.data["lease"];
    assert_eq!((&shown["state"], &shown["end"]), (&json!("RELEASED"), &json!("COMPLETED")));
    assert_eq!((&shown["remainingMs"], &shown["endedAt"]), (&json!(0), &released.data["at"]));
    assert_eq!(shown["renewalCount"], json!(2));
    // The same again from the ledger, by somebody who comes later.
    let again =
        open_event_stream(&server, &format!("/v1/events?from={}", issued.seq()), None).next().unwrap();
    assert_eq!(again.data, issued.data);
}

#[test]
fn an_expiry_is_published() {
    let server = TestServer::start();
    let mut stream = open_event_stream(&server, "/v1/events?type=lease.expired", None);
    let (id, _) = server.acquire("db:1", "a", 1_000);
    let expired = stream.expect("lease.expired");
    assert_eq!(expired.data["lease"]["id"], json!(id));
    assert_eq!(expired.data["lease"]["state"], json!("EXPIRED"));
}

#[test]
fn an_idle_stream_sends_heartbeats_with_the_current_event_id() {
    let server = TestServer::start();
    let mut stream = open_event_stream(&server, "/v1/events?resource=rare:1", None);
    let before = stream.last_id.clone();
    server.acquire("db:1", "a", 600_000);
    let block = stream.next_block().unwrap();
    assert!(block.starts_with(": heartbeat\n"), "{block}");
    assert_ne!(stream.last_id, before, "what was passed over need not be read again");
    let mut resumed = open_event_stream(&server, "/v1/events", Some(&stream.last_id));
    server.acquire("db:2", "a", 600_000);
    assert_eq!(resumed.expect("lease.issued").data["lease"]["resource"], json!("db:2"));
}

#[test]
fn events_contain_no_secrets() {
    let server = TestServer::start();
    let mut stream = open_event_stream(&server, "/v1/events?type=*", None);
    let granted = server.post_with_key("/v1/leases", "a-key", &lease_request("db:1", "a", 60_000)).json();
    let issued = stream.expect("lease.issued");
    let token = json_string(&granted["token"]);
    let text = issued.data.to_string();
    assert!(!text.contains(&token) && !text.contains("nonce") && !text.contains("key"), "{text}");
}

#[test]
fn a_filter_passes_only_matching_events() {
    let server = TestServer::start();
    let mut databases = open_event_stream(&server, "/v1/events?resource=db:&type=lease.issued", None);
    let mut starred = open_event_stream(&server, "/v1/events?resource=db:1*", None);
    let mut exact = open_event_stream(&server, "/v1/events?resource=db:1&type=lease.released", None);
    let mut every = open_event_stream(&server, "/v1/events?type=lease.*", None);
    for resource in ["deploy:1", "db:1", "db:2", "db:10"] {
        let lease = server.acquire(resource, "a", 60_000);
        release(&server, &lease);
    }
    let resource = |message: &SseMessage| json_string(&message.data["lease"]["resource"]);
    for expected in ["db:1", "db:2", "db:10"] {
        assert_eq!(resource(&databases.expect("lease.issued")), expected);
    }
    for expected in ["db:1", "db:10"] {
        assert_eq!(resource(&starred.expect("lease.issued")), expected);
        assert_eq!(resource(&starred.expect("lease.released")), expected);
    }
    assert_eq!(resource(&exact.expect("lease.released")), "db:1");
    let more = server.acquire("db:1", "b", 60_000);
    release(&server, &more);
    assert_eq!(exact.expect("lease.released").data["lease"]["holder"], json!("b"), "and nothing in between");
    for expected in ["deploy:1", "db:1", "db:2", "db:10"] {
        assert_eq!(resource(&every.expect("lease.issued")), expected);
        every.expect("lease.released");
    }
}

#[test]
fn an_invalid_events_query_is_rejected_before_the_stream_starts() {
    let server = TestServer::start();
    for query in [
        "from=x",
        "from=-1",
        "from=",
        "from=99999",
        "type=lease.isued",
        "type=",
        "type=le*",
        "resource=%0a",
        "colour=red",
    ] {
        refused(&server, &format!("/v1/events?{query}"), None).expect_problem(400, "INVALID");
    }
    for id in ["", "1", "1-", "-1", "a-b", "1-1-1", "1-+1"] {
        refused(&server, "/v1/events", Some(id)).expect_problem(400, "INVALID");
    }
}

fn refused(server: &TestServer, path: &str, id: Option<&str>) -> Response {
    let mut headers = vec![server.bearer()];
    headers.extend(id.map(|id| format!("Last-Event-ID: {id}")));
    server.request(&format!("GET {path}"), &headers, "")
}

#[test]
fn an_event_id_of_another_ledger_is_answered_with_compacted() {
    let server = TestServer::start();
    for id in ["2-1", "1-99999"] {
        let problem = refused(&server, "/v1/events", Some(id)).expect_problem(410, "COMPACTED");
        assert_eq!(problem["from"], json!(1), "from where it can be read");
    }
}

#[test]
fn a_subscriber_that_resumes_after_restarts_receives_every_event_once() {
    let mut server = TestServer::start();
    let mut seen: Vec<u64> = Vec::new();
    let mut last = None;
    let mut leases = Vec::new();
    for round in 0..4 {
        let mut stream = open_event_stream(&server, "/v1/events?from=1", last.as_deref());
        // Half of it is heard, the rest happens while nobody listens.
        for number in 0..10 {
            leases.push(server.acquire(&format!("db:{round}-{number}"), "a", 600_000));
        }
        for _ in 0..5 {
            seen.push(stream.expect("lease.issued").seq());
        }
        last = Some(stream.last_id.clone());
        drop(stream);
        server = TestServer::start_in(server.stop(), |_| {}).unwrap();
    }
    let mut stream = open_event_stream(&server, "/v1/events", last.as_deref());
    while seen.len() < leases.len() {
        seen.push(stream.expect("lease.issued").seq());
    }
    let all: Vec<u64> = {
        let mut stream = open_event_stream(&server, "/v1/events?from=1&type=lease.issued", None);
        (0..leases.len()).map(|_| stream.expect("lease.issued").seq()).collect()
    };
    assert_eq!(seen, all, "each once, in order");
    server.acquire("db:last", "a", 60_000);
    assert_eq!(stream.expect("lease.issued").data["lease"]["resource"], json!("db:last"));
}

#[test]
fn shutdown_ends_event_streams_at_once() {
    let server = TestServer::start();
    let mut streams: Vec<_> = (0..10).map(|_| open_event_stream(&server, "/v1/events", None)).collect();
    server.acquire("db:1", "a", 60_000);
    let folder = server.stop();
    for stream in &mut streams {
        stream.expect("lease.issued");
        assert!(stream.next().is_none(), "the stream ends as it should, with its last chunk");
    }
    drop(folder);
}

#[test]
fn both_events_of_a_timed_out_wait_are_published() {
    let server = TestServer::start();
    let lease = server.acquire("db:1", "a", 60_000);
    let mut stream = open_event_stream(&server, "/v1/events", None);
    let wait = json!({"resource": "db:1", "holder": "b", "ttlMs": 1_000, "waitMs": 1_000});
    server.post("/v1/leases", &wait).expect_problem(409, "HELD");
    let queued = stream.expect("wait.queued").data["waiter"].clone();
    assert_eq!((&queued["holder"], &queued["position"]), (&json!("b"), &json!(1)));
    assert_eq!((&queued["resources"], &queued["remainingMs"]), (&json!(["db:1"]), &json!(1_000)));
    let ended = stream.expect("wait.left").data;
    assert_eq!((&ended["cause"], &ended["waiter"]["ticket"]), (&json!("TIMED_OUT"), &queued["ticket"]));
    assert_eq!(ended["waiter"]["resources"], json!(["db:1"]), "so that a filter by resource finds it");
    assert!(ended["waiter"]["waitedMs"].as_u64().unwrap() >= 1_000);
    release(&server, &lease);
    stream.expect("lease.released");
}

#[test]
fn reading_pruned_events_is_answered_with_compacted() {
    let server = TestServer::start_with(|settings| {
        set_segment_size(settings, 4_096);
        settings.maintenance.checkpoint_after = 4;
        settings.maintenance.retention.bytes = 8_192;
    });
    let first = server.folder.path().join("data/0000000000000001.segment");
    let mut number = 0;
    while first.exists() {
        number += 1;
        assert!(number < 10_000, "it must be pruned at some time");
        server.acquire(&format!("db:{number}"), "a", 600_000);
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
    let problem = refused(&server, "/v1/events?from=1", None).expect_problem(410, "COMPACTED");
    refused(&server, "/v1/events", Some("1-0")).expect_problem(410, "COMPACTED");
    let from = problem["from"].as_u64().unwrap();
    assert!(from > 1, "{problem}");
    let last = crate::subscribers::metric(&server, "tenure_ledger_seq");
    let event = open_event_stream(&server, &format!("/v1/events?type=*&from={last}"), None).next().unwrap();
    assert_eq!(event.seq(), last);
}
