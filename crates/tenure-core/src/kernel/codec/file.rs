//! What happened to files, to what is stored and back.

use std::sync::Arc;

use super::decode::{decode_want, invalid};
use super::encode::want_message;
use crate::kernel::event::Event;
use crate::kernel::file::{Blocked, Contended, FileEnd, FileEvent, Introduction, Owner, TicketEnd};
use crate::kernel::name::{Holder, Resource};
use crate::kernel::value::{Tick, Ticket};
use crate::rules::names::{InvalidInput, is_text};
use crate::stored::{self, file_event};

pub(super) fn message_of(event: &FileEvent) -> stored::FileEvent {
    let id = |holder: &Holder| holder.as_str().to_owned();
    let name = |holder: &Option<Holder>| holder.as_ref().map(id).unwrap_or_default();
    let event = match event {
        FileEvent::Began { session, at } => file_event::Event::Began(stored::FileBegan {
            id: id(&session.id),
            parent: name(&session.parent),
            agent: session.agent.as_ref().into(),
            session_id: session.session.as_ref().into(),
            process: session.process.as_ref().into(),
            task: session.task.as_deref().unwrap_or_default().into(),
            tick: at.0,
        }),
        FileEvent::Seen { session, at, task } => file_event::Event::Seen(stored::FileSeen {
            id: id(session),
            tick: at.0,
            task: task.as_deref().map(str::to_owned),
        }),
        FileEvent::TurnEnded { session, at } => {
            file_event::Event::TurnEnded(stored::FileTurnEnded { id: id(session), tick: at.0 })
        }
        FileEvent::Contended(contended) => file_event::Event::Contended(stored::FileContended {
            ticket: contended.ticket.0,
            id: id(&contended.session),
            want: Some(want_message(&contended.want)),
            owner: id(&contended.owner),
            tick: contended.at.0,
            retry_tick: contended.retry_at.0,
            circle: contended.circle.iter().map(id).collect(),
        }),
        FileEvent::Blocked { ticket, found } => file_event::Event::Blocked(stored::FileBlocked {
            ticket: ticket.0,
            tick: found.at.0,
            owner: Some(owner_message(&found.owner)),
            held_since_tick: found.held_since.0,
            seen_tick: found.seen_at.0,
            circle: found.circle.iter().map(id).collect(),
        }),
        FileEvent::Closed { ticket, at, end } => file_event::Event::Closed(stored::FileClosed {
            ticket: ticket.0,
            tick: at.0,
            end: end.as_str().into(),
        }),
        FileEvent::Ended { session, at, end, detail } => file_event::Event::Ended(stored::FileEnded {
            id: id(session),
            tick: at.0,
            end: end.as_str().into(),
            detail: detail.as_ref().into(),
        }),
        FileEvent::Violated { resource, at, owner, session, detail } => {
            file_event::Event::Violated(stored::FileViolated {
                resource: resource.as_str().into(),
                tick: at.0,
                owner: name(owner),
                id: name(session),
                detail: detail.as_ref().into(),
            })
        }
    };
    stored::FileEvent { event: Some(event) }
}

pub(super) fn event_of(message: stored::FileEvent) -> Result<Event, InvalidInput> {
    let event = match message.event.ok_or_else(|| invalid("payload", "is empty"))? {
        file_event::Event::Began(began) => FileEvent::Began {
            at: Tick(began.tick),
            session: Introduction {
                id: Holder::parse(&began.id)?,
                parent: named(&began.parent)?,
                agent: text(began.agent)?,
                session: text(began.session_id)?,
                process: text(began.process)?,
                // One event has one form: what it is at is nothing where it is empty.
                task: Some(text(began.task)?).filter(|task| !task.is_empty()),
            },
        },
        file_event::Event::Seen(seen) => FileEvent::Seen {
            session: Holder::parse(&seen.id)?,
            at: Tick(seen.tick),
            task: seen.task.map(text).transpose()?,
        },
        file_event::Event::TurnEnded(ended) => {
            FileEvent::TurnEnded { session: Holder::parse(&ended.id)?, at: Tick(ended.tick) }
        }
        file_event::Event::Contended(contended) => FileEvent::Contended(Contended {
            ticket: Ticket(contended.ticket),
            session: Holder::parse(&contended.id)?,
            want: decode_want(&contended.want.ok_or_else(|| invalid("want", "is missing"))?)?,
            owner: Holder::parse(&contended.owner)?,
            at: Tick(contended.tick),
            retry_at: Tick(contended.retry_tick),
            circle: circle(&contended.circle)?,
        }),
        file_event::Event::Blocked(blocked) => FileEvent::Blocked {
            ticket: Ticket(blocked.ticket),
            found: Blocked {
                at: Tick(blocked.tick),
                owner: owner_of(blocked.owner.ok_or_else(|| invalid("owner", "is missing"))?)?,
                held_since: Tick(blocked.held_since_tick),
                seen_at: Tick(blocked.seen_tick),
                circle: circle(&blocked.circle)?,
            },
        },
        file_event::Event::Closed(closed) => FileEvent::Closed {
            ticket: Ticket(closed.ticket),
            at: Tick(closed.tick),
            end: TicketEnd::parse(&closed.end).ok_or_else(|| invalid("end", "is unknown"))?,
        },
        file_event::Event::Ended(ended) => FileEvent::Ended {
            session: Holder::parse(&ended.id)?,
            at: Tick(ended.tick),
            end: FileEnd::parse(&ended.end).ok_or_else(|| invalid("end", "is unknown"))?,
            detail: text(ended.detail)?,
        },
        file_event::Event::Violated(violated) => FileEvent::Violated {
            resource: Resource::parse(&violated.resource)?,
            at: Tick(violated.tick),
            owner: named(&violated.owner)?,
            session: named(&violated.id)?,
            detail: text(violated.detail)?,
        },
    };
    Ok(Event::File(Box::new(event)))
}

fn owner_message(owner: &Owner) -> stored::FileOwner {
    stored::FileOwner {
        holder: owner.holder.as_str().into(),
        agent: owner.agent.as_ref().into(),
        session_id: owner.session.as_ref().into(),
        process: owner.process.as_ref().into(),
        task: owner.task.as_ref().into(),
    }
}

fn owner_of(owner: stored::FileOwner) -> Result<Owner, InvalidInput> {
    Ok(Owner {
        holder: Holder::parse(&owner.holder)?,
        agent: text(owner.agent)?,
        session: text(owner.session_id)?,
        process: text(owner.process)?,
        task: text(owner.task)?,
    })
}

fn circle(names: &[String]) -> Result<Vec<Holder>, InvalidInput> {
    names.iter().map(|name| Holder::parse(name)).collect()
}

fn named(name: &str) -> Result<Option<Holder>, InvalidInput> {
    if name.is_empty() { Ok(None) } else { Holder::parse(name).map(Some) }
}

fn text(text: String) -> Result<Arc<str>, InvalidInput> {
    if is_text(&text) { Ok(text.into()) } else { Err(invalid("text", "cannot be stored")) }
}
