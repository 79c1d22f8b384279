//! How events, heartbeats and the end of a stream look on the wire: server-sent events, as browsers read them.

use axum::body::Bytes;
use tenure_api::ServerEvent;

/// How long a client that lost its connection waits before it comes back, in milliseconds.
const RETRY: u32 = 1_000;

/// An event. It has no name, so that browsers hand it to `onmessage`.
pub(super) fn event(epoch: u64, event: &ServerEvent) -> Bytes {
    let mut frame = format!("id: {epoch}-{}\ndata: ", event.seq).into_bytes();
    put_json(&mut frame, event);
    frame.into()
}

/// The first words: from where on to resume, if not even one event came.
pub(super) fn greeting(epoch: u64, after: u64) -> Bytes {
    format!("retry: {RETRY}\nid: {epoch}-{after}\n\n").into()
}

/// Nothing happened that was asked for. The number goes on all the same: whoever resumes need not read all of that again,
/// and does not ask for what is pruned by then.
pub(super) fn heartbeat(epoch: u64, after: u64) -> Bytes {
    format!(": heartbeat\nid: {epoch}-{after}\n\n").into()
}

/// The last words to somebody who has to come back for what is missing.
pub(super) fn resync(epoch: u64, after: u64, at: String, why: &str) -> Bytes {
    let event = ServerEvent {
        seq: after,
        r#type: "resync".to_owned(),
        at,
        lease: None,
        waiter: None,
        cause: None,
        detail: Some(why.to_owned()),
    };
    let mut frame = format!("event: resync\nid: {epoch}-{after}\ndata: ").into_bytes();
    put_json(&mut frame, &event);
    frame.into()
}

fn put_json(frame: &mut Vec<u8>, event: &ServerEvent) {
    serde_json::to_writer(&mut *frame, event).expect("text, numbers and maps of text can be written as JSON");
    frame.extend_from_slice(b"\n\n");
}
