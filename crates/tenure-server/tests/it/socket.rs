//! Many commands and watches over one WebSocket.

use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::http::Request;
use tokio_tungstenite::tungstenite::{Error, Message, WebSocket, client};

use crate::line::patient;
use crate::server::{Running, start, start_in, text, wish};

/// A connection, and what came over it and was not looked at yet.
struct Socket {
    socket: WebSocket<TcpStream>,
    pending: Vec<Value>,
}

fn request(server: &Running, token: &str) -> Request<()> {
    let host = server.address.to_string();
    let request = Request::builder().uri(format!("ws://{host}/v1/stream")).header("Host", host);
    let request = request.header("Connection", "Upgrade").header("Upgrade", "websocket");
    let request = request.header("Sec-WebSocket-Version", "13").header("Sec-WebSocket-Key", generate_key());
    request.header("Authorization", format!("Bearer {token}")).body(()).unwrap()
}

impl Socket {
    fn open(server: &Running) -> Self {
        let stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let (socket, _) = client(request(server, &server.token), stream).unwrap();
        Self { socket, pending: Vec::new() }
    }

    fn send(&mut self, commands: &Value) {
        self.socket.send(Message::text(commands.to_string())).unwrap();
    }

    fn receive(&mut self) -> Result<(), Error> {
        if let Message::Text(text) = self.socket.read()? {
            let Ok(Value::Array(answers)) = serde_json::from_str(&text) else { panic!("no array: {text}") };
            self.pending.extend(answers);
        }
        Ok(())
    }

    /// The next answer to this command.
    fn answer(&mut self, id: u64) -> Value {
        loop {
            if let Some(place) = self.pending.iter().position(|answer| answer["id"] == json!(id)) {
                return self.pending.remove(place);
            }
            self.receive().unwrap();
        }
    }
}

fn command(id: u64, verb: &str, fields: &Value) -> Value {
    let mut command = fields.clone();
    command["id"] = json!(id);
    command["do"] = json!(verb);
    command
}

#[test]
fn many_commands_in_one_frame_are_each_answered() {
    let server = start();
    let mut socket = Socket::open(&server);
    let commands: Vec<_> =
        (0..500).map(|id| command(id, "acquire", &wish(&format!("db:{id}"), "a", 60_000))).collect();
    socket.send(&json!(commands));
    let granted: Vec<_> = (0..500).map(|id| socket.answer(id)["ok"].clone()).collect();
    let mut fences: Vec<_> = granted.iter().map(|ok| ok["lease"]["fence"].as_u64().unwrap()).collect();
    fences.sort_unstable();
    assert_eq!(fences, (1..=500).collect::<Vec<_>>());
    let of = |ok: &Value| json!({ "lease": ok["lease"]["id"], "token": ok["token"] });
    socket.send(&json!([command(1, "renew", &of(&granted[7])), command(2, "release", &of(&granted[8]))]));
    assert_eq!(socket.answer(1)["ok"]["lease"]["renewalCount"], json!(1));
    assert_eq!(socket.answer(2)["ok"]["lease"]["state"], json!("RELEASED"));
    let mut stolen = of(&granted[9]);
    stolen["token"] = granted[10]["token"].clone();
    socket.send(&json!([
        command(3, "renew", &stolen),
        command(4, "acquire", &wish("db:9", "b", 60_000)),
        command(5, "steal", &json!({})),
        command(6, "acquire", &json!({ "resource": "db:1", "colour": "red" })),
        { "do": "renew" },
    ]));
    for (id, code) in [(3, "TOKEN_INVALID"), (4, "HELD"), (5, "INVALID"), (6, "INVALID")] {
        assert_eq!(socket.answer(id)["error"]["code"], json!(code));
    }
    let nameless = socket.pending.iter().find(|answer| answer["id"].is_null());
    assert_eq!(nameless.unwrap()["error"]["code"], json!("INVALID"));
}

#[test]
fn who_waits_does_not_keep_others_of_the_connection_waiting() {
    let server = start();
    let (id, token) = server.acquire("db:1", "first", 60_000);
    let mut socket = Socket::open(&server);
    socket.send(&json!([
        command(1, "acquire", &patient("db:1", "a", 60_000, 60_000)),
        command(2, "acquire", &wish("db:2", "a", 60_000)),
    ]));
    assert_eq!(socket.answer(2)["ok"]["lease"]["resource"], json!("db:2"));
    assert!(socket.pending.is_empty());
    server.release(&id, &token);
    assert_eq!(socket.answer(1)["ok"]["lease"]["holder"], json!("a"));
}

