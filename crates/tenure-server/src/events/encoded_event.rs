//! One event as bytes, encoded once for all subscribers.

use std::sync::{Arc, OnceLock};

use axum::body::Bytes;
use tenure_api::{Budget, ServerEvent};
use tenure_core::kernel::{
    AgentRecord, AgentWait, ClockAnchor, Event, Fence, FileSession, Holder, IntentSession, KernelState,
    LedgerTag, Resource, RetryTicket, Tick, Ticket, WorkEvent,
};

use super::agents::{AgentSnapshot, FileSnapshot, IntentSessionSnapshot};
use super::leases::{LeaseSnapshot, WaitRequest, WaitSnapshot};
use crate::app::format_tick_with_anchor;
use crate::work::amounts;

/// An event, and what it is about as it was right after.
#[derive(Debug)]
pub(super) struct EncodedEvent {
    pub(super) seq: u64,
    pub(super) kind: &'static str,
    at: Tick,
    pub(super) subject: EventSubject,
    spent: Option<Budget>,
    cause: Option<&'static str>,
    detail: Option<Arc<str>>,
    tag: LedgerTag,
    anchor: ClockAnchor,
    frame: OnceLock<Bytes>,
}

#[derive(Debug)]
pub(super) enum EventSubject {
    Nothing,
    Lease(LeaseSnapshot),
    Wait(WaitSnapshot),
    /// Nothing where its beginning is forgotten.
    IntentSession(Option<Box<IntentSessionSnapshot>>),
    Agent(Box<AgentSnapshot>),
    File(Box<FileSnapshot>),
}

/// What is known of the time before an event.
pub(super) trait PriorState {
    fn lease(&self, fence: Fence) -> Option<LeaseSnapshot>;
    fn waiter(&self, ticket: Ticket) -> Option<Arc<WaitRequest>>;
    /// How many wait for it; nothing where nobody remembers.
    fn queue_length(&self, resource: &Resource) -> Option<usize>;
    fn intent_session(&self, id: &Holder) -> Option<IntentSession>;
    /// How many changes of sessions there were; 0 where nobody remembers.
    fn intent_sessions_revision(&self) -> u64;
    fn agent(&self, id: &Holder) -> Option<AgentRecord>;
    fn pending(&self, ticket: Ticket) -> Option<AgentWait>;
    /// A session of a coding agent.
    fn file_session(&self, id: &Holder) -> Option<FileSession>;
    fn file_ticket(&self, ticket: Ticket) -> Option<RetryTicket>;
}

impl PriorState for &KernelState {
    fn lease(&self, fence: Fence) -> Option<LeaseSnapshot> {
        KernelState::lease(self, fence).map(LeaseSnapshot::of_active)
    }

    fn waiter(&self, ticket: Ticket) -> Option<Arc<WaitRequest>> {
        self.queue_ticket(ticket).map(|waiting| Arc::new(WaitRequest::of_waiting(waiting)))
    }

    fn queue_length(&self, resource: &Resource) -> Option<usize> {
        Some(KernelState::queue_length(self, resource))
    }

    fn intent_session(&self, id: &Holder) -> Option<IntentSession> {
        KernelState::intent_session(self, id).cloned()
    }

    fn intent_sessions_revision(&self) -> u64 {
        // With the one that is about to happen.
        KernelState::intent_sessions_revision(self) + 1
    }

    fn agent(&self, id: &Holder) -> Option<AgentRecord> {
        KernelState::agent(self, id).cloned()
    }

    fn pending(&self, ticket: Ticket) -> Option<AgentWait> {
        KernelState::agent_wait(self, ticket).cloned()
    }

    fn file_session(&self, id: &Holder) -> Option<FileSession> {
        KernelState::file_session(self, id).cloned()
    }

    fn file_ticket(&self, ticket: Ticket) -> Option<RetryTicket> {
        KernelState::retry_ticket(self, ticket).cloned()
    }
}

