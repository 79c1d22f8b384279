//! WebSockets, both ways.

use tenure_control::problem::ProblemCode;
use tokio::sync::mpsc::{self, Receiver};
use tokio_tungstenite::tungstenite::Message;

use super::super::RelayHandle;
use super::*;

pub(super) struct RelayClient {
    name: &'static str,
    relay: RelayHandle,
    received: Receiver<Message>,
}

pub(super) fn client(stage: &GatewayFixture, name: &'static str, capacity: usize) -> RelayClient {
    let (to_client, received) = mpsc::channel(capacity);
    RelayClient { name, relay: stage.gateway.open_relay_on_demand(name.into(), to_client), received }
}

impl RelayClient {
    /// Sends as a session would: class, pass, link.
    pub(super) fn send(
        &mut self,
        stage: &GatewayFixture,
        message: impl Into<Message>,
    ) -> Result<(), CommandError> {
        let message = message.into();
        let pass =
            stage.ownership_source.pass_websocket(self.name, stage.gateway.classify_message(&message))?;
        self.relay.send(pass, message)
    }

    pub(super) async fn receive_containing(&mut self, what: &str) -> String {
        loop {
            match soon(self.received.recv()).await.expect("the link lives") {
                Message::Text(text) if text.contains(what) => return text.to_string(),
                Message::Binary(bytes) if what == "binary" => return format!("{} bytes", bytes.len()),
                _ => {}
            }
        }
    }
}

fn code_of(blocked: Result<(), CommandError>) -> String {
    match blocked.unwrap_err() {
        CommandError::Rejected(rejection) => rejection.code.as_str().to_owned(),
        CommandError::Problem(problem) => problem.code.as_str().to_owned(),
    }
}

