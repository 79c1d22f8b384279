//! What happens, as it happens.

use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tenure_api::ServerEvent;

use super::sse::Parser;
use crate::client::Client;
use crate::connection::{Call, Query};
use crate::error::Error;
use crate::key::random;

/// Where to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum From {
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
    from: From,
    filter: EventFilter,
    last_id: Option<String>,
    open: Option<(Incoming, Parser)>,
}

/// How often a connection is tried again before the caller hears of it.
const TRIES: u32 = 8;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

impl Client {
    /// What happens, from `from` on.
    pub async fn events(&self, from: From, filter: &EventFilter) -> Result<EventStream, Error> {
        let last_id = match &from {
            From::After(id) => Some(id.clone()),
            From::Now | From::Seq(_) => None,
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
                    Err(error) if failures < TRIES && error.passes() => {
                        pause(failures).await;
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
            pause(failures).await;
            failures = (failures + 1).min(TRIES - 1);
        }
    }

    /// The id of the last event that was told: [`From::After`] goes on behind it.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    async fn connect(&mut self) -> Result<(), Error> {
        let seq;
        let from = match (&self.last_id, &self.from) {
            (Some(_), _) | (None, From::After(_)) => None,
            (None, From::Now) => Some("now"),
            (None, From::Seq(number)) => {
                seq = number.to_string();
                Some(seq.as_str())
            }
        };
        let EventFilter { resource, r#type } = &self.filter;
        let query = Query::new("/v1/events")
            .with("from", from)
            .with("resource", resource.as_deref())
            .with("type", r#type.as_deref());
        let call = Call::get(query.into_text());
        match self.client.exchange().open(&call, self.last_id.as_deref()).await? {
            Ok(body) => {
                self.open = Some((body, Parser::default()));
                Ok(())
            }
            Err(answer) => Err(answer.problem(|| self.client.address())),
        }
    }

    /// The next event of this connection; nothing when it has ended.
    async fn read(&mut self) -> Result<Option<ServerEvent>, Error> {
        let strange = |client: &Client, detail: &str| Error::Protocol {
            address: client.address(),
            detail: detail.into(),
        };
        while let Some((body, parser)) = &mut self.open {
            let Ok(next) = parser.next() else {
                self.open = None;
                return Err(strange(&self.client, "an event without end"));
            };
            if let Some(message) = next {
                let event = match message.data.as_str() {
                    "" => None,
                    data => Some(
                        serde_json::from_str(data)
                            .map_err(|_| strange(&self.client, "an event that does not fit"))?,
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
async fn pause(failures: u32) {
    let most = FIRST_PAUSE.saturating_mul(1 << failures.min(16)).min(LONGEST_PAUSE);
    let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
    tokio::time::sleep(Duration::from_micros(random() % (micros + 1))).await;
}
