//! One event as it is told: the same bytes for everybody who listens, made once.

use std::sync::{Arc, OnceLock};

use axum::body::Bytes;
use tenure_api::{Budget, ServerEvent};
use tenure_core::kernel::{
    Agent, Anchor, Event, Fence, FileSession, FileTicket, Holder, LedgerTag, Pending, Resource, Session,
    State, Tick, Ticket, WorkEvent,
};

use super::agents::AgentThen;
use super::facts::{Asked, Facts, Wait};
use super::files::FileThen;
use super::frame;
use super::sessions::SessionThen;
use crate::http::names::time_by;
use crate::http::work::amounts;

/// An event, and what it is about as it was right after.
#[derive(Debug)]
pub(super) struct Happened {
    pub(super) seq: u64,
    pub(super) kind: &'static str,
    at: Tick,
    pub(super) about: About,
    spent: Option<Budget>,
    cause: Option<&'static str>,
    detail: Option<Arc<str>>,
    tag: LedgerTag,
    anchor: Anchor,
    frame: OnceLock<Bytes>,
}

#[derive(Debug)]
pub(super) enum About {
    Nothing,
    Lease(Facts),
    Wait(Wait),
    /// Nothing where its beginning is forgotten.
    Session(Option<Box<SessionThen>>),
    Agent(Box<AgentThen>),
    File(Box<FileThen>),
}

/// What is known of the time before an event.
pub(super) trait Before {
    fn lease(&self, fence: Fence) -> Option<Facts>;
    fn waiter(&self, ticket: Ticket) -> Option<Arc<Asked>>;
    /// How many wait for it; nothing where nobody remembers.
    fn queue_length(&self, resource: &Resource) -> Option<usize>;
    fn session(&self, id: &Holder) -> Option<Session>;
    /// How many changes of sessions there were; 0 where nobody remembers.
    fn sessions_revision(&self) -> u64;
    fn agent(&self, id: &Holder) -> Option<Agent>;
    fn pending(&self, ticket: Ticket) -> Option<Pending>;
    /// A session of a coding agent.
    fn file_session(&self, id: &Holder) -> Option<FileSession>;
    fn file_ticket(&self, ticket: Ticket) -> Option<FileTicket>;
}

impl Before for &State {
    fn lease(&self, fence: Fence) -> Option<Facts> {
        State::lease(self, fence).map(Facts::of_live)
    }

    fn waiter(&self, ticket: Ticket) -> Option<Arc<Asked>> {
        self.ticket(ticket).map(|waiting| Arc::new(Asked::of_waiting(waiting)))
    }

    fn queue_length(&self, resource: &Resource) -> Option<usize> {
        Some(State::queue_length(self, resource))
    }

    fn session(&self, id: &Holder) -> Option<Session> {
        State::session(self, id).cloned()
    }

    fn sessions_revision(&self) -> u64 {
        // With the one that is about to happen.
        State::sessions_revision(self) + 1
    }

    fn agent(&self, id: &Holder) -> Option<Agent> {
        State::agent(self, id).cloned()
    }

    fn pending(&self, ticket: Ticket) -> Option<Pending> {
        State::pending_under(self, ticket).cloned()
    }

    fn file_session(&self, id: &Holder) -> Option<FileSession> {
        State::file_session(self, id).cloned()
    }

    fn file_ticket(&self, ticket: Ticket) -> Option<FileTicket> {
        State::file_ticket(self, ticket).cloned()
    }
}

impl Happened {
    pub(super) fn new(
        seq: u64,
        event: &Event,
        before: &impl Before,
        tag: LedgerTag,
        mut anchor: Anchor,
    ) -> Self {
        if let Event::Resumed { at, wall_anchor, .. } = event {
            anchor = Anchor { tick: *at, wall: *wall_anchor };
        }
        let (mut cause, mut detail) = (None, None);
        let about = match event {
            Event::Queued(queued) => {
                let first = queued.wants.first();
                let length = first.and_then(|want| before.queue_length(&want.resource));
                let position = length.map_or(0, |length| length + 1);
                About::Wait(Wait {
                    ticket: queued.ticket.0,
                    position,
                    queued: Some(Arc::new(Asked::of(queued))),
                })
            }
            Event::Left { ticket, end, .. } => {
                cause = Some(end.as_str());
                About::Wait(Wait { ticket: ticket.0, position: 0, queued: before.waiter(*ticket) })
            }
            Event::Intent(event) => {
                let (before, revision) = (before.session(event.session()), before.sessions_revision());
                About::Session(SessionThen::after(event, before, revision).map(Box::new))
            }
            Event::Agent(event) => {
                let then = AgentThen::after(event, |id| before.agent(id), |ticket| before.pending(ticket));
                cause = then.cause;
                About::Agent(Box::new(then))
            }
            Event::File(event) => {
                let then =
                    FileThen::after(event, |id| before.file_session(id), |ticket| before.file_ticket(ticket));
                (cause, detail) = (then.cause, then.detail.as_deref().map(Arc::from));
                About::File(Box::new(then))
            }
            event => Facts::after(event, |fence| before.lease(fence)).map_or(About::Nothing, About::Lease),
        };
        if let Event::Revoked { cause: ground, detail: said, .. } = event {
            (cause, detail) = (Some(ground.as_str()), Some(said.clone()).filter(|said| !said.is_empty()));
        }
        let spent = match event {
            Event::Work(event) => match &**event {
                WorkEvent::Spent { amount, .. } => Some(amounts(*amount)),
            },
            _ => None,
        };
        let (kind, at) = (event.type_name(), event.at());
        Self { seq, kind, at, about, spent, cause, detail, tag, anchor, frame: OnceLock::new() }
    }

    /// How much memory it takes, about.
    pub(super) fn weight(&self) -> usize {
        let names = match &self.about {
            About::Nothing | About::Session(None) => 0,
            About::Session(Some(then)) => then.bytes(),
            About::File(then) => then.bytes(),
            About::Agent(then) => then.resources().map(|resource| 64 + resource.as_str().len()).sum(),
            About::Lease(facts) => facts.start.as_ref().map_or(0, |start| start.resource.as_str().len()),
            About::Wait(wait) => wait.queued.as_ref().map_or(0, |asked| 64 * asked.wants.len()),
        };
        // What is told is kept beside it once somebody listens.
        1_024 + 4 * names
    }

    /// How ticks were tied to times, right after it.
    pub(super) fn anchor(&self) -> Anchor {
        self.anchor
    }

    /// As it goes over the wire.
    pub(super) fn frame(&self, epoch: u64) -> &Bytes {
        self.frame.get_or_init(|| frame::event(epoch, &self.shown()))
    }

    fn shown(&self) -> ServerEvent {
        let (mut lease, mut waiter, mut session, mut agent, mut file) = (None, None, None, None, None);
        match &self.about {
            About::Nothing => {}
            About::Lease(facts) => lease = Some(facts.shown(self.at, self.tag, self.anchor)),
            About::Wait(wait) => waiter = Some(wait.shown(self.at, self.anchor)),
            About::Session(then) => session = then.as_ref().map(|then| then.shown(self.anchor)),
            About::File(then) => file = Some(then.shown(self.anchor)),
            About::Agent(then) => agent = Some(then.shown(self.at, self.tag, self.anchor)),
        }
        ServerEvent {
            seq: self.seq,
            r#type: self.kind.to_owned(),
            at: time_by(self.anchor, self.at),
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
