//! At most one hand on the device, whatever happens.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tenure_testkit::control::{ControlClient, send_rest_request, start_control_server};
use tenure_testkit::{TestServer, now, sleep};

/// How many acquisitions are raced for.
const ACQUISITIONS: u64 = 10_000;

// S0-1, S0-2
#[test]
fn two_racing_clients_never_both_hold_the_lease() {
    let server = TestServer::start();
    let (owned, won) = (AtomicBool::new(false), AtomicU64::new(0));
    let last = Mutex::new(String::new());
    std::thread::scope(|scope| {
        for name in ["left", "right"] {
            let (server, owned, won, last) = (&server, &owned, &won, &last);
            scope.spawn(move || {
                let mut client = ControlClient::open(server);
                while won.load(Ordering::SeqCst) < ACQUISITIONS {
                    let answer = client.try_acquire(name);
                    client.pending.clear();
                    if answer["type"] != "control.acquired" {
                        assert_eq!(answer["error"]["code"], "CONTROL_LOCKED", "{answer}");
                        continue;
                    }
                    assert!(!owned.swap(true, Ordering::SeqCst), "two owners");
                    let text = |field: &str| answer["data"][field].as_str().unwrap().to_owned();
                    let lease = tenure_testkit::control::ControlLeaseCredentials {
                        id: text("leaseId"),
                        token: text("leaseToken"),
                    };
                    assert_ne!(*last.lock().unwrap(), lease.id, "an id was used twice");
                    lease.id.clone_into(&mut last.lock().unwrap());
                    won.fetch_add(1, Ordering::SeqCst);
                    owned.store(false, Ordering::SeqCst);
                    assert_eq!(client.release(&lease)["success"], json!(true));
                    client.pending.clear();
                }
            });
        }
    });
    assert!(won.load(Ordering::SeqCst) >= ACQUISITIONS);
    server.stop();
}

// S0-8, S0-43
#[test]
fn a_held_lease_cannot_be_taken_by_force() {
    let server = TestServer::start();
    let (mut owner, mut other) = (ControlClient::open(&server), ControlClient::open(&server));
    owner.acquire("K1 Composer");
    for force in ["force", "takeover", "takeoverAllowed"] {
        let mut fields = json!({ "clientName": "Tablet", "clientInstanceId": "1", "scope": "global" });
        fields[force] = json!(true);
        assert_eq!(other.request_error("control.acquire", &fields), "CONTROL_LOCKED");
    }
    assert_eq!(other.status()["ownerClientName"], "K1 Composer");
    server.stop();
}

/// A request that was let in before a change of hands, and whose body comes after it, does nothing.
#[test]
fn a_request_admitted_before_an_owner_change_has_no_effect_after_it() {
    use std::io::Write as _;
    let server = TestServer::start();
    let (mut owner, mut other) = (ControlClient::open(&server), ControlClient::open(&server));
    let before = other.request("parameters.get", &json!({}))["data"].clone();
    let lease = owner.acquire("K1 Composer");
    let body = r#"{"brightness":7}"#;
    let mut late = server.connect();
    let head = format!(
        "PATCH /api/v1/parameters HTTP/1.1\r\nHost: {}\r\n{}\r\nConnection: close\r\nX-Control-Lease: {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
        server.address,
        server.bearer(),
        lease.token,
        body.len(),
        &body[..4],
    );
    late.write_all(head.as_bytes()).unwrap();
    // Long enough for the gate to have seen it; if it has not, it is refused there, and this shows nothing.
    sleep(Duration::from_millis(200));
    owner.release(&lease);
    let next = other.acquire("Tablet");
    late.write_all(&body.as_bytes()[4..]).unwrap();
    let answer = tenure_testkit::read_to_end(late);
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (409, &json!("CONTROL_LOCKED")),
        "{answer:?}"
    );
    assert_eq!(other.request("parameters.get", &json!({}))["data"], before);
    // With the lease of now it works.
    let answer = send_rest_request(
        &server,
        "PATCH /api/v1/parameters",
        Some(&next.token),
        None,
        &json!({ "brightness": 7 }),
    );
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_ne!(other.request("parameters.get", &json!({}))["data"], before);
    server.stop();
}

/// Connections of a server that was stopped are gone; so are their leases, though their time is not over.
#[test]
fn the_device_is_free_after_a_restart() {
    let server = start_control_server(60_000);
    let mut owner = ControlClient::open(&server);
    owner.acquire("K1 Composer");
    let folder = server.stop();
    let server = TestServer::start_in(folder, |_| {}).unwrap();
    let mut other = ControlClient::open(&server);
    assert_eq!(other.status()["active"], json!(false));
    other.acquire("Tablet");
    server.stop();
}

/// A client that sends without end is slowed; another one is served meanwhile.
#[test]
fn a_flooding_client_does_not_slow_down_another_client() {
    let server = TestServer::start();
    let stop = Arc::new(AtomicBool::new(false));
    let mut flooding = ControlClient::open(&server);
    let flood = std::thread::spawn({
        let stop = stop.clone();
        move || {
            let mut sent = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..100 {
                    flooding.send_command("control.status", &json!({}));
                    sent += 1;
                }
                for _ in 0..100 {
                    flooding.receive_where(|message| message["type"] == "control.status");
                }
                flooding.pending.clear();
            }
            sent
        }
    });
    let mut owner = ControlClient::open(&server);
    let started = now();
    let lease = owner.acquire("K1 Composer");
    for _ in 0..50 {
        assert_eq!(owner.heartbeat(&lease)["success"], json!(true));
        owner.pending.clear();
        sleep(Duration::from_millis(50));
    }
    let elapsed = now() - started;
    stop.store(true, Ordering::Relaxed);
    let sent = flood.join().unwrap();
    // A second's worth at once, and then a thousand a second.
    let max_sent = 2_200 + 1_000 * (elapsed.as_secs() + 1);
    assert!(sent <= max_sent, "{sent} in {elapsed:?}");
    server.stop();
}
