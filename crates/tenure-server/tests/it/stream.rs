//! Many commands and watches over one WebSocket.

use std::net::{Shutdown, TcpStream};

use serde_json::{Value, json};
use tenure_testkit::{TestServer, json_string, lease_request, queued_lease_request, websocket};
use tokio_tungstenite::tungstenite::{Error, Message, WebSocket};

/// A connection, and what came over it and was not looked at yet.
struct Socket {
    socket: WebSocket<TcpStream>,
    pending: Vec<Value>,
}

impl Socket {
    fn open(server: &TestServer) -> Self {
        Self::open_as(server, &server.token)
    }

    fn open_as(server: &TestServer, token: &str) -> Self {
        let socket = websocket::open(server, "/v1/stream", token).unwrap();
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

    /// With which words the server closes the connection.
    fn close_reason(&mut self) -> String {
        // Pings go on for ever; what they come instead of would be waited for as long.
        for _ in 0..100 {
            if let Message::Close(frame) = self.socket.read().unwrap() {
                return frame.unwrap().reason.to_string();
            }
        }
        panic!("it says everything but goodbye");
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
    let server = TestServer::start();
    let mut socket = Socket::open(&server);
    let commands: Vec<_> =
        (0..500).map(|id| command(id, "acquire", &lease_request(&format!("db:{id}"), "a", 60_000))).collect();
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
        command(4, "acquire", &lease_request("db:9", "b", 60_000)),
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
fn a_waiting_command_does_not_block_the_connection() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "first", 60_000);
    let mut socket = Socket::open(&server);
    socket.send(&json!([
        command(1, "acquire", &queued_lease_request("db:1", "a", 60_000, 60_000)),
        command(2, "acquire", &lease_request("db:2", "a", 60_000)),
    ]));
    assert_eq!(socket.answer(2)["ok"]["lease"]["resource"], json!("db:2"));
    assert!(socket.pending.is_empty());
    server.release(&id, &token);
    assert_eq!(socket.answer(1)["ok"]["lease"]["holder"], json!("a"));
}

#[test]
fn a_closed_connection_leaves_the_queue() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "first", 60_000);
    let mut socket = Socket::open(&server);
    socket.send(&json!([command(1, "acquire", &queued_lease_request("db:1", "a", 60_000, 60_000))]));
    server.wait_for_waiters("db:1", 1);
    socket.socket.get_ref().shutdown(Shutdown::Both).unwrap();
    server.wait_for_waiters("db:1", 0);
    server.release(&id, &token);
    assert_eq!(server.holders("db:1"), [""; 0]);
}

#[test]
fn a_command_repeated_with_its_key_returns_the_same_lease() {
    let server = TestServer::start();
    let mut request = lease_request("db:1", "a", 60_000);
    request["key"] = json!("once");
    let first = {
        let mut socket = Socket::open(&server);
        socket.send(&json!([command(1, "acquire", &request)]));
        socket.answer(1)["ok"].clone()
    };
    let mut socket = Socket::open(&server);
    socket.send(&json!([command(9, "acquire", &request)]));
    let again = socket.answer(9)["ok"].clone();
    assert_eq!((&again["lease"]["id"], &again["token"]), (&first["lease"]["id"], &first["token"]));
    request["ttlMs"] = json!(50_000);
    socket.send(&json!([command(2, "acquire", &request)]));
    assert_eq!(socket.answer(2)["error"]["code"], json!("KEY_REUSED"));
}

