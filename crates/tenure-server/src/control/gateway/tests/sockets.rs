//! WebSockets, both ways.

use tenure_control::problem::ProblemCode;
use tokio::sync::mpsc::{self, Receiver};
use tokio_tungstenite::tungstenite::Message;

use super::super::{Blocked, Link};
use super::*;

pub(super) struct Client {
    name: &'static str,
    link: Link,
    heard: Receiver<Message>,
}

pub(super) fn client(stage: &Stage, name: &'static str, room: usize) -> Client {
    let (to_client, heard) = mpsc::channel(room);
    Client { name, link: stage.gateway.open(name.into(), to_client), heard }
}

impl Client {
    /// Sends as a session would: class, pass, link.
    pub(super) fn send(&mut self, stage: &Stage, message: impl Into<Message>) -> Result<(), Blocked> {
        let message = message.into();
        let pass = stage.desk.pass_websocket(self.name, stage.gateway.classify(&message))?;
        self.link.send(pass, message)
    }

    pub(super) async fn hears(&mut self, what: &str) -> String {
        loop {
            match soon(self.heard.recv()).await.expect("the link lives") {
                Message::Text(text) if text.contains(what) => return text.to_string(),
                Message::Binary(bytes) if what == "binary" => return format!("{} bytes", bytes.len()),
                _ => {}
            }
        }
    }
}

fn code_of(blocked: Result<(), Blocked>) -> String {
    match blocked.unwrap_err() {
        Blocked::Refused(refusal) => refusal.code.as_str().to_owned(),
        Blocked::Problem(problem) => problem.code.as_str().to_owned(),
    }
}

