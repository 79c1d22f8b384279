//! How events, heartbeats and the end of a stream look on the wire: server-sent events, as browsers read them.

use axum::body::Bytes;
use tenure_api::ServerEvent;

use super::encoded_event::EncodedEvent;

/// How long a client that lost its connection waits before it comes back, in milliseconds.
const RETRY: u32 = 1_000;

/// An event. It has no name, so that browsers hand it to `onmessage`.
pub(super) fn encode_event(epoch: u64, event: &ServerEvent) -> Bytes {
    let mut frame = format!("id: {epoch}-{}\ndata: ", event.seq).into_bytes();
    put_json(&mut frame, event);
    frame.into()
}

/// How somebody is told of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum EventFormat {
    ServerSent,
    /// As answers to a command on a WebSocket, with a comma after each.
    WebSocket {
        id: u64,
    },
}

impl EventFormat {
    /// An event, added to what is sent together.
    pub(super) fn put_event(self, piece: &mut Vec<u8>, epoch: u64, event: &EncodedEvent) {
        match self {
            EventFormat::ServerSent => piece.extend_from_slice(event.sse_frame(epoch)),
            EventFormat::WebSocket { id } => {
                piece.extend_from_slice(format!("{{\"id\":{id},\"event\":").as_bytes());
                piece.extend_from_slice(json_of(event.sse_frame(epoch)));
                piece.extend_from_slice(format!(",\"at\":\"{epoch}-{}\"}},", event.seq).as_bytes());
            }
        }
    }

    /// The first words: from where on to resume, if not even one event came.
    pub(super) fn greeting(self, epoch: u64, after: u64) -> Bytes {
        match self {
            EventFormat::ServerSent => format!("retry: {RETRY}\nid: {epoch}-{after}\n\n").into(),
            EventFormat::WebSocket { id } => {
                format!("{{\"id\":{id},\"ok\":{{\"at\":\"{epoch}-{after}\"}}}},").into()
            }
        }
    }

    /// Nothing happened that was asked for. The number goes on all the same: whoever resumes need not read all of that
    /// again, and does not ask for what is pruned by then.
    pub(super) fn heartbeat(self, epoch: u64, after: u64) -> Bytes {
        match self {
            EventFormat::ServerSent => format!(": heartbeat\nid: {epoch}-{after}\n\n").into(),
            EventFormat::WebSocket { id } => format!("{{\"id\":{id},\"at\":\"{epoch}-{after}\"}},").into(),
        }
    }

    /// The last words to somebody who has to come back for what is missing.
    pub(super) fn resync(self, epoch: u64, after: u64, at: String, why: &str) -> Bytes {
        let event = ServerEvent {
            seq: after,
            r#type: "resync".to_owned(),
            at,
            lease: None,
            waiter: None,
            session: None,
            agent: None,
            file: None,
            spent: None,
            cause: None,
            detail: Some(why.to_owned()),
        };
        let mut frame = Vec::new();
        match self {
            EventFormat::ServerSent => {
                frame.extend_from_slice(format!("event: resync\nid: {epoch}-{after}\ndata: ").as_bytes());
                put_json(&mut frame, &event);
            }
            EventFormat::WebSocket { id } => {
                frame.extend_from_slice(format!("{{\"id\":{id},\"event\":").as_bytes());
                put_json(&mut frame, &event);
                frame.truncate(frame.len() - END.len());
                frame.extend_from_slice(format!(",\"at\":\"{epoch}-{after}\"}},").as_bytes());
            }
        }
        frame.into()
    }
}

const END: &[u8] = b"\n\n";

fn json_of(frame: &[u8]) -> &[u8] {
    let head = frame.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + b"\ndata: ".len());
    &frame[head..frame.len() - END.len()]
}

fn put_json(frame: &mut Vec<u8>, event: &ServerEvent) {
    serde_json::to_writer(&mut *frame, event).expect("text, numbers and maps of text can be written as JSON");
    frame.extend_from_slice(END);
}
