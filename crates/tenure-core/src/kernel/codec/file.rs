//! What happened to files, to what is stored and back.

use std::sync::Arc;

use super::decode::invalid;
use super::part::{Stored, fields, known, required, stored_as};
use crate::kernel::file::{Blocked, Contended, FileEnd, FileEvent, Introduction, Owner, TicketEnd};
use crate::rules::names::{InvalidInput, is_text};
use crate::stored;

fields! {
    FileEvent in file_event {
        Began as FileBegan {
            at: tick;
            session: flat Introduction {
                id: id, parent: parent, agent: agent by text, session: session_id by text,
                process: process by text, task: task
            }
        }
        Seen as FileSeen { session: id, at: tick, task: task by |task: Option<_>| task.map(text).transpose() }
        TurnEnded as FileTurnEnded { session: id, at: tick }
        Blocked as FileBlocked {
            ticket: ticket;
            found: flat Blocked {
                at: tick, owner: owner, held_since: held_since_tick, seen_at: seen_tick, circle: circle
            }
        }
        Closed as FileClosed { ticket: ticket, at: tick, end: end }
        Ended as FileEnded { session: id, at: tick, end: end, detail: detail by text }
        Violated as FileViolated {
            resource: resource, at: tick, owner: owner, session: id, detail: detail by text
        }
    } whole { Contended }
}

fields! {
    Contended as FileContended {
        ticket: ticket, session: id, want: want, owner: owner, at: tick, retry_at: retry_tick, circle: circle
    }
}

fields! {
    Owner as FileOwner {
        holder: holder, agent: agent by text, session: session_id by text, process: process by text,
        task: task by text
    }
}

stored_as! {
    FileEnd as String: |end| end.as_str().into(), |text| known("end", FileEnd::parse(&text));
    TicketEnd as String: |end| end.as_str().into(), |text| known("end", TicketEnd::parse(&text));
    Owner as Option<stored::FileOwner>: |owner| Some(owner.to_message()), |owner| required("owner", owner);
    // One event has one form: what it is at is nothing where it is empty.
    Option<Arc<str>> as String: |task| task.as_deref().unwrap_or_default().into(),
        |task| Ok(Some(text(task)?).filter(|task| !task.is_empty()));
}

fn text(text: String) -> Result<Arc<str>, InvalidInput> {
    if is_text(&text) { Ok(text.into()) } else { Err(invalid("text", "cannot be stored")) }
}