#[test]
fn a_watch_sends_events_between_answers_and_can_be_resumed() {
    let server = TestServer::start();
    let mut socket = Socket::open(&server);
    socket.send(&json!([command(1, "watch", &json!({ "resource": "db:" }))]));
    assert!(json_string(&socket.answer(1)["ok"]["at"]).contains('-'));
    server.acquire("tape:1", "b", 60_000);
    socket.send(&json!([command(2, "acquire", &lease_request("db:1", "a", 60_000))]));
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
fn invalid_messages_are_rejected() {
    let server = TestServer::start();
    server.get("/v1/stream").expect_problem(400, "INVALID");
    let refused = websocket::open(&server, "/v1/stream", "nobody").unwrap_err().to_string();
    assert!(refused.contains("401"), "{refused}");
    for (bad, why) in [
        (Message::binary(vec![1, 2, 3]), "send text: an array of commands in JSON"),
        (Message::text("[".repeat(263_000)), "a message has at most 256 KiB"),
    ] {
        let mut socket = Socket::open(&server);
        socket.socket.send(bad).unwrap();
        assert_eq!(socket.close_reason(), why);
    }
    let mut socket = Socket::open(&server);
    socket.send(&json!({ "not": "an array" }));
    socket.receive().unwrap();
    assert_eq!(socket.pending[0]["error"]["code"], json!("INVALID"));
    socket.send(&json!([command(1, "acquire", &lease_request("db:1", "a", 60_000))]));
    assert_eq!(socket.answer(1)["ok"]["lease"]["fence"], json!(1), "the connection goes on too");
}

#[test]
fn shutdown_closes_the_stream_with_a_reason() {
    let mut server = TestServer::start_with(|_| {});
    let mut socket = Socket::open(&server);
    server.stop_with_outcome().unwrap();
    assert_eq!(socket.close_reason(), "the server is stopping");
}

#[test]
fn waiting_commands_are_answered_before_shutdown() {
    let mut server = TestServer::start_with(|_| {});
    server.acquire("db:1", "first", 60_000);
    let mut socket = Socket::open(&server);
    let mut kept = queued_lease_request("db:1", "kept", 60_000, 60_000);
    kept["key"] = json!("kept");
    socket.send(&json!([
        command(1, "acquire", &queued_lease_request("db:1", "a", 60_000, 60_000)),
        command(2, "acquire", &kept),
    ]));
    server.wait_for_waiters("db:1", 2);
    server.stop_with_outcome().unwrap();
    for (id, what) in [(1, "the wait is over"), (2, "the place in the queue is kept")] {
        let problem = socket.answer(id)["error"].clone();
        assert_eq!(problem["code"], json!("UNAVAILABLE"));
        assert!(json_string(&problem["detail"]).contains(what), "{problem}");
    }
    assert_eq!(socket.close_reason(), "the server is stopping");
}

#[test]
fn an_expired_token_ends_the_stream() {
    let server = TestServer::start();
    let brief = json!({ "name": "brief", "scopes": ["leases:write"], "expiresInMs": 1_500 });
    let secret = json_string(&server.post("/v1/tokens", &brief).json()["secret"]);
    let mut socket = Socket::open_as(&server, &secret);
    socket.send(&json!([command(1, "acquire", &lease_request("db:1", "a", 60_000))]));
    let granted = socket.answer(1)["ok"].clone();
    let bearer = [format!("Authorization: Bearer {secret}")];
    while server.request("GET /v1/stream", &bearer, "").status != 401 {}
    let lease = json!({ "lease": granted["lease"]["id"], "token": granted["token"] });
    socket.send(&json!([command(2, "renew", &lease)]));
    assert_eq!(socket.close_reason(), "the token is no longer good");
    let shown = server.get(&format!("/v1/leases/{}", json_string(&granted["lease"]["id"]))).json();
    assert_eq!(shown["lease"]["renewalCount"], json!(0), "{shown}");
}

#[test]
fn watches_per_connection_are_limited_and_rejected_ones_are_not_counted() {
    let server = TestServer::start();
    let mut socket = Socket::open(&server);
    // What is refused takes no room.
    let refused: Vec<_> = (0..64).map(|id| command(id, "watch", &json!({ "after": "9-9" }))).collect();
    socket.send(&json!(refused));
    (0..64).for_each(|id| assert_eq!(socket.answer(id)["error"]["code"], json!("COMPACTED")));
    let watches: Vec<_> = (100..164).map(|id| command(id, "watch", &json!({ "from": "now" }))).collect();
    socket.send(&json!(watches));
    (100..164).for_each(|id| assert!(socket.answer(id)["ok"]["at"].is_string()));
    socket.send(&json!([command(200, "watch", &json!({ "from": "now" }))]));
    assert_eq!(socket.answer(200)["error"]["code"], json!("BUSY"));
}

#[test]
fn commands_beyond_the_limit_get_busy() {
    let server = TestServer::start();
    let mut socket = Socket::open(&server);
    let commands: Vec<_> = (0..1_100)
        .map(|id| command(id, "acquire", &lease_request(&format!("db:{id}"), "a", 60_000)))
        .collect();
    socket.send(&json!(commands));
    let answers: Vec<_> = (0..1_100).map(|id| socket.answer(id)).collect();
    let is_busy = |answer: &Value| answer["error"]["code"] == json!("BUSY");
    assert_eq!(answers.iter().position(is_busy), Some(1_024));
    assert!(answers.iter().all(|answer| is_busy(answer) != answer["ok"].is_object()));
    socket.send(&json!([command(1, "acquire", &lease_request("tape:1", "a", 60_000))]));
    assert!(socket.answer(1)["ok"].is_object(), "there is room again");
}

#[test]
fn token_limits_apply_to_the_stream() {
    let server = TestServer::start();
    let made = |name: &str, scopes: &[&str]| {
        let request = json!({ "name": name, "scopes": scopes, "resources": ["deploy:"] });
        json_string(&server.post("/v1/tokens", &request).json()["secret"])
    };
    let mut socket = Socket::open_as(&server, &made("writes", &["leases:write"]));
    let (id, token) = server.acquire("db:1", "a", 60_000);
    socket.send(&json!([
        command(1, "acquire", &lease_request("db:2", "b", 60_000)),
        command(2, "renew", &json!({ "lease": id, "token": token })),
        command(3, "release", &json!({ "lease": id, "token": token })),
        command(4, "watch", &json!({ "resource": "deploy:" })),
    ]));
    for id in 1..=4 {
        assert_eq!(socket.answer(id)["error"]["code"], json!("FORBIDDEN"), "{id}");
    }
    let mut socket = Socket::open_as(&server, &made("both", &["leases:write", "leases:read"]));
    socket.send(&json!([command(1, "watch", &json!({ "type": "lease.*" }))]));
    assert!(socket.answer(1)["ok"]["at"].is_string());
    server.acquire("db:3", "b", 60_000);
    server.acquire("deploy:prod", "b", 60_000);
    assert_eq!(socket.answer(1)["event"]["lease"]["resource"], json!("deploy:prod"), "and not the other one");
    server
        .request(
            "GET /v1/stream",
            &[format!("Authorization: Bearer {}", made("reads", &["leases:read"]))],
            "",
        )
        .expect_problem(403, "FORBIDDEN");
}
