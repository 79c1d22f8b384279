//! One event as subscribers receive it: the same bytes for all of them, made once.

use std::sync::{Arc, OnceLock};

use axum::body::Bytes;
use tenure_api::{Budget, ServerEvent};
use tenure_core::kernel::{
    AgentEvent, ClockAnchor, Event, FileEvent, KernelState, LedgerTag, Principal, Removed, Resource, Tick,
    WorkEvent,
};
use tenure_registrar::runtime::AppliedEvent;

use super::agents::{agent_details, file_details};
use super::leases::{LeaseSnapshot, requested_resources, unknown_waiter, waiter_view};
use crate::app::format_tick_with_anchor;
use crate::intents::view_of;
use crate::work::amounts;

/// An event with what it is about, as that was right after it.
#[derive(Debug)]
pub(super) struct EncodedEvent {
    pub(super) seq: u64,
    pub(super) kind: &'static str,
    lease: Option<LeaseEvent>,
    /// The resources that the event names, unless it is about a lease.
    resources: Vec<Resource>,
    /// Who may see the event if it names no resource.
    pub(super) visibility: Visibility,
    frame: OnceLock<Bytes>,
}

/// An event about a lease. It is encoded when a subscriber needs it.
#[derive(Debug)]
struct LeaseEvent {
    lease: LeaseSnapshot,
    at: Tick,
    spent: Option<Budget>,
    cause: Option<&'static str>,
    detail: Option<Arc<str>>,
    tag: LedgerTag,
    anchor: ClockAnchor,
    epoch: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Visibility {
    All,
    /// Tokens without a limit to resources.
    Unlimited,
    /// The same, and this principal.
    Principal(Principal),
}

/// How ticks are tied to wall time in `state`.
pub(super) fn clock_anchor(state: &KernelState) -> Option<ClockAnchor> {
    state.clock().map(|clock| clock.anchor)
}

impl EncodedEvent {
    pub(super) fn new(applied: AppliedEvent<'_>, anchor: ClockAnchor, epoch: u64) -> Self {
        let (event, state, seq) = (applied.event, applied.state, applied.seq.0);
        let (kind, at) = (event.type_name(), event.occurred_at());
        let (cause, detail) = cause_and_detail(event);
        let mut visibility = Visibility::Unlimited;
        if let Some(lease) = LeaseSnapshot::new(event, state) {
            let spent = match event {
                Event::Work(event) => match &**event {
                    WorkEvent::Spent { amount, .. } => Some(amounts(*amount)),
                },
                _ => None,
            };
            let (detail, tag) = (detail.cloned(), state.ledger_tag());
            let lease = Some(LeaseEvent { lease, at, spent, cause, detail, tag, anchor, epoch });
            return Self { seq, kind, lease, resources: Vec::new(), visibility, frame: OnceLock::new() };
        }
        let mut view = ServerEvent {
            cause: cause.map(str::to_owned),
            detail: detail.map(|text| text.to_string()),
            ..empty_view(seq, kind, format_tick_with_anchor(anchor, at))
        };
        let mut resources = Vec::new();
        match event {
            Event::Queued(queued) => {
                let first = queued.requests.first();
                let position = first.map_or(0, |request| state.queue_length(&request.resource));
                view.waiter = Some(waiter_view(queued, position, at, anchor));
                resources.extend(requested_resources(queued).cloned());
            }
            Event::Left { ticket, .. } => {
                view.waiter = Some(match applied.removed {
                    Some(Removed::QueueTicket(queued)) => {
                        resources.extend(requested_resources(queued).cloned());
                        waiter_view(queued, 0, at, anchor)
                    }
                    _ => unknown_waiter(ticket.0),
                });
            }
            Event::Intent(event) => {
                let session = state.intent_session(event.session());
                // A later state has nothing to say about the session as it was.
                let session = session.filter(|session| session.state == event.next_state());
                view.session = session.map(|session| view_of(session, anchor));
                resources.extend(session.map(|session| session.intent.target.resource()));
            }
            Event::Agent(event) => {
                let (details, named, principal) = agent_details(event, applied, anchor);
                (view.agent, resources) = (Some(details), named);
                visibility = principal.map_or(Visibility::Unlimited, Visibility::Principal);
            }
            Event::File(event) => {
                let (details, resource) = file_details(event, applied, anchor);
                view.file = Some(details);
                resources.extend(resource);
            }
            _ => visibility = Visibility::All,
        }
        let frame = encode_event(epoch, &view).into();
        Self { seq, kind, lease: None, resources, visibility, frame }
    }

