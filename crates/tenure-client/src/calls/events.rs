//! The event stream.

use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tenure_api::ServerEvent;

use crate::client::{Client, random_u64};
use crate::error::Error;
use crate::http::{ApiRequest, PathAndQuery};

/// Where to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventStartPosition {
    /// With what happens from now on.
    Now,
    /// With the event of this number in the ledger, and everything after it.
    Seq(u64),
    /// After the event with this id, which an earlier stream was at: see [`EventStream::last_id`].
    After(String),
}

/// Which events to tell.
#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    /// About this resource.
    pub resource: Option<String>,
    /// Of this type: `lease.issued`, `lease.expired`, …
    pub r#type: Option<String>,
}

/// Events one after the other. It connects again by itself, and goes on where it was.
pub struct EventStream {
    client: Client,
    from: EventStartPosition,
    filter: EventFilter,
    last_id: Option<String>,
    open: Option<(Incoming, SseParser)>,
}

/// How often a connection is tried again before the caller hears of it.
const MAX_RETRIES: u32 = 8;
const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(10);

impl Client {
    /// What happens, from `from` on.
    pub async fn events(&self, from: EventStartPosition, filter: &EventFilter) -> Result<EventStream, Error> {
        let last_id = match &from {
            EventStartPosition::After(id) => Some(id.clone()),
            EventStartPosition::Now | EventStartPosition::Seq(_) => None,
        };
        let (client, filter) = (self.clone(), filter.clone());
        let mut stream = EventStream { client, from, filter, last_id, open: None };
        stream.connect().await?;
        Ok(stream)
    }
}

