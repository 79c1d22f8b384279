//! A stream of server-sent events.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use crate::server::TestServer;

/// An open stream.
pub struct SseStream {
    reader: BufReader<TcpStream>,
    /// What has come and was not looked at yet.
    pending: Vec<u8>,
    /// The last id that was said, by an event or by a heartbeat.
    pub last_id: String,
}

/// One message.
#[derive(Debug, Clone)]
pub struct SseMessage {
    pub id: String,
    pub name: String,
    pub data: Value,
}

impl SseMessage {
    pub fn event_type(&self) -> &str {
        self.data["type"].as_str().unwrap()
    }

    pub fn seq(&self) -> u64 {
        self.data["seq"].as_u64().unwrap()
    }
}

fn request(server: &TestServer, token: &str, path: &str, last_event_id: Option<&str>) -> TcpStream {
    let mut stream = server.connect();
    let resumed = last_event_id.map_or_else(String::new, |id| format!("Last-Event-ID: {id}\r\n"));
    let address = server.address;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{resumed}\r\n"
    )
    .unwrap();
    stream
}

/// Listens as an administrator.
pub fn open_event_stream(server: &TestServer, path: &str, last_event_id: Option<&str>) -> SseStream {
    open_event_stream_as(server, &server.token, path, last_event_id)
}

/// Listens with this token.
pub fn open_event_stream_as(
    server: &TestServer,
    token: &str,
    path: &str,
    last_event_id: Option<&str>,
) -> SseStream {
    let mut reader = BufReader::new(request(server, token, path, last_event_id));
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0, "the answer ended: {head}");
    }
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains("content-type: text/event-stream\r\n"), "{head}");
    let mut stream = SseStream { reader, pending: Vec::new(), last_id: String::new() };
    // The greeting says where it begins, so that from here on nothing is missed.
    stream.next_block().expect("a stream begins with a greeting");
    stream
}

impl SseStream {
    #[track_caller]
    pub fn expect(&mut self, kind: &str) -> SseMessage {
        let message = self.next().unwrap_or_else(|| panic!("the stream ended before {kind}"));
        assert_eq!(message.event_type(), kind, "{message:?}");
        message
    }

    /// Everything up to the next empty line.
    pub fn next_block(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.pending.windows(2).position(|two| two == b"\n\n") {
                let rest = self.pending.split_off(end + 2);
                let block = String::from_utf8(std::mem::replace(&mut self.pending, rest)).unwrap();
                let id = block.lines().find_map(|line| line.strip_prefix("id: "));
                self.last_id = id.unwrap_or(&self.last_id).to_owned();
                return Some(block);
            }
            if !self.chunk() {
                assert!(self.pending.is_empty(), "the stream ended within a message");
                return None;
            }
        }
    }

    /// Reads one chunk of the body; says whether there was one.
    fn chunk(&mut self) -> bool {
        let mut size = String::new();
        self.reader.read_line(&mut size).unwrap();
        let size =
            usize::from_str_radix(size.trim_end(), 16).unwrap_or_else(|_| panic!("no chunk but {size:?}"));
        let mut bytes = vec![0; size + 2];
        self.reader.read_exact(&mut bytes).unwrap();
        self.pending.extend_from_slice(&bytes[..size]);
        size > 0
    }
}

impl Iterator for SseStream {
    type Item = SseMessage;

    /// The next message; nothing at the end of the stream.
    fn next(&mut self) -> Option<SseMessage> {
        // Heartbeats go on for ever; what they come instead of would be waited for as long.
        for _ in 0..4 {
            let block = self.next_block()?;
            let field = |name: &str| {
                let prefix = format!("{name}: ");
                block.lines().find_map(|line| line.strip_prefix(&prefix).map(str::to_owned))
            };
            if let Some(data) = field("data") {
                let name = field("event").unwrap_or_default();
                let data = serde_json::from_str(&data).unwrap_or_else(|error| panic!("{error}: {data}"));
                return Some(SseMessage { id: field("id").unwrap(), name, data });
            }
        }
        panic!("there was nothing but heartbeats");
    }
}
