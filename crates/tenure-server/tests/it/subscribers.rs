//! Many who listen, and some who do not.

use serde_json::json;
use tenure_testkit::{TestServer, open_event_stream};

/// What a number of `/metrics` is.
pub fn metric(server: &TestServer, name: &str) -> u64 {
    let text = server.get("/metrics").text;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

#[test]
fn a_thousand_subscribers_receive_every_event() {
    let server = TestServer::start();
    let mut streams: Vec<_> = (0..1_000).map(|_| open_event_stream(&server, "/v1/events", None)).collect();
    assert_eq!(server.metric("tenure_event_streams"), 1_000);
    for number in 0..20 {
        server.acquire(&format!("db:{number}"), "a", 600_000);
    }
    for stream in &mut streams {
        for number in 0..20 {
            let issued = stream.expect("lease.issued");
            assert_eq!(issued.data["lease"]["resource"], json!(format!("db:{number}")));
        }
    }
    drop(streams);
    // Nobody says when the server has noticed the last hang-up.
    while server.metric("tenure_event_streams") > 0 {}
    server.acquire("db:last", "a", 600_000);
}

#[test]
fn a_slow_subscriber_gets_a_resync_and_delays_no_other_subscriber() {
    const AT_ONCE: usize = 250;
    const ROUNDS: usize = 240;
    let server = TestServer::start();
    let mut idle = open_event_stream(&server, "/v1/events", None);
    let mut attentive = open_event_stream(&server, "/v1/events", None);
    let granted = std::thread::scope(|scope| {
        let listener = scope.spawn(move || {
            (0..ROUNDS * AT_ONCE).map(|_| attentive.expect("lease.issued").seq()).collect::<Vec<_>>()
        });
        for round in 0..ROUNDS {
            let request =
                |number| json!({"resource": format!("db:{round}-{number}"), "holder": "a", "ttlMs": 600_000});
            let wishes: Vec<_> = (0..AT_ONCE).map(request).collect();
            assert_eq!(server.post("/v1/leases/batch", &json!({ "leases": wishes })).status, 201);
        }
        listener.join().unwrap()
    });
    assert!(granted.windows(2).all(|two| two[0] < two[1]), "each once, in order");
    // Now it reads what was on its way, and then that it has missed something.
    let mut received = Vec::new();
    let resync = loop {
        let message = idle.next().expect("it is told before the stream ends");
        if message.name == "resync" {
            break message;
        }
        received.push(message.seq());
    };
    assert_eq!(resync.data["type"], json!("resync"));
    assert!(idle.next().is_none(), "nothing follows");
    assert!(received.len() < granted.len(), "the test must send more than fits on the way");
    // It comes back with what it was told, and misses nothing.
    let mut again = open_event_stream(&server, "/v1/events", Some(&resync.id));
    while received.len() < granted.len() {
        received.push(again.expect("lease.issued").seq());
    }
    assert_eq!(received, granted);
}