impl EventStream {
    /// The next event. It waits for one as long as it takes.
    ///
    /// After an error it may be asked again, and goes on after the last event that it told. Nothing is only answered
    /// by a server that has no more to say.
    pub async fn next(&mut self) -> Result<Option<ServerEvent>, Error> {
        let mut failures = 0;
        loop {
            if self.open.is_none() {
                match self.connect().await {
                    Ok(()) => {}
                    Err(error) if failures < MAX_RETRIES && error.is_transient() => {
                        backoff(failures).await;
                        failures += 1;
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            if let Some(event) = self.read().await? {
                return Ok(Some(event));
            }
            // A server that takes every connection and ends it at once must not be asked all the time.
            backoff(failures).await;
            failures = (failures + 1).min(MAX_RETRIES - 1);
        }
    }

    /// The id of the last event that was told: [`EventStartPosition::After`] goes on behind it.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    async fn connect(&mut self) -> Result<(), Error> {
        let seq;
        let from = match (&self.last_id, &self.from) {
            (Some(_), _) | (None, EventStartPosition::After(_)) => None,
            (None, EventStartPosition::Now) => Some("now"),
            (None, EventStartPosition::Seq(number)) => {
                seq = number.to_string();
                Some(seq.as_str())
            }
        };
        let EventFilter { resource, r#type } = &self.filter;
        let query = PathAndQuery::new("/v1/events")
            .with("from", from)
            .with("resource", resource.as_deref())
            .with("type", r#type.as_deref());
        let call = ApiRequest::get(query.into_text());
        match self.client.transport().open_stream(&call, self.last_id.as_deref()).await? {
            Ok(body) => {
                self.open = Some((body, SseParser::default()));
                Ok(())
            }
            Err(answer) => Err(answer.problem(|| self.client.address())),
        }
    }

    /// The next event of this connection; nothing when it has ended.
    async fn read(&mut self) -> Result<Option<ServerEvent>, Error> {
        let protocol_error = |client: &Client, detail: &str| Error::Protocol {
            address: client.address(),
            detail: detail.into(),
        };
        while let Some((body, parser)) = &mut self.open {
            let Ok(next) = parser.next() else {
                self.open = None;
                return Err(protocol_error(&self.client, "an event without end"));
            };
            if let Some(message) = next {
                let event = match message.data.as_str() {
                    "" => None,
                    data => Some(
                        serde_json::from_str(data)
                            .map_err(|_| protocol_error(&self.client, "an event that does not fit"))?,
                    ),
                };
                // Only now: an event that could not be told is asked for again.
                self.last_id = message.id.or(self.last_id.take());
                if let Some(event) = event {
                    return Ok(Some(event));
                }
                continue;
            }
            match body.frame().await {
                Some(Ok(frame)) => {
                    if let Some(bytes) = frame.data_ref() {
                        parser.push(bytes);
                    }
                }
                Some(Err(_)) | None => self.open = None,
            }
        }
        Ok(None)
    }
}

/// Anything up to twice as long each time, so that all who lost their server do not come back at once.
async fn backoff(failures: u32) {
    let max_backoff = MIN_BACKOFF.saturating_mul(1 << failures.min(16)).min(MAX_BACKOFF);
    let micros = u64::try_from(max_backoff.as_micros()).unwrap_or(u64::MAX);
    tokio::time::sleep(Duration::from_micros(random_u64() % (micros + 1))).await;
}

/// One message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SseMessage {
    /// What goes into `Last-Event-ID`.
    pub(super) id: Option<String>,
    /// Empty if the message only moves the id on.
    pub(super) data: String,
}

/// A message longer than this is no event of ours.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// Puts lines together as bytes come in, in whatever pieces.
#[derive(Default)]
pub(super) struct SseParser {
    bytes: Vec<u8>,
    id: Option<String>,
    data: String,
    has_data: bool,
}

/// A line or a message without an end.
#[derive(Debug)]
pub(super) struct MessageTooLong;

impl SseParser {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message that is complete.
    pub(super) fn next(&mut self) -> Result<Option<SseMessage>, MessageTooLong> {
        while let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
            let rest = self.bytes.split_off(end + 1);
            let line = std::mem::replace(&mut self.bytes, rest);
            let line = String::from_utf8_lossy(&line[..end]).into_owned();
            if let Some(message) = self.line(line.strip_suffix('\r').unwrap_or(&line)) {
                return Ok(Some(message));
            }
        }
        if self.bytes.len() + self.data.len() > MAX_MESSAGE_BYTES { Err(MessageTooLong) } else { Ok(None) }
    }

    fn line(&mut self, line: &str) -> Option<SseMessage> {
        if line.is_empty() {
            let id = self.id.take();
            let has_content = id.is_some() || self.has_data;
            self.has_data = false;
            return has_content.then(|| SseMessage { id, data: std::mem::take(&mut self.data) });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.id = Some(value.to_owned()),
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                self.data.push_str(value);
            }
            // A line that begins with a colon says only that the connection lives.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(pieces: &[&str]) -> Vec<(Option<String>, String)> {
        let (mut parser, mut found) = (SseParser::default(), Vec::new());
        for piece in pieces {
            parser.push(piece.as_bytes());
            while let Some(SseMessage { id, data }) = parser.next().expect("short lines") {
                found.push((id, data));
            }
        }
        found
    }

    #[test]
    fn messages_are_reassembled_from_any_chunks() {
        let text = ": hello\n\nid: 1-7\ndata: {\"a\":\ndata: 1}\n\nid:1-8\r\ndata:x\r\n\r\nid: 1-9\n\n";
        let whole = messages(&[text]);
        let expected = [(Some("1-7"), "{\"a\":\n1}"), (Some("1-8"), "x"), (Some("1-9"), "")];
        let expected = expected.map(|(id, data)| (id.map(str::to_owned), data.to_owned()));
        assert_eq!(whole, expected);
        for cut in 1..text.len() {
            assert_eq!(messages(&[&text[..cut], &text[cut..]]), whole, "cut at {cut}");
        }
    }

    #[test]
    fn incomplete_message_is_not_returned() {
        assert_eq!(messages(&["id: 1-7\ndata: x\n"]), []);
    }

    #[test]
    fn oversized_message_is_rejected() {
        let mut parser = SseParser::default();
        parser.push(&vec![b'x'; MAX_MESSAGE_BYTES + 1]);
        assert!(parser.next().is_err());
    }
}
