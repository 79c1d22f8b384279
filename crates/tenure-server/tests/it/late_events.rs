//! Events that are read from the ledger, and readers that do not read.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure_testkit::event_stream::SseStream;
use tenure_testkit::{
    TestServer, json_string, open_event_stream, open_event_stream_as, queued_lease_request,
};

const HOUR: u64 = 3_600_000;

/// Creates events of plain leases, the queue, intents, work and agents.
fn create_events(server: &TestServer) {
    let held = server.acquire("db:1", "first", HOUR);
    server.renew(&held.0, &held.1);
    std::thread::scope(|scope| {
        for (count, holder) in (1..).zip(["second", "third"]) {
            scope
                .spawn(move || server.post("/v1/leases", &queued_lease_request("db:1", holder, HOUR, 3_000)));
            server.wait_for_waiters("db:1", count);
        }
        server.release(&held.0, &held.1);
    });
    let channel = json!({ "serviceRef": "1:0:19:283D:3FB:1:C00000:0:0:0:", "profileID": "hd" });
    for _ in 0..2 {
        let session = json_string(&server.post("/api/v3/intents", &channel).json()["session_id"]);
        server.request(&format!("DELETE /api/v3/sessions/{session}"), &[server.bearer()], "");
    }
    let claim =
        json!({ "work_id": "T-17", "actor_id": "planner", "ttlMs": HOUR, "budget": { "tokens": 1_000 } });
    let work = server.post("/v1/work/claim", &claim).json();
    let spend = json!({ "lease_id": work["lease"]["id"], "token": work["token"], "tokens": 150 });
    server.post("/v1/work/spend", &spend);
    let manifest = |agent: &str, priority: u64| {
        let object = json!({ "resource_type": "FILE", "path": "src/" });
        let body = json!({
            "session_id": "s", "agent_id": agent, "priority_timestamp": priority, "ttl": 300_000,
            "waitTimeoutMs": 60_000, "intents": [{ "predicate": "MUTATES", "object": object }],
        });
        assert_eq!(server.post("/v1/manifest", &body).status, 200);
    };
    manifest("young", 20);
    manifest("old", 10);
    manifest("newer", 30);
    for state in ["EXECUTING", "COMPLETED"] {
        server.post("/v1/agents/newer/state", &json!({ "session_id": "s", "state": state, "epoch": 3 }));
    }
}

/// The blocks of the stream with an event, by sequence number, up to the event `last`.
fn blocks_until(stream: &mut SseStream, last: u64) -> BTreeMap<u64, String> {
    let mut blocks = BTreeMap::new();
    loop {
        let block = stream.next_block().unwrap();
        let Some(data) = block.lines().find_map(|line| line.strip_prefix("data: ")) else { continue };
        let seq = serde_json::from_str::<Value>(data).unwrap()["seq"].as_u64().unwrap();
        blocks.insert(seq, block);
        if seq >= last {
            return blocks;
        }
    }
}

// H6
#[test]
fn events_read_from_the_ledger_equal_events_sent_live() {
    let server = TestServer::start();
    let mut stream = open_event_stream(&server, "/v1/events?type=*", None);
    create_events(&server);
    let last = server.metric("tenure_ledger_seq");
    let live = blocks_until(&mut stream, last);
    // A new server has nothing in memory.
    let server = TestServer::start_in(server.stop(), |_| {}).unwrap();
    let first = *live.first_key_value().unwrap().0;
    for from in [1, first, first + live.len() as u64 / 2, last] {
        let mut stream = open_event_stream(&server, &format!("/v1/events?type=*&from={from}"), None);
        let late = blocks_until(&mut stream, last);
        for (seq, block) in late.range(first..) {
            assert_eq!(block, &live[seq], "from {from}");
        }
        assert_eq!(late.range(from..).count(), live.range(from..).count().max(late.len()), "from {from}");
    }
}

/// A server whose ledger has `rounds` times 250 leases that it no longer has in memory.
fn server_with_history(rounds: usize) -> TestServer {
    let server = TestServer::start();
    for round in 0..rounds {
        let request =
            |number| json!({ "resource": format!("db:{round}-{number}"), "holder": "a", "ttlMs": HOUR });
        let requests: Vec<_> = (0..250).map(request).collect();
        assert_eq!(server.post("/v1/leases/batch", &json!({ "leases": requests })).status, 201);
    }
    TestServer::start_in(server.stop(), |_| {}).unwrap()
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

// H6
#[test]
#[ignore = "measures memory and time"]
#[expect(clippy::disallowed_methods, reason = "it measures time, and judges none")]
fn proof_event_readers_that_do_not_read_cost_little_memory_and_no_time() {
    let rounds = std::env::var("ROUNDS").map_or(1_400, |rounds| rounds.parse().unwrap());
    let server = server_with_history(rounds);
    let before = resident_kib();
    let open = || open_event_stream(&server, "/v1/events?from=1", None);
    let (mut stuck, mut highest) = (Vec::new(), 0);
    for count in [8, 40] {
        stuck.resize_with(count, open);
        for _ in 0..40 {
            std::thread::sleep(Duration::from_millis(100));
            highest = highest.max(resident_kib());
        }
        let of_each = |now: u64| now.saturating_sub(before) / count as u64;
        println!("{count} stuck: {} KiB each, highest {} KiB", of_each(resident_kib()), of_each(highest));
    }
    let start = Instant::now();
    open().expect("lease.issued");
    println!("first event beside 40 stuck readers of the same principal: {:?}", start.elapsed());
    let token = json!({ "name": "other", "scopes": ["leases:read"] });
    let secret = json_string(&server.post("/v1/tokens", &token).json()["secret"]);
    let start = Instant::now();
    let mut other = open_event_stream_as(&server, &secret, "/v1/events?from=1", None);
    other.expect("lease.issued");
    println!("the same with another token: {:?}", start.elapsed());
    let start = Instant::now();
    (1..rounds * 250).for_each(|_| drop(other.expect("lease.issued")));
    println!("all {} events: {:?}", rounds * 250, start.elapsed());
    drop(stuck);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let mut stream = open();
                (0..rounds * 250).for_each(|_| drop(stream.expect("lease.issued")));
            });
        }
    });
    println!("all events for 6 readers at once: {:?}", start.elapsed());
}