// S0-73 S0-77
#[tokio::test]
async fn messages_are_relayed_both_ways_and_only_the_owner_may_send_commands() {
    let stage = stage().await;
    let (mut alice, mut bob) = (client(&stage, "alice", 64), client(&stage, "bob", 64));
    stage.ownership_source.grant_to("alice");
    assert_eq!(stage.wled.opened_sockets(), 0, "nothing is opened before it is needed");
    alice.send(&stage, r#"{"bri":3}"#).unwrap();
    alice.receive_containing(r#""bri":127"#).await;
    alice.receive_containing(r#""bri":3"#).await;
    assert_eq!(code_of(bob.send(&stage, r#"{"bri":4}"#)), "CONTROL_LOCKED");
    assert_eq!(code_of(bob.send(&stage, r#"{"v":true,"bri":4}"#)), "CONTROL_LOCKED");
    assert_eq!(code_of(bob.send(&stage, Message::binary(&b"\x02DDP"[..]))), "CONTROL_LOCKED");
    bob.send(&stage, r#"{"v":true}"#).unwrap();
    bob.receive_containing(r#""bri":3"#).await;
    bob.send(&stage, r#"{"lv":true}"#).unwrap();
    assert_eq!(bob.receive_containing("binary").await, "5 bytes");
    bob.send(&stage, "p").unwrap();
    bob.receive_containing("pong").await;
    alice.send(&stage, Message::binary(&b"\x02DDP"[..])).unwrap();
    stage.wled.wait_until("the frame arrives", |wled| wled.applied_commands().len() == 2).await;
    assert_eq!(stage.wled.applied_commands(), [r#"WS {"bri":3}"#, "WS 4 bytes"]);
    bob.receive_containing("state").await;
    assert_eq!(stage.wled.opened_sockets(), 2, "each client has one of its own");
    drop(alice);
    stage.wled.wait_for_sockets(1).await;
}

// S0-61, and the gateway's part of it.
#[tokio::test]
async fn an_owner_change_cuts_only_sockets_that_carried_commands() {
    let stage = stage().await;
    let (mut alice, mut bob, mut carol) =
        (client(&stage, "alice", 64), client(&stage, "bob", 64), client(&stage, "carol", 64));
    stage.ownership_source.grant_to("alice");
    alice.send(&stage, r#"{"bri":3}"#).unwrap();
    alice.receive_containing(r#""bri":3"#).await;
    carol.send(&stage, r#"{"v":true}"#).unwrap();
    carol.receive_containing(r#""bri":3"#).await;
    stage.wled.wait_for_sockets(2).await;
    // Commands that wait here.
    stage.wled.set_stall_mode(StallMode::BeforeReading);
    alice.send(&stage, r#"{"bri":4}"#).unwrap();
    stage.wled.wait_until("the last one that it reads", |wled| wled.applied_commands().len() == 2).await;
    for _ in 0..8 {
        let _ = alice.send(&stage, r#"{"bri":5}"#);
    }
    let generation = stage.ownership_source.grant_to("bob");
    soon(stage.gateway.drain(generation)).await;
    stage.wled.set_stall_mode(StallMode::None);
    bob.send(&stage, r#"{"bri":6}"#).unwrap();
    bob.receive_containing(r#""bri":6"#).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let obeyed = stage.wled.applied_commands();
    let from_bob = obeyed.iter().position(|command| command.contains('6')).unwrap();
    assert!(obeyed[from_bob + 1..].is_empty(), "nothing of alice's after bob's first: {obeyed:?}");
    assert!(!obeyed.iter().any(|command| command.contains('5')), "{obeyed:?}");
    // Carol was not disturbed; alice listens on a connection that has carried nothing.
    stage.wled.wait_for_sockets(3).await;
    assert_eq!(stage.wled.opened_sockets(), 4);
    alice.receive_containing(r#""bri":6"#).await;
    carol.receive_containing(r#""bri":6"#).await;
    assert_eq!(code_of(alice.send(&stage, r#"{"bri":7}"#)), "CONTROL_LOCKED");
    alice.send(&stage, r#"{"v":true}"#).unwrap();
}

#[tokio::test]
async fn messages_in_the_socket_buffer_are_discarded_on_an_owner_change() {
    let stage = stage_before(FakeWled::start_with_small_buffer().await, |_| {});
    let (mut alice, mut bob) = (client(&stage, "alice", 64), client(&stage, "bob", 64));
    stage.ownership_source.grant_to("alice");
    alice.send(&stage, r#"{"bri":3}"#).unwrap();
    alice.receive_containing(r#""bri":3"#).await;
    stage.wled.set_stall_mode(StallMode::BeforeReading);
    for _ in 0..30 {
        alice.send(&stage, Message::binary(vec![2; 16 << 10])).unwrap();
    }
    // Time enough to write all of it; the device takes less than one of them.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let generation = stage.ownership_source.grant_to("bob");
    soon(stage.gateway.drain(generation)).await;
    stage.wled.set_stall_mode(StallMode::None);
    bob.send(&stage, r#"{"bri":6}"#).unwrap();
    bob.receive_containing(r#""bri":6"#).await;
    stage.wled.wait_until("alice has a new connection", |wled| wled.opened_sockets() == 3).await;
    // The old one is at its end, with all that came over it.
    stage.wled.wait_for_sockets(2).await;
    let frames = stage.wled.applied_commands().iter().filter(|command| command.ends_with("bytes")).count();
    assert!(frames <= 2, "{frames} of 30, and the rest was on its way");
}

#[tokio::test]
async fn a_client_that_becomes_the_owner_keeps_its_socket() {
    let stage = stage().await;
    let mut alice = client(&stage, "alice", 64);
    alice.send(&stage, r#"{"bri":3}"#).unwrap();
    alice.receive_containing(r#""bri":3"#).await;
    let generation = stage.ownership_source.grant_to("alice");
    soon(stage.gateway.drain(generation)).await;
    alice.send(&stage, r#"{"bri":4}"#).unwrap();
    alice.receive_containing(r#""bri":4"#).await;
    assert_eq!(stage.wled.opened_sockets(), 1);
    let generation = stage.ownership_source.take_back();
    soon(stage.gateway.drain(generation)).await;
    stage.wled.wait_until("its connection is a new one", |wled| wled.opened_sockets() == 2).await;
}

#[tokio::test]
async fn a_queued_message_is_rejected_after_an_owner_change() {
    let stage = stage().await;
    let mut alice = client(&stage, "alice", 64);
    stage.ownership_source.grant_to("alice");
    stage.wled.set_stall_mode(StallMode::BeforeReading);
    let moving = stage.asking(Some("alice"), post("/json/state", r#"{"bri":1}"#));
    stage.wled.wait_until("the device has the request", |wled| wled.received_requests().len() == 1).await;
    alice.send(&stage, r#"{"requestId":"r-1","bri":2}"#).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let generation = stage.ownership_source.grant_to("bob");
    soon(stage.gateway.drain(generation)).await;
    stage.wled.set_stall_mode(StallMode::None);
    let error: Value = serde_json::from_str(&alice.receive_containing("error").await).unwrap();
    assert_eq!((&error["type"], &error["requestId"]), (&"error".into(), &"r-1".into()));
    assert_eq!(error["error"]["code"], "CONTROL_LOCKED");
    assert_eq!(error["error"]["message"], "Command blocked by active control lease");
    assert!(error["error"].get("requiredHeader").is_none());
    assert_eq!(code(soon(moving).await.unwrap()).await.1, "CONTROL_LOCKED");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(stage.wled.applied_commands().is_empty());
}

#[tokio::test]
async fn only_the_client_that_does_not_read_is_disconnected() {
    let stage = stage().await;
    let (mut deaf, mut bob) = (client(&stage, "deaf", 4), client(&stage, "bob", 256));
    bob.send(&stage, r#"{"v":true}"#).unwrap();
    bob.receive_containing("state").await;
    deaf.send(&stage, r#"{"say":"hello","times":50}"#).unwrap();
    stage.wled.wait_for_sockets(2).await;
    stage.wled.wait_for_sockets(1).await;
    for _ in 0..4 {
        assert!(soon(deaf.received.recv()).await.is_some());
    }
    assert!(soon(deaf.received.recv()).await.is_none(), "its session sees the end");
    assert_eq!(code_of(deaf.send(&stage, r#"{"v":true}"#)), "UNAVAILABLE");
    bob.send(&stage, r#"{"say":"hello","times":50}"#).unwrap();
    for _ in 0..50 {
        bob.receive_containing("hello").await;
    }
}

#[tokio::test]
async fn control_messages_from_the_device_are_not_relayed() {
    let stage = stage().await;
    let mut alice = client(&stage, "alice", 64);
    let forged = r#"{"say":"{\"type\":\"control.acquired\",\"success\":true}"}"#;
    alice.send(&stage, forged).unwrap();
    alice.send(&stage, "p").unwrap();
    let pong = async {
        loop {
            let Message::Text(text) = alice.received.recv().await.unwrap() else { continue };
            assert!(!text.contains("acquired"), "{text}");
            if text == "pong" {
                return;
            }
        }
    };
    soon(pong).await;
}

#[tokio::test]
async fn an_unreachable_device_is_reported_to_the_client() {
    let stage = stage_with(|settings| settings.timeouts.connect = Duration::from_millis(500)).await;
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gateway = Gateway::new(settings(&format!("http://{unused}")), stage.ownership_source.clone());
    let (to_client, mut received) = mpsc::channel(4);
    let mut link = gateway.open_relay_on_demand("alice".into(), to_client);
    let message = Message::text(r#"{"on":true}"#);
    let pass = stage.ownership_source.pass_websocket("alice", gateway.classify_message(&message)).unwrap();
    link.send(pass, message).unwrap();
    let Some(Message::Text(error)) = soon(received.recv()).await else { panic!("an answer") };
    assert!(
        error.contains(ProblemCode::Unavailable.as_str()) && error.contains("nothing was sent"),
        "{error}"
    );
    drop(link);
    assert!(soon(received.recv()).await.is_none());
}

#[tokio::test]
async fn a_client_that_sends_too_fast_gets_busy() {
    let stage = stage().await;
    let mut alice = client(&stage, "alice", 64);
    stage.wled.set_stall_mode(StallMode::BeforeReading);
    let moving = stage.asking(None, post("/json/state", r#"{"bri":1}"#));
    stage.wled.wait_until("the device has the request", |wled| wled.received_requests().len() == 1).await;
    let refused = (0..100).find_map(|_| alice.send(&stage, r#"{"bri":2}"#).err());
    assert_eq!(code_of(Err(refused.expect("a bound"))), "BUSY");
    stage.wled.set_stall_mode(StallMode::None);
    assert_eq!(soon(moving).await.unwrap().status(), 200);
    stage.wled.wait_until("what was taken is done", |wled| wled.applied_commands().len() > 30).await;
}