// S0-73 S0-77
#[tokio::test]
async fn messages_are_relayed_both_ways_and_only_the_owner_may_send_commands() {
    let stage = stage().await;
    let (mut alice, mut bob) = (client(&stage, "alice", 64), client(&stage, "bob", 64));
    stage.desk.give("alice");
    assert_eq!(stage.wled.opened(), 0, "nothing is opened before it is needed");
    alice.send(&stage, r#"{"bri":3}"#).unwrap();
    alice.hears(r#""bri":127"#).await;
    alice.hears(r#""bri":3"#).await;
    assert_eq!(code_of(bob.send(&stage, r#"{"bri":4}"#)), "CONTROL_LOCKED");
    assert_eq!(code_of(bob.send(&stage, r#"{"v":true,"bri":4}"#)), "CONTROL_LOCKED");
    assert_eq!(code_of(bob.send(&stage, Message::binary(&b"\x02DDP"[..]))), "CONTROL_LOCKED");
    bob.send(&stage, r#"{"v":true}"#).unwrap();
    bob.hears(r#""bri":3"#).await;
    bob.send(&stage, r#"{"lv":true}"#).unwrap();
    assert_eq!(bob.hears("binary").await, "5 bytes");
    bob.send(&stage, "p").unwrap();
    bob.hears("pong").await;
    alice.send(&stage, Message::binary(&b"\x02DDP"[..])).unwrap();
    stage.wled.until("the frame arrives", |wled| wled.obeyed().len() == 2).await;
    assert_eq!(stage.wled.obeyed(), [r#"WS {"bri":3}"#, "WS 4 bytes"]);
    bob.hears("state").await;
    assert_eq!(stage.wled.opened(), 2, "each client has one of its own");
    drop(alice);
    stage.wled.has_sockets(1).await;
}

// S0-61, and the gateway's part of it.
#[tokio::test]
async fn an_owner_change_cuts_only_sockets_that_carried_commands() {
    let stage = stage().await;
    let (mut alice, mut bob, mut carol) =
        (client(&stage, "alice", 64), client(&stage, "bob", 64), client(&stage, "carol", 64));
    stage.desk.give("alice");
    alice.send(&stage, r#"{"bri":3}"#).unwrap();
    alice.hears(r#""bri":3"#).await;
    carol.send(&stage, r#"{"v":true}"#).unwrap();
    carol.hears(r#""bri":3"#).await;
    stage.wled.has_sockets(2).await;
    // Commands that wait here.
    stage.wled.feel(Mood::StallsBeforeReading);
    alice.send(&stage, r#"{"bri":4}"#).unwrap();
    stage.wled.until("the last one that it reads", |wled| wled.obeyed().len() == 2).await;
    for _ in 0..8 {
        let _ = alice.send(&stage, r#"{"bri":5}"#);
    }
    let generation = stage.desk.give("bob");
    soon(stage.gateway.quiet(generation)).await;
    stage.wled.feel(Mood::Obeys);
    bob.send(&stage, r#"{"bri":6}"#).unwrap();
    bob.hears(r#""bri":6"#).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let obeyed = stage.wled.obeyed();
    let from_bob = obeyed.iter().position(|command| command.contains('6')).unwrap();
    assert!(obeyed[from_bob + 1..].is_empty(), "nothing of alice's after bob's first: {obeyed:?}");
    assert!(!obeyed.iter().any(|command| command.contains('5')), "{obeyed:?}");
    // Carol was not disturbed; alice listens on a connection that has carried nothing.
    stage.wled.has_sockets(3).await;
    assert_eq!(stage.wled.opened(), 4);
    alice.hears(r#""bri":6"#).await;
    carol.hears(r#""bri":6"#).await;
    assert_eq!(code_of(alice.send(&stage, r#"{"bri":7}"#)), "CONTROL_LOCKED");
    alice.send(&stage, r#"{"v":true}"#).unwrap();
}

#[tokio::test]
async fn messages_in_the_socket_buffer_are_discarded_on_an_owner_change() {
    let stage = stage_before(Wled::start_small().await, |_| {});
    let (mut alice, mut bob) = (client(&stage, "alice", 64), client(&stage, "bob", 64));
    stage.desk.give("alice");
    alice.send(&stage, r#"{"bri":3}"#).unwrap();
    alice.hears(r#""bri":3"#).await;
    stage.wled.feel(Mood::StallsBeforeReading);
    for _ in 0..30 {
        alice.send(&stage, Message::binary(vec![2; 16 << 10])).unwrap();
    }
    // Time enough to write all of it; the device takes less than one of them.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let generation = stage.desk.give("bob");
    soon(stage.gateway.quiet(generation)).await;
    stage.wled.feel(Mood::Obeys);
    bob.send(&stage, r#"{"bri":6}"#).unwrap();
    bob.hears(r#""bri":6"#).await;
    stage.wled.until("alice has a new connection", |wled| wled.opened() == 3).await;
    // The old one is at its end, with all that came over it.
    stage.wled.has_sockets(2).await;
    let frames = stage.wled.obeyed().iter().filter(|command| command.ends_with("bytes")).count();
    assert!(frames <= 2, "{frames} of 30, and the rest was on its way");
}

#[tokio::test]
async fn a_client_that_becomes_the_owner_keeps_its_socket() {
    let stage = stage().await;
    let mut alice = client(&stage, "alice", 64);
    alice.send(&stage, r#"{"bri":3}"#).unwrap();
    alice.hears(r#""bri":3"#).await;
    let generation = stage.desk.give("alice");
    soon(stage.gateway.quiet(generation)).await;
    alice.send(&stage, r#"{"bri":4}"#).unwrap();
    alice.hears(r#""bri":4"#).await;
    assert_eq!(stage.wled.opened(), 1);
    let generation = stage.desk.take_back();
    soon(stage.gateway.quiet(generation)).await;
    stage.wled.until("its connection is a new one", |wled| wled.opened() == 2).await;
}

#[tokio::test]
async fn a_queued_message_is_rejected_after_an_owner_change() {
    let stage = stage().await;
    let mut alice = client(&stage, "alice", 64);
    stage.desk.give("alice");
    stage.wled.feel(Mood::StallsBeforeReading);
    let moving = stage.asking(Some("alice"), post("/json/state", r#"{"bri":1}"#));
    stage.wled.until("the device has the request", |wled| wled.seen().len() == 1).await;
    alice.send(&stage, r#"{"requestId":"r-1","bri":2}"#).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let generation = stage.desk.give("bob");
    soon(stage.gateway.quiet(generation)).await;
    stage.wled.feel(Mood::Obeys);
    let told: Value = serde_json::from_str(&alice.hears("error").await).unwrap();
    assert_eq!((&told["type"], &told["requestId"]), (&"error".into(), &"r-1".into()));
    assert_eq!(told["error"]["code"], "CONTROL_LOCKED");
    assert_eq!(told["error"]["message"], "Command blocked by active control lease");
    assert!(told["error"].get("requiredHeader").is_none());
    assert_eq!(code(soon(moving).await.unwrap()).await.1, "CONTROL_LOCKED");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(stage.wled.obeyed().is_empty());
}

#[tokio::test]
async fn only_the_client_that_does_not_read_is_disconnected() {
    let stage = stage().await;
    let (mut deaf, mut bob) = (client(&stage, "deaf", 4), client(&stage, "bob", 256));
    bob.send(&stage, r#"{"v":true}"#).unwrap();
    bob.hears("state").await;
    deaf.send(&stage, r#"{"say":"hello","times":50}"#).unwrap();
    stage.wled.has_sockets(2).await;
    stage.wled.has_sockets(1).await;
    for _ in 0..4 {
        assert!(soon(deaf.heard.recv()).await.is_some());
    }
    assert!(soon(deaf.heard.recv()).await.is_none(), "its session sees the end");
    assert_eq!(code_of(deaf.send(&stage, r#"{"v":true}"#)), "UNAVAILABLE");
    bob.send(&stage, r#"{"say":"hello","times":50}"#).unwrap();
    for _ in 0..50 {
        bob.hears("hello").await;
    }
}

#[tokio::test]
async fn control_messages_from_the_device_are_not_relayed() {
    let stage = stage().await;
    let mut alice = client(&stage, "alice", 64);
    let lie = r#"{"say":"{\"type\":\"control.acquired\",\"success\":true}"}"#;
    alice.send(&stage, lie).unwrap();
    alice.send(&stage, "p").unwrap();
    let heard = async {
        loop {
            let Message::Text(text) = alice.heard.recv().await.unwrap() else { continue };
            assert!(!text.contains("acquired"), "{text}");
            if text == "pong" {
                return;
            }
        }
    };
    soon(heard).await;
}

#[tokio::test]
async fn an_unreachable_device_is_reported_to_the_client() {
    let stage = stage_with(|settings| settings.patience.connect = Duration::from_millis(500)).await;
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gateway = Gateway::new(settings(&format!("http://{unused}")), stage.desk.clone());
    let (to_client, mut heard) = mpsc::channel(4);
    let mut link = gateway.open("alice".into(), to_client);
    let message = Message::text(r#"{"on":true}"#);
    let pass = stage.desk.pass_websocket("alice", gateway.classify(&message)).unwrap();
    link.send(pass, message).unwrap();
    let Some(Message::Text(told)) = soon(heard.recv()).await else { panic!("an answer") };
    assert!(told.contains(ProblemCode::Unavailable.as_str()) && told.contains("nothing was sent"), "{told}");
    drop(link);
    assert!(soon(heard.recv()).await.is_none());
}

#[tokio::test]
async fn a_client_that_sends_too_fast_gets_busy() {
    let stage = stage().await;
    let mut alice = client(&stage, "alice", 64);
    stage.wled.feel(Mood::StallsBeforeReading);
    let moving = stage.asking(None, post("/json/state", r#"{"bri":1}"#));
    stage.wled.until("the device has the request", |wled| wled.seen().len() == 1).await;
    let refused = (0..100).find_map(|_| alice.send(&stage, r#"{"bri":2}"#).err());
    assert_eq!(code_of(Err(refused.expect("a bound"))), "BUSY");
    stage.wled.feel(Mood::Obeys);
    assert_eq!(soon(moving).await.unwrap().status(), 200);
    stage.wled.until("what was taken is done", |wled| wled.obeyed().len() > 30).await;
}
