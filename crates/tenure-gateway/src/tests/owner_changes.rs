//! A command that was permitted before an ownership change has no effect after it.

use axum::body::{Body, Bytes};
use futures_util::stream;
use tokio::sync::mpsc;

use super::*;

// Gateway: "cancels what is in flight before the next `control.acquired`" (S0-1, S0-37).
#[tokio::test]
async fn a_pending_request_is_cut_before_drain_returns() {
    let stage = stage().await;
    stage.ownership_source.grant_to("alice");
    stage.wled.set_stall_mode(StallMode::BeforeReading);
    let moving = stage.asking(Some("alice"), post("/json/state", r#"{"on":false}"#));
    stage.wled.wait_until("the device has the request", |wled| wled.received_requests().len() == 1).await;
    let generation = {
        let ownership = stage.ownership_source.ownership.lock();
        ownership.0.epoch()
    };
    assert!(not_yet(stage.gateway.drain(generation + 1)).await, "not while it is on its way");
    let generation = stage.ownership_source.grant_to("bob");
    soon(stage.gateway.drain(generation)).await;
    // From here on bob is told that the device is his.
    stage.wled.set_stall_mode(StallMode::None);
    assert_eq!(code(soon(moving).await.unwrap()).await, (409, "CONTROL_LOCKED".into()));
    let answer = soon(stage.ask(Some("bob"), post("/json/state", r#"{"bri":5}"#))).await;
    assert_eq!(answer.status(), 200);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(stage.wled.applied_commands(), [r#"POST {"bri":5}"#]);
    assert_eq!(stage.wled.state("on"), true);
}

#[tokio::test]
async fn requests_queued_behind_a_command_are_not_sent_after_the_lease_ends() {
    let stage = stage().await;
    stage.ownership_source.grant_to("alice");
    stage.wled.set_stall_mode(StallMode::BeforeReading);
    let first = stage.asking(Some("alice"), post("/json/state", r#"{"bri":1}"#));
    stage.wled.wait_until("the device has the request", |wled| wled.received_requests().len() == 1).await;
    let second = stage.asking(Some("alice"), post("/json/state", r#"{"bri":2}"#));
    let third = stage.asking(Some("alice"), get("/win&A=3"));
    tokio::time::sleep(Duration::from_millis(50)).await;
    let generation = stage.ownership_source.take_back();
    soon(stage.gateway.drain(generation)).await;
    stage.wled.set_stall_mode(StallMode::None);
    for pending in [first, second, third] {
        assert_eq!(code(soon(pending).await.unwrap()).await, (409, "LEASE_EXPIRED".into()));
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(stage.wled.applied_commands().is_empty());
    assert_eq!(stage.wled.received_requests().len(), 1);
}

#[tokio::test]
async fn the_rest_of_a_body_is_not_sent_after_an_owner_change() {
    let stage = stage().await;
    stage.ownership_source.grant_to("alice");
    let (pieces, taken) = mpsc::channel::<Result<Bytes, std::io::Error>>(4);
    let body = stream::unfold(taken, |mut taken| async { taken.recv().await.map(|piece| (piece, taken)) });
    let moving = stage.asking(Some("alice"), post("/json/state", Body::from_stream(body)));
    pieces.send(Ok(Bytes::from_static(br#"{"on":"#))).await.unwrap();
    stage.wled.wait_until("half of it arrives", |wled| wled.received_bytes() > 0).await;
    let generation = stage.ownership_source.grant_to("bob");
    let _ = pieces.send(Ok(Bytes::from_static(b"false}"))).await;
    drop(pieces);
    soon(stage.gateway.drain(generation)).await;
    assert_eq!(code(soon(moving).await.unwrap()).await, (409, "CONTROL_LOCKED".into()));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(stage.wled.applied_commands().is_empty());
    assert_eq!(stage.wled.state("on"), true);
}

/// All of it was written, and none of it read: a farewell would let it arrive.
#[tokio::test]
async fn a_request_in_the_socket_buffer_is_discarded_on_an_owner_change() {
    let stage = stage_before(FakeWled::start_with_small_buffer().await, |_| {});
    stage.ownership_source.grant_to("alice");
    stage.wled.set_stall_mode(StallMode::BeforeReading);
    let body = format!("{{\"bri\":1,\"n\":\"{}\"}}", "x".repeat(256 << 10));
    let moving = stage.asking(Some("alice"), post("/json/state", body));
    stage
        .wled
        .wait_until("the device has the request's head", |wled| wled.received_requests().len() == 1)
        .await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let generation = stage.ownership_source.grant_to("bob");
    soon(stage.gateway.drain(generation)).await;
    stage.wled.set_stall_mode(StallMode::None);
    assert_eq!(code(soon(moving).await.unwrap()).await.1, "CONTROL_LOCKED");
    assert_eq!(soon(stage.ask(Some("bob"), get("/win&A=2"))).await.status(), 200);
    stage.wled.wait_until("nobody moves it any more", |wled| wled.pending_commands() == 0).await;
    assert_eq!(stage.wled.applied_commands(), ["GET /win&A=2"]);
}

/// Its time is over, and the ledger has not said so yet: hands have not changed.
#[tokio::test]
async fn a_queued_command_is_not_sent_after_the_lease_expired() {
    let stage = stage().await;
    stage.ownership_source.grant_to("alice");
    let mut alice = websockets::client(&stage, "alice", 64);
    stage.wled.set_stall_mode(StallMode::BeforeReading);
    let first = stage.asking(Some("alice"), post("/json/state", r#"{"bri":1}"#));
    stage.wled.wait_until("the device has the request", |wled| wled.received_requests().len() == 1).await;
    let second = stage.asking(Some("alice"), post("/json/state", r#"{"bri":2}"#));
    alice.send(&stage, r#"{"bri":3}"#).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    stage.ownership_source.now.store(TickDuration::from_secs(5).0, Ordering::Release);
    stage.wled.set_stall_mode(StallMode::None);
    assert_eq!(soon(first).await.unwrap().status(), 200, "sent while it was alive");
    assert_eq!(code(soon(second).await.unwrap()).await, (409, "LEASE_EXPIRED".into()));
    assert!(alice.receive_containing("error").await.contains("LEASE_EXPIRED"));
    assert_eq!(stage.wled.applied_commands(), [r#"POST {"bri":1}"#]);
}

/// A command that passed the gate, and is delayed between that and the device.
#[tokio::test]
async fn a_permit_from_before_an_owner_change_is_rejected() {
    let stage = stage().await;
    stage.ownership_source.grant_to("alice");
    let request = post("/json/state", r#"{"on":false}"#);
    let pass =
        stage.ownership_source.pass_rest(Some("alice"), stage.gateway.classify_request(&request)).unwrap();
    let generation = stage.ownership_source.grant_to("bob");
    soon(stage.gateway.drain(generation)).await;
    assert_eq!(
        code(response(stage.gateway.forward(pass, request, None).await)).await,
        (409, "CONTROL_LOCKED".into())
    );
    assert!(stage.wled.applied_commands().is_empty());
    let seen = stage.wled.received_requests();
    assert!(seen.is_empty(), "not even its first line: {seen:?}");
}

#[tokio::test]
async fn an_unread_response_does_not_delay_drain() {
    let stage = stage().await;
    stage.ownership_source.grant_to("alice");
    // No line of the table has it: so it may have moved the device, and counts as on its way until its end.
    let answer = stage.ask(Some("alice"), get("/big")).await;
    assert_eq!(answer.status(), 200);
    let generation = stage.ownership_source.grant_to("bob");
    soon(stage.gateway.drain(generation)).await;
    assert_eq!(soon(stage.ask(Some("bob"), get("/win&A=1"))).await.status(), 200);
    assert!(soon(answer.into_body().collect()).await.is_err(), "what is left of it is not taken for all");
}

#[tokio::test]
async fn reads_and_exempt_requests_survive_an_owner_change() {
    let stage = stage().await;
    stage.ownership_source.grant_to("alice");
    stage.wled.set_stall_mode(StallMode::BeforeReading);
    let exempt = stage.asking(None, post("/update", "firmware"));
    stage.wled.wait_until("the device has the request", |wled| wled.received_requests().len() == 1).await;
    let generation = stage.ownership_source.grant_to("bob");
    soon(stage.gateway.drain(generation)).await;
    stage.wled.set_stall_mode(StallMode::None);
    assert_eq!(soon(exempt).await.unwrap().status(), 200);
}

/// What cannot be promised, and is not: docs/guides/gateway.md says so.
#[tokio::test]
async fn the_device_may_execute_what_it_already_received() {
    let stage = stage().await;
    stage.ownership_source.grant_to("alice");
    stage.wled.set_stall_mode(StallMode::BeforeApplying);
    let moving = stage.asking(Some("alice"), post("/json/state", r#"{"bri":1}"#));
    stage.wled.wait_until("the device has all of it", |wled| wled.received_bytes() > 0).await;
    let generation = stage.ownership_source.grant_to("bob");
    soon(stage.gateway.drain(generation)).await;
    assert_eq!(code(soon(moving).await.unwrap()).await.1, "CONTROL_LOCKED");
    stage.wled.set_stall_mode(StallMode::None);
    stage.wled.wait_until("it does what it has", |wled| wled.applied_commands().len() == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn drain_returns_after_many_owner_changes() {
    let stage = stage().await;
    for round in 0..40_u64 {
        let owner = if round % 2 == 0 { "alice" } else { "bob" };
        let generation = stage.ownership_source.grant_to(owner);
        soon(stage.gateway.drain(generation)).await;
        let before = stage.wled.applied_commands().len();
        let requests: Vec<_> = (0..4)
            .map(|_| stage.asking(Some(owner), post("/json/state", format!("{{\"bri\":{round}}}"))))
            .collect();
        // Some of them are done by then, and some never will be.
        stage.wled.wait_until("one is done", |wled| wled.applied_commands().len() > before).await;
        let generation = stage.ownership_source.take_back();
        soon(stage.gateway.drain(generation)).await;
        for request in requests {
            let status = soon(request).await.unwrap().status();
            assert!(status == 200 || status == 409, "{status}");
        }
    }
    let rounds: Vec<_> = stage.wled.applied_commands();
    assert!(rounds.len() >= 40);
}
