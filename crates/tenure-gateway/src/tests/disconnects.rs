//! Connections that end: by the client, by the device, and in the middle of a message.

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;

use super::websockets::client;
use super::*;

/// The real controller is asked while the next change may be on its way to everybody.
#[tokio::test]
async fn reading_the_owner_does_not_block_an_owner_change() {
    let stage = stage().await;
    let mut alice = client(&stage, "alice", 64);
    alice.send(&stage, r#"{"bri":3}"#).unwrap();
    alice.receive_containing(r#""bri":3"#).await;
    let generation = stage.ownership_source.grant_to("alice");
    soon(stage.gateway.drain(generation)).await;
    alice.send(&stage, r#"{"bri":4}"#).unwrap();
    alice.receive_containing(r#""bri":4"#).await;
    let generation = stage.ownership_source.grant_to("bob");
    soon(stage.gateway.drain(generation)).await;
    assert!(!stage.ownership_source.was_blocked.load(Ordering::Acquire));
}

/// A farewell is written behind what is still in the system's buffers, and says nothing about whether that arrived.
#[tokio::test]
async fn messages_of_a_disconnected_client_are_discarded_on_an_owner_change() {
    let stage = stage_before(FakeWled::start_with_small_buffer().await, |_| {});
    let (mut alice, mut bob) = (client(&stage, "alice", 64), client(&stage, "bob", 64));
    stage.ownership_source.grant_to("alice");
    alice.send(&stage, r#"{"bri":3}"#).unwrap();
    alice.receive_containing(r#""bri":3"#).await;
    stage.wled.set_stall_mode(StallMode::BeforeReading);
    for _ in 0..30 {
        alice.send(&stage, Message::binary(vec![2; 16 << 10])).unwrap();
    }
    // Time enough to write all of it, and then the farewell; the device takes less than one of them.
    tokio::time::sleep(Duration::from_millis(300)).await;
    drop(alice);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let generation = stage.ownership_source.grant_to("bob");
    soon(stage.gateway.drain(generation)).await;
    stage.wled.set_stall_mode(StallMode::None);
    bob.send(&stage, r#"{"bri":6}"#).unwrap();
    bob.receive_containing(r#""bri":6"#).await;
    stage.wled.wait_for_sockets(1).await;
    let frames = stage.wled.applied_commands().iter().filter(|command| command.ends_with("bytes")).count();
    assert!(frames <= 2, "{frames} of 30, and the rest was on its way");
}

/// The device hangs up while a command waits for its turn, and then answers nobody who connects again.
#[tokio::test]
async fn a_lost_device_socket_does_not_delay_drain() {
    let device = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let ownership_source = FakeOwnershipSource::new();
    let url = format!("http://{}", device.local_addr().unwrap());
    let gateway = Arc::new(Gateway::new(settings(&url), ownership_source.clone()));
    let (to_client, mut received) = mpsc::channel(16);
    let mut link = gateway.open_relay_on_demand("alice".into(), to_client);
    let mut send = |text: &'static str| {
        let message = Message::text(text);
        let pass = ownership_source.pass_websocket("alice", gateway.classify_message(&message)).unwrap();
        link.send(pass, message).unwrap();
    };
    send(r#"{"v":true}"#);
    let line = accept_async(soon(device.accept()).await.unwrap().0).await.unwrap();
    let moving =
        tokio::spawn(ask(gateway.clone(), ownership_source.clone(), None, post("/json/state", "{}")));
    let request = soon(device.accept()).await.unwrap();
    send(r#"{"bri":2}"#);
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(line);
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(request);
    assert_eq!(code(soon(moving).await.unwrap()).await.1, "OUTCOME_UNKNOWN");
    let Some(Message::Text(error)) = soon(received.recv()).await else { panic!("an answer") };
    assert!(error.contains("closed its WebSocket"), "{error}");
    let _silent = soon(device.accept()).await.unwrap();
    let generation = ownership_source.grant_to("bob");
    let drained = timeout(Duration::from_secs(5), gateway.drain(generation)).await;
    assert!(drained.is_ok(), "nothing is on its way");
}
