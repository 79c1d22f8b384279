//! A client of the control API, over its WebSocket and over REST.

use std::net::{Shutdown, TcpStream};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Error, Message, WebSocket};

use crate::http::{Response, json_string};
use crate::server::TestServer;
use crate::{leak_recorder, websocket};

/// A connection, and what came over it and was not looked at yet.
pub struct ControlClient {
    socket: WebSocket<TcpStream>,
    pub pending: Vec<Value>,
    next_request: u64,
}

/// A lease, as its owner knows it.
#[derive(Clone)]
pub struct ControlLeaseCredentials {
    pub id: String,
    pub token: String,
}

/// Runs a story twice: with the device's clock at its beginning, and 3 s before it wraps.
pub fn run_on_each_clock(story: impl Fn(&TestServer)) {
    for millis_at_start in [0, u32::MAX - 2_999] {
        let server = TestServer::start_with(|settings| settings.control.millis_at_start = millis_at_start);
        story(&server);
        server.stop();
    }
}

/// A server on which a lease lasts for so long. The device's clock wraps a second after its start.
pub fn start_control_server(ttl_ms: u32) -> TestServer {
    let change = |settings: &mut tenure_server::Settings| {
        settings.control.ttl_ms = ttl_ms;
        settings.control.millis_at_start = u32::MAX - 999;
    };
    TestServer::start_with(change)
}

impl ControlClient {
    pub fn open(server: &TestServer) -> Self {
        Self::open_with_token(server, &server.token)
    }

    pub fn open_with_token(server: &TestServer, token: &str) -> Self {
        Self::try_open(server, token).unwrap()
    }

    pub fn try_open(server: &TestServer, token: &str) -> Result<Self, Error> {
        let socket = websocket::open(server, "/ws", token)?;
        Ok(Self { socket, pending: Vec::new(), next_request: 100 })
    }

    pub fn send_text(&mut self, text: &str) {
        self.socket.send(Message::text(text.to_owned())).unwrap();
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.socket.send(Message::binary(bytes.to_vec())).unwrap();
    }

    /// Sends a ping.
    pub fn ping(&mut self) {
        self.socket.send(Message::Ping(Vec::new().into())).unwrap();
    }

    /// The next message, whatever it is.
    pub fn receive(&mut self) -> Value {
        if !self.pending.is_empty() {
            return self.pending.remove(0);
        }
        self.read().unwrap()
    }

    fn read(&mut self) -> Result<Value, Error> {
        loop {
            if let Message::Text(text) = self.socket.read()? {
                let message: Value = serde_json::from_str(&text).unwrap();
                let mut seen = message.clone();
                // The one message in which the token may be.
                if message["type"] == "control.acquired" {
                    leak_recorder::remove_secrets(&mut seen, &mut leak_recorder::record_secret);
                }
                leak_recorder::record_output(seen.to_string().as_bytes());
                return Ok(message);
            }
        }
    }

    /// Waits for the end of the connection.
    pub fn wait_for_end(&mut self) {
        while self.read().is_ok() {}
    }

    /// The next message for which this holds; the others stay.
    pub fn receive_where(&mut self, matches: impl Fn(&Value) -> bool) -> Value {
        if let Some(index) = self.pending.iter().position(&matches) {
            return self.pending.remove(index);
        }
        loop {
            let message = self.read().unwrap();
            if matches(&message) {
                return message;
            }
            self.pending.push(message);
        }
    }

    /// The next broadcast.
    pub fn next_state_change(&mut self) -> Value {
        self.receive_where(|message| message["type"] == "control.stateChanged")
    }

    /// The next broadcast of this event.
    pub fn next_state_change_to(&mut self, event: &str) -> Value {
        self.receive_where(|message| message["type"] == "control.stateChanged" && message["event"] == event)
    }

    /// Sends a command, and waits for its answer.
    pub fn request(&mut self, kind: &str, fields: &Value) -> Value {
        let request = self.send_command(kind, fields);
        self.wait_for_response(&request)
    }

    /// Sends a command.
    pub fn send_command(&mut self, kind: &str, fields: &Value) -> String {
        self.next_request += 1;
        let request = format!("req-{}", self.next_request);
        let mut message = fields.clone();
        message["type"] = json!(kind);
        message["requestId"] = json!(request);
        self.send_text(&message.to_string());
        request
    }

    /// Waits for the answer to a command.
    pub fn wait_for_response(&mut self, request: &str) -> Value {
        self.receive_where(|message| message["requestId"] == request)
    }

    /// What a command fails with.
    #[track_caller]
    pub fn request_error(&mut self, kind: &str, fields: &Value) -> String {
        let answer = self.request(kind, fields);
        assert_eq!((&answer["type"], &answer["success"]), (&json!("error"), &json!(false)), "{answer}");
        answer["error"]["code"].as_str().unwrap().to_owned()
    }

    /// Asks for the lease.
    pub fn try_acquire(&mut self, name: &str) -> Value {
        let instance = "6f0d84a3-8f49-4da8-8c70-0b8f6db5a870";
        let fields = json!({ "clientName": name, "clientInstanceId": instance, "scope": "global" });
        self.request("control.acquire", &fields)
    }

    /// Gets the lease.
    #[track_caller]
    pub fn acquire(&mut self, name: &str) -> ControlLeaseCredentials {
        let answer = self.try_acquire(name);
        assert_eq!(answer["type"], "control.acquired", "{answer}");
        ControlLeaseCredentials {
            id: json_string(&answer["data"]["leaseId"]),
            token: json_string(&answer["data"]["leaseToken"]),
        }
    }

    pub fn heartbeat(&mut self, lease: &ControlLeaseCredentials) -> Value {
        self.request("control.heartbeat", &lease.credentials())
    }

    pub fn release(&mut self, lease: &ControlLeaseCredentials) -> Value {
        self.request("control.release", &lease.credentials())
    }

    pub fn status(&mut self) -> Value {
        self.request("control.status", &json!({}))["data"].clone()
    }

    /// Breaks the connection without a farewell.
    pub fn disconnect(self) {
        self.socket.get_ref().shutdown(Shutdown::Both).unwrap();
    }
}

impl ControlLeaseCredentials {
    pub fn credentials(&self) -> Value {
        json!({ "leaseId": self.id, "leaseToken": self.token })
    }
}

/// A request that shows a lease.
pub fn send_rest_request(
    server: &TestServer,
    line: &str,
    token: Option<&str>,
    id: Option<&str>,
    body: &Value,
) -> Response {
    let mut headers = vec![server.bearer(), "Content-Type: application/json".to_owned()];
    headers.extend(token.map(|token| format!("X-Control-Lease: {token}")));
    headers.extend(id.map(|id| format!("X-Control-Lease-Id: {id}")));
    server.request(line, &headers, &body.to_string())
}