#[test]
fn a_connection_that_ends_leaves_the_queue_and_what_was_not_told_is_taken_back() {
    let server = start();
    let (id, token) = server.acquire("db:1", "first", 60_000);
    let mut socket = Socket::open(&server);
    socket.send(&json!([command(1, "acquire", &patient("db:1", "a", 60_000, 60_000))]));
    server.wait_until_waiting("db:1", 1);
    socket.socket.get_ref().shutdown(Shutdown::Both).unwrap();
    server.wait_until_waiting("db:1", 0);
    server.release(&id, &token);
    assert_eq!(server.holders("db:1"), [""; 0]);
}

#[test]
fn the_same_key_finds_the_same_lease_again() {
    let server = start();
    let mut wanted = wish("db:1", "a", 60_000);
    wanted["key"] = json!("once");
    let first = {
        let mut socket = Socket::open(&server);
        socket.send(&json!([command(1, "acquire", &wanted)]));
        socket.answer(1)["ok"].clone()
    };
    let mut socket = Socket::open(&server);
    socket.send(&json!([command(9, "acquire", &wanted)]));
    let again = socket.answer(9)["ok"].clone();
    assert_eq!((&again["lease"]["id"], &again["token"]), (&first["lease"]["id"], &first["token"]));
    wanted["ttlMs"] = json!(50_000);
    socket.send(&json!([command(2, "acquire", &wanted)]));
    assert_eq!(socket.answer(2)["error"]["code"], json!("KEY_REUSED"));
}

#[test]
fn a_watch_tells_what_happens_beside_the_answers_and_can_be_gone_on_with() {
    let server = start();
    let mut socket = Socket::open(&server);
    socket.send(&json!([command(1, "watch", &json!({ "resource": "db:" }))]));
    assert!(text(&socket.answer(1)["ok"]["at"]).contains('-'));
    server.acquire("tape:1", "b", 60_000);
    socket.send(&json!([command(2, "acquire", &wish("db:1", "a", 60_000))]));
    let (event, answer) = (socket.answer(1), socket.answer(2));
    assert_eq!(event["event"]["type"], json!("lease.issued"));
    assert_eq!(event["event"]["lease"]["id"], answer["ok"]["lease"]["id"]);
    server.acquire("db:2", "c", 60_000);
    let mut other = Socket::open(&server);
    other.send(&json!([command(7, "watch", &json!({ "resource": "db:", "after": event["at"] }))]));
    other.answer(7);
    assert_eq!(other.answer(7)["event"]["lease"]["resource"], json!("db:2"), "and nothing twice");
    other.send(&json!([command(8, "watch", &json!({ "after": "9-9" }))]));
    assert_eq!(other.answer(8)["error"]["code"], json!("COMPACTED"));
}

#[test]
fn what_is_no_conversation_is_refused_and_the_server_goes_on() {
    let server = start();
    server.get("/v1/stream").is_problem(400, "INVALID");
    let stream = TcpStream::connect(server.address).unwrap();
    let refused = client(request(&server, "nobody"), stream).unwrap_err().to_string();
    assert!(refused.contains("401"), "{refused}");
    for bad in [Message::binary(vec![1, 2, 3]), Message::text("[".repeat(300_000))] {
        let mut socket = Socket::open(&server);
        let _ = socket.socket.send(bad);
        while socket.receive().is_ok() {}
    }
    let mut socket = Socket::open(&server);
    socket.send(&json!({ "not": "an array" }));
    socket.receive().unwrap();
    assert_eq!(socket.pending[0]["error"]["code"], json!("INVALID"));
    socket.send(&json!([command(1, "acquire", &wish("db:1", "a", 60_000))]));
    assert_eq!(socket.answer(1)["ok"]["lease"]["fence"], json!(1), "the connection goes on too");
}

#[test]
fn a_server_that_stops_says_goodbye() {
    let mut server = start_in(tempfile::tempdir().unwrap(), |_| {}).unwrap();
    let mut socket = Socket::open(&server);
    server.stop_with_outcome().unwrap();
    let end = loop {
        match socket.socket.read() {
            Ok(Message::Close(frame)) => break frame.unwrap().reason.to_string(),
            Ok(_) => {}
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(end, "the server is stopping");
}
