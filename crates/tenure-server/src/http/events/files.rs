//! The session of a coding agent and the file that an event is about, as they were right after it.

use tenure_api::FileEventDetails;
use tenure_core::kernel::{ClockAnchor, FileEvent, FileSession, Holder, Resource, RetryTicket, Tick, Ticket};

use crate::clock::format_tick_with_anchor;

/// What an event about files is about. What is not known any more is left out.
#[derive(Debug, Default)]
pub(super) struct FileSnapshot {
    session: Option<Holder>,
    agent: Option<String>,
    name: Option<String>,
    pub(super) resource: Option<Resource>,
    owner: Option<Holder>,
    ticket: Option<Ticket>,
    retry_at: Option<Tick>,
    circle: Vec<Holder>,
    pub(super) cause: Option<&'static str>,
    pub(super) detail: Option<String>,
}

impl FileSnapshot {
    /// The subject right after `event`. `known` looks up a session, and `retry_ticket` a ticket, as they were before it.
    pub(super) fn after_event(
        event: &FileEvent,
        known: impl Fn(&Holder) -> Option<FileSession>,
        retry_ticket: impl Fn(Ticket) -> Option<RetryTicket>,
    ) -> Self {
        let of_ticket = |ticket: Ticket| {
            let ticket_of = retry_ticket(ticket);
            let of = ticket_of.as_ref().map(|wait| Self::of(&wait.session, &known)).unwrap_or_default();
            let resource = ticket_of.map(|wait| wait.request.resource);
            Self { ticket: Some(ticket), resource, ..of }
        };
        let nonempty = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        match event {
            FileEvent::Began { session, .. } => Self {
                session: Some(session.id.clone()),
                agent: Some(session.agent.to_string()),
                name: Some(session.session.to_string()),
                ..Self::default()
            },
            FileEvent::Seen { session, .. } | FileEvent::TurnEnded { session, .. } => {
                Self::of(session, &known)
            }
            FileEvent::Contended(contended) => Self {
                resource: Some(contended.request.resource.clone()),
                owner: Some(contended.owner.clone()),
                ticket: Some(contended.ticket),
                retry_at: Some(contended.retry_at),
                circle: contended.cycle.clone(),
                ..Self::of(&contended.session, &known)
            },
            FileEvent::Blocked { ticket, report: found } => Self {
                owner: Some(found.owner.holder.clone()),
                circle: found.cycle.clone(),
                ..of_ticket(*ticket)
            },
            FileEvent::Closed { ticket, end, .. } => Self { cause: Some(end.as_str()), ..of_ticket(*ticket) },
            FileEvent::Ended { session, end, detail, .. } => {
                Self { cause: Some(end.as_str()), detail: nonempty(detail), ..Self::of(session, &known) }
            }
            FileEvent::Violated { resource, owner, session, detail, .. } => Self {
                resource: Some(resource.clone()),
                owner: owner.clone(),
                detail: nonempty(detail),
                ..session.as_ref().map(|session| Self::of(session, &known)).unwrap_or_default()
            },
        }
    }

    fn of(session: &Holder, known: impl Fn(&Holder) -> Option<FileSession>) -> Self {
        let known = known(session);
        Self {
            session: Some(session.clone()),
            agent: known.as_ref().map(|known| known.agent.to_string()),
            name: known.map(|known| known.session.to_string()),
            ..Self::default()
        }
    }

    /// How many bytes callers made it long by.
    pub(super) fn bytes(&self) -> usize {
        let name = |holder: &Option<Holder>| holder.as_ref().map_or(0, |holder| holder.as_str().len());
        let circle = self.circle.iter().map(|holder| holder.as_str().len()).sum::<usize>();
        let resource = self.resource.as_ref().map_or(0, |resource| resource.as_str().len());
        let detail = self.detail.as_ref().map_or(0, String::len);
        name(&self.session) + name(&self.owner) + resource + circle + detail + 256
    }

    pub(super) fn to_view(&self, anchor: ClockAnchor) -> FileEventDetails {
        let text = |holder: &Holder| holder.as_str().to_owned();
        FileEventDetails {
            holder: self.session.as_ref().map(text).unwrap_or_default(),
            agent: self.agent.clone(),
            session: self.name.clone(),
            resource: self.resource.as_ref().map(|resource| resource.as_str().to_owned()),
            owner: self.owner.as_ref().map(text),
            ticket: self.ticket.map(|ticket| ticket.0),
            retry_at: self.retry_at.map(|at| format_tick_with_anchor(anchor, at)),
            circle: self.circle.iter().map(text).collect(),
        }
    }
}
