//! What happens, as it happens.

use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tenure_api::ServerEvent;

use super::sse::SseParser;
use crate::client::Client;
use crate::error::Error;
use crate::http::{ApiRequest, PathAndQuery};
use crate::idempotency_key::random_u64;

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
