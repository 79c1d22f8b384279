//! A disk that takes its time.

use std::time::Duration;

use tenure_testkit::{ServerProcess, now, serve_command, sleep};

use crate::fault_injection::Tracer;

#[test]
fn grant_is_visible_only_when_durable_and_readers_do_not_wait() {
    let folder = tempfile::tempdir().unwrap();
    let served = ServerProcess::start(&mut serve_command(folder.path()));
    let mut reader = served.client();
    let held = reader.acquire("db:1", 60_000, None).unwrap().held_lease();
    let mut writer = reader.reconnect();
    // Every sync takes two seconds, also that of a mark of the time which may be before ours.
    let _tracer = Tracer::attach(&served, "fdatasync:delay_enter=2000000");
    let started = now();
    let acquire = std::thread::spawn(move || (writer.acquire("db:2", 60_000, None).unwrap(), now()));
    let mut reads = 0;
    while !acquire.is_finished() {
        let requested_at = now();
        let all = reader.request("GET /v1/leases", None, "").unwrap();
        let shown = reader.show(&held.id).unwrap();
        let answered = now();
        assert_eq!((all.status, shown.lease_state()), (200, "ACTIVE"));
        assert!(
            answered - requested_at < Duration::from_secs(1),
            "a reader waited {:?}",
            answered - requested_at
        );
        // What was read after the answer came proves nothing.
        if answered - started < Duration::from_millis(1_900) {
            assert_eq!(
                all.body["leases"].as_array().unwrap().len(),
                1,
                "shown before it was durable: {all:?}"
            );
            reads += 1;
        }
        sleep(Duration::from_millis(50));
    }
    let (answer, answered) = acquire.join().unwrap();
    answer.held_lease();
    assert!(answered - started >= Duration::from_millis(1_900), "answered after {:?}", answered - started);
    assert!(reads > 3, "only {reads} reads while it was written");
    assert_eq!(
        reader.request("GET /v1/leases", None, "").unwrap().body["leases"].as_array().unwrap().len(),
        2
    );
}

#[test]
fn stalled_disk_expires_no_lease_with_a_timely_renewal() {
    let folder = tempfile::tempdir().unwrap();
    let served = ServerProcess::start(&mut serve_command(folder.path()));
    let mut holder = served.client();
    let mut other = holder.reconnect();
    let held = holder.acquire("db:1", 5_000, None).unwrap().held_lease();
    let granted = now();
    let tracer = Tracer::attach_to_writer(&served, "fdatasync:delay_enter=6000000:when=1");
    // Its write stalls for longer than the first lease lasts.
    let stalled = std::thread::spawn(move || (other.acquire("db:2", 60_000, None).unwrap().status, now()));
    sleep(Duration::from_millis(4_000).saturating_sub(now() - granted));
    assert!(!stalled.is_finished(), "the disk must have stalled by now");
    let mut rival = holder.reconnect();
    let beat = std::thread::spawn(move || (holder.renew(&held).unwrap(), holder));
    // By now it would be over, but for the heartbeat; this asks before the heartbeat was decided.
    sleep(Duration::from_millis(5_500).saturating_sub(now() - granted));
    assert!(!beat.is_finished(), "the disk must stall still");
    let refused = rival.acquire("db:1", 5_000, None).unwrap();
    assert_eq!(refused.status_and_code(), (409, "HELD"), "{refused:?}");

    let (status, answered) = stalled.join().unwrap();
    assert_eq!(status, 201);
    assert!(answered - granted >= Duration::from_millis(5_900), "it stalled until {:?}", answered - granted);
    let (renewed, mut holder) = beat.join().unwrap();
    assert_eq!(renewed.status, 200, "{renewed:?}");
    drop(tracer);
    let id = renewed.body["lease"]["id"].as_str().unwrap();
    assert_eq!(holder.show(id).unwrap().lease_state(), "ACTIVE");
    assert_eq!(rival.acquire("db:1", 5_000, None).unwrap().status_and_code(), (409, "HELD"));
}