    /// The resources that the event names.
    pub(super) fn resources(&self) -> &[Resource] {
        match self.lease.as_ref().map(|event| &event.lease.names) {
            Some(names) => names.as_ref().map(|(resource, _)| resource).map_or(&[], std::slice::from_ref),
            None => &self.resources,
        }
    }

    /// About how much memory it takes, with its frame.
    pub(super) fn memory_size(&self) -> usize {
        let names: usize = self.resources().iter().map(|resource| 64 + resource.as_str().len()).sum();
        let frame = if self.lease.is_some() { 4 * names } else { self.frame.get().map_or(0, Bytes::len) };
        1_024 + names + frame
    }

    /// The event as a server-sent event.
    pub(super) fn sse_frame(&self) -> &Bytes {
        self.frame.get_or_init(|| {
            let event = self.lease.as_ref().expect("every other event is encoded at once");
            let view = ServerEvent {
                lease: Some(event.lease.to_view(event.at, event.tag, event.anchor)),
                spent: event.spent,
                cause: event.cause.map(str::to_owned),
                detail: event.detail.as_deref().map(str::to_owned),
                ..empty_view(self.seq, self.kind, format_tick_with_anchor(event.anchor, event.at))
            };
            encode_event(event.epoch, &view)
        })
    }
}

fn cause_and_detail(event: &Event) -> (Option<&'static str>, Option<&Arc<str>>) {
    let (cause, detail) = match event {
        Event::Left { end, .. } => (Some(end.as_str()), None),
        Event::Revoked { cause, detail, .. } => (Some(cause.as_str()), Some(detail)),
        Event::Agent(event) => match &**event {
            AgentEvent::Left { end, .. } => (Some(end.as_str()), None),
            _ => (None, None),
        },
        Event::File(event) => match &**event {
            FileEvent::Closed { end, .. } => (Some(end.as_str()), None),
            FileEvent::Ended { end, detail, .. } => (Some(end.as_str()), Some(detail)),
            FileEvent::Violated { detail, .. } => (None, Some(detail)),
            _ => (None, None),
        },
        _ => (None, None),
    };
    (cause, detail.filter(|text| !text.is_empty()))
}

fn empty_view(seq: u64, kind: &str, at: String) -> ServerEvent {
    ServerEvent {
        seq,
        r#type: kind.to_owned(),
        at,
        lease: None,
        waiter: None,
        session: None,
        agent: None,
        file: None,
        spent: None,
        cause: None,
        detail: None,
    }
}

/// How long a client that lost its connection waits before it comes back, in milliseconds.
const RETRY: u32 = 1_000;

/// An event. It has no name, so that browsers hand it to `onmessage`.
fn encode_event(epoch: u64, event: &ServerEvent) -> Bytes {
    let mut frame = format!("id: {epoch}-{}\ndata: ", event.seq).into_bytes();
    put_json(&mut frame, event);
    frame.into()
}

/// How somebody is told of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventFormat {
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
            EventFormat::ServerSent => piece.extend_from_slice(event.sse_frame()),
            EventFormat::WebSocket { id } => {
                piece.extend_from_slice(format!("{{\"id\":{id},\"event\":").as_bytes());
                piece.extend_from_slice(json_of(event.sse_frame()));
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
        let event = ServerEvent { detail: Some(why.to_owned()), ..empty_view(after, "resync", at) };
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