impl EncodedEvent {
    pub(super) fn new(
        seq: u64,
        event: &Event,
        before: &impl PriorState,
        tag: LedgerTag,
        mut anchor: ClockAnchor,
    ) -> Self {
        if let Event::Resumed { at, wall_anchor, .. } = event {
            anchor = ClockAnchor { tick: *at, wall: *wall_anchor };
        }
        let (mut cause, mut detail) = (None, None);
        let subject = match event {
            Event::Queued(queued) => {
                let first = queued.requests.first();
                let length = first.and_then(|request| before.queue_length(&request.resource));
                let position = length.map_or(0, |length| length + 1);
                EventSubject::Wait(WaitSnapshot {
                    ticket: queued.ticket.0,
                    position,
                    request: Some(Arc::new(WaitRequest::of(queued))),
                })
            }
            Event::Left { ticket, end, .. } => {
                cause = Some(end.as_str());
                EventSubject::Wait(WaitSnapshot {
                    ticket: ticket.0,
                    position: 0,
                    request: before.waiter(*ticket),
                })
            }
            Event::Intent(event) => {
                let (before, revision) =
                    (before.intent_session(event.session()), before.intent_sessions_revision());
                EventSubject::IntentSession(
                    IntentSessionSnapshot::after_event(event, before, revision).map(Box::new),
                )
            }
            Event::Agent(event) => {
                let then =
                    AgentSnapshot::after_event(event, |id| before.agent(id), |ticket| before.pending(ticket));
                cause = then.cause;
                EventSubject::Agent(Box::new(then))
            }
            Event::File(event) => {
                let then = FileSnapshot::after_event(
                    event,
                    |id| before.file_session(id),
                    |ticket| before.file_ticket(ticket),
                );
                (cause, detail) = (then.cause, then.detail.as_deref().map(Arc::from));
                EventSubject::File(Box::new(then))
            }
            event => LeaseSnapshot::after_event(event, |fence| before.lease(fence))
                .map_or(EventSubject::Nothing, EventSubject::Lease),
        };
        if let Event::Revoked { cause: revocation_cause, detail: detail_text, .. } = event {
            (cause, detail) =
                (Some(revocation_cause.as_str()), Some(detail_text.clone()).filter(|text| !text.is_empty()));
        }
        let spent = match event {
            Event::Work(event) => match &**event {
                WorkEvent::Spent { amount, .. } => Some(amounts(*amount)),
            },
            _ => None,
        };
        let (kind, at) = (event.type_name(), event.occurred_at());
        Self { seq, kind, at, subject, spent, cause, detail, tag, anchor, frame: OnceLock::new() }
    }

    /// How much memory it takes, about.
    pub(super) fn memory_size(&self) -> usize {
        let names = match &self.subject {
            EventSubject::Nothing | EventSubject::IntentSession(None) => 0,
            EventSubject::IntentSession(Some(then)) => then.bytes(),
            EventSubject::File(then) => then.bytes(),
            EventSubject::Agent(then) => then.resources().map(|resource| 64 + resource.as_str().len()).sum(),
            EventSubject::Lease(facts) => {
                facts.names.as_ref().map_or(0, |(resource, _)| resource.as_str().len())
            }
            EventSubject::Wait(wait) => {
                wait.request.as_ref().map_or(0, |request| 64 * request.requested.len())
            }
        };
        // What is told is kept beside it once somebody listens.
        1_024 + 4 * names
    }

    /// How ticks were tied to times, right after it.
    pub(super) fn clock_anchor(&self) -> ClockAnchor {
        self.anchor
    }

    /// As it goes over the wire.
    pub(super) fn sse_frame(&self, epoch: u64) -> &Bytes {
        self.frame.get_or_init(|| encode_event(epoch, &self.to_view()))
    }

    fn to_view(&self) -> ServerEvent {
        let (mut lease, mut waiter, mut session, mut agent, mut file) = (None, None, None, None, None);
        match &self.subject {
            EventSubject::Nothing => {}
            EventSubject::Lease(facts) => lease = Some(facts.to_view(self.at, self.tag, self.anchor)),
            EventSubject::Wait(wait) => waiter = Some(wait.to_view(self.at, self.anchor)),
            EventSubject::IntentSession(then) => {
                session = then.as_ref().map(|then| then.to_view(self.anchor))
            }
            EventSubject::File(then) => file = Some(then.to_view(self.anchor)),
            EventSubject::Agent(then) => agent = Some(then.to_view(self.at, self.tag, self.anchor)),
        }
        ServerEvent {
            seq: self.seq,
            r#type: self.kind.to_owned(),
            at: format_tick_with_anchor(self.anchor, self.at),
            lease,
            waiter,
            session,
            agent,
            file,
            spent: self.spent,
            cause: self.cause.map(str::to_owned),
            detail: self.detail.as_deref().map(str::to_owned),
        }
    }
}

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
