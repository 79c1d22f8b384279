//! `GET /v1/events`: events as they are published, and from any earlier event that the ledger still has.
//!
//! ```text
//! feed ──> event_buffer   the last events in memory, each encoded once for all subscribers
//!          subscriber     a task per subscriber: reads the buffer while it keeps up
//!          history        older events, from a replay of the ledger on a few threads
//! ```

mod agents;
mod encoded_event;
mod event_buffer;
mod history;
mod leases;
mod subscriber;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use tenure_api::Code;
use tenure_core::kernel::{Event, Principal, Resource};

use self::encoded_event::{EncodedEvent, EventFormat, Visibility};
pub(crate) use self::event_buffer::EventBuffer;
pub(super) use self::subscriber::EventBody;
use self::subscriber::{EventSubscriber, HEARTBEAT};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::body::parse_query;
use crate::http::response::HttpError;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    from: Option<String>,
    resource: Option<String>,
    r#type: Option<String>,
}

/// Stream events.
///
/// Returns server-sent events: each has an `id` and a `ServerEvent` as JSON in `data`. A heartbeat follows
/// every 15 s. A client that reads too slowly receives a last event named `resync` and reconnects with its id
/// as `Last-Event-ID`.
#[utoipa::path(
    get,
    path = "/v1/events",
    tag = "watching",
    operation_id = "events",
    params(
        ("from" = Option<String>, Query, description = "Number of the first event, or `now` (default)"),
        ("resource" = Option<String>, Query, description = "Resource of the events, or a prefix that ends in `:` or `*`"),
        ("type" = Option<String>, Query, description = "Event type such as `lease.issued`, a prefix such as `lease.*`, or `*` for all types. Intent sessions use `intent.*`. Default: `lease.*` and `wait.*`"),
        ("Last-Event-ID" = Option<String>, Header, description = "Id of the last received event; overrides `from`"),
    ),
    responses((status = 200, description = "Stream until the client disconnects", body = String, content_type = "text/event-stream")),
    extensions(("x-codes" = json!(["INVALID", "COMPACTED"])))
)]
pub(super) async fn events(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, HttpError> {
    let query: EventsQuery = parse_query(&uri)?;
    let body = watch(&app, caller, &query, last_event_id(&headers)?, EventFormat::ServerSent)?;
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        // A proxy that gathers before it passes on would keep events back.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, Body::new(body)).into_response())
}

/// Begins to bring events to somebody.
fn watch(
    app: &App,
    caller: Caller,
    query: &EventsQuery,
    last: Option<EventId>,
    form: EventFormat,
) -> Result<EventBody, HttpError> {
    let filter = Filter::new(caller, query.resource.as_deref(), query.r#type.as_deref())?;
    let feed = app.registrar.event_feed().clone();
    let ledger = EventRange { epoch: feed.epoch(), first: feed.pruned_through().0, head: feed.head().seq.0 };
    let after = match last {
        Some(id) => ledger.after_id(id)?,
        None => ledger.after_start(query.from.as_deref())?,
    };
    let (buffer, view, epoch) = (app.events.clone(), app.registrar.view().clone(), ledger.epoch);
    let (filter, format, heartbeat) = (Arc::new(filter), form, HEARTBEAT);
    Ok(EventSubscriber { buffer, feed, view, filter, epoch, format, after, replayed: None, heartbeat }
        .start())
}

/// Begins to bring events as answers to the command `id` of a WebSocket.
pub(super) fn watch_as_responses(
    app: &App,
    caller: Caller,
    id: u64,
    request: &WatchRequest,
) -> Result<EventBody, HttpError> {
    let wrong = || HttpError::invalid("after", "must be as `at` was in the events: EPOCH-NUMBER");
    let last = request.after.as_ref().map(|text| event_id(text).ok_or_else(wrong)).transpose()?;
    watch(app, caller, &request.query(), last, EventFormat::WebSocket { id })
}

/// The command `watch` of a WebSocket.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WatchRequest {
    after: Option<String>,
    from: Option<String>,
    resource: Option<String>,
    r#type: Option<String>,
}

impl WatchRequest {
    fn query(&self) -> EventsQuery {
        EventsQuery { from: self.from.clone(), resource: self.resource.clone(), r#type: self.r#type.clone() }
    }
}

/// Which events there are.
struct EventRange {
    epoch: u64,
    /// The last event that is gone.
    first: u64,
    head: u64,
}

/// The last event that a client was told, in which epoch.
#[derive(Clone, Copy)]
struct EventId {
    epoch: u64,
    seq: u64,
}

impl EventRange {
    /// Goes on after an event that the client was told.
    fn after_id(&self, id: EventId) -> Result<u64, HttpError> {
        if id.epoch != self.epoch || id.seq > self.head {
            let why =
                "the ledger was restored from a copy, or is another one, since you were told that event";
            return Err(self.compacted(why));
        }
        self.if_kept(id.seq)
    }

    /// Begins with an event, or with what comes next.
    fn after_start(&self, from: Option<&str>) -> Result<u64, HttpError> {
        let from = match from {
            None | Some("now") => return Ok(self.head),
            Some(text) => number(text),
        };
        let wrong = |reason: &str| HttpError::invalid("from", reason);
        let from = from.ok_or_else(|| wrong("must be `now`, or the number of an event"))?;
        if from > self.head + 1 {
            return Err(wrong(&format!(
                "the last event so far is {}; ask from there, or from `now`",
                self.head
            )));
        }
        self.if_kept(from.saturating_sub(1))
    }

    fn if_kept(&self, after: u64) -> Result<u64, HttpError> {
        if after < self.first {
            Err(self.compacted("the events that come next were pruned"))
        } else {
            Ok(after)
        }
    }

    fn compacted(&self, why: &str) -> HttpError {
        let first = self.first + 1;
        let remedy =
            format!("list what there is with GET /v1/leases, and listen from {first} or from now on");
        let mut failure = HttpError::new(Code::Compacted, format!("{why}; {remedy}"));
        failure.0.from = Some(first);
        failure
    }
}

/// The header `Last-Event-ID`, which a client sends that comes back.
fn last_event_id(headers: &HeaderMap) -> Result<Option<EventId>, HttpError> {
    let mut all = headers.get_all("last-event-id").iter();
    let Some(value) = all.next() else { return Ok(None) };
    let wrong =
        || HttpError::invalid("Last-Event-ID", "must stand once, as it was in the events: EPOCH-NUMBER");
    let text = value.to_str().ok().filter(|_| all.next().is_none()).ok_or_else(wrong)?;
    event_id(text).map(Some).ok_or_else(wrong)
}

fn event_id(text: &str) -> Option<EventId> {
    let (epoch, seq) = text.split_once('-')?;
    Some(EventId { epoch: number(epoch)?, seq: number(seq)? })
}

/// Digits and nothing else, so that a number has one form.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

struct Filter {
    caller: Caller,
    resource: Option<Pattern>,
    kinds: Kinds,
}

#[derive(Debug, PartialEq, Eq)]
enum Pattern {
    Exactly(String),
    BeginsWith(String),
}

#[derive(Debug, PartialEq, Eq)]
enum Kinds {
    /// What most want: leases and who waits for them.
    Usual,
    Every,
    Only(Pattern),
}

impl Filter {
    fn new(caller: Caller, resource: Option<&str>, kind: Option<&str>) -> Result<Self, HttpError> {
        let resource = match resource {
            None => None,
            Some("*") => Some(Pattern::BeginsWith(String::new())),
            Some(text) => {
                Resource::parse(text)?;
                Some(match text.strip_suffix('*') {
                    Some(beginning) => Pattern::BeginsWith(beginning.to_owned()),
                    None if text.ends_with(':') => Pattern::BeginsWith(text.to_owned()),
                    None => Pattern::Exactly(text.to_owned()),
                })
            }
        };
        Ok(Self { caller, resource, kinds: kinds(kind)? })
    }

    fn is_valid(&self) -> bool {
        self.caller.is_valid()
    }

    fn principal(&self) -> &Principal {
        &self.caller.principal
    }

    fn matches(&self, event: &EncodedEvent) -> bool {
        let is_selected = match &self.kinds {
            Kinds::Usual => event.kind.starts_with("lease.") || event.kind.starts_with("wait."),
            Kinds::Every => true,
            Kinds::Only(pattern) => pattern.fits(event.kind),
        };
        is_selected && self.passes_resource(event)
    }

    fn passes_resource(&self, event: &EncodedEvent) -> bool {
        let resources = event.resources();
        if resources.is_empty() {
            // A token that is limited to resources sees only its own agents, and the server's events.
            return self.resource.is_none()
                && match &event.visibility {
                    Visibility::All => true,
                    Visibility::Unlimited => self.caller.can_see(""),
                    Visibility::Principal(principal) => {
                        self.caller.can_see("") || *principal == self.caller.principal
                    }
                };
        }
        let matches = |resource: &Resource| {
            self.resource.as_ref().is_none_or(|pattern| pattern.fits(resource.as_str()))
        };
        resources.iter().any(matches) && resources.iter().all(|name| self.caller.can_see(name.as_str()))
    }
}

fn kinds(requested: Option<&str>) -> Result<Kinds, HttpError> {
    let pattern = match requested {
        None => return Ok(Kinds::Usual),
        Some("*") => return Ok(Kinds::Every),
        Some(text) => match text.strip_suffix('*') {
            Some(beginning) if beginning.ends_with('.') => Pattern::BeginsWith(beginning.to_owned()),
            _ => Pattern::Exactly(text.to_owned()),
        },
    };
    if Event::TYPE_NAMES.iter().any(|name| pattern.fits(name)) {
        return Ok(Kinds::Only(pattern));
    }
    let reason =
        format!("must be `*`, a beginning such as `lease.*`, or one of {}", Event::TYPE_NAMES.join(", "));
    Err(HttpError::invalid("type", &reason))
}

impl Pattern {
    fn fits(&self, name: &str) -> bool {
        match self {
            Pattern::Exactly(text) => text == name,
            Pattern::BeginsWith(text) => name.starts_with(text.as_str()),
        }
    }
}
