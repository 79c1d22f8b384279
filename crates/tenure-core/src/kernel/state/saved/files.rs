//! Sessions of coding agents, what they want and what they left behind, as bytes and back.

use std::sync::Arc;

use super::RestoreError;
use super::bytes::{Put, Take};
use super::restore::Restoring;
use crate::kernel::file::{Blocked, FileSession, FileTicket, LeftFile, Owner, TicketEnd};
use crate::kernel::name::{Holder, Resource};
use crate::kernel::state::State;
use crate::kernel::value::{Tick, Ticket};
use crate::kernel::want::Others;
use crate::rules::names::is_text;
use crate::rules::time::is_over;

impl Put<'_> {
    /// Sessions by their names, open tickets and the reports of others by their numbers, and what was left, the oldest first.
    pub(super) fn files(&mut self, state: &State) {
        self.count(state.file_sessions().count());
        for session in state.file_sessions() {
            self.text(session.id.as_str());
            self.optional(session.parent.as_ref());
            self.texts([&session.agent, &session.session, &session.process, &session.task]);
            self.past(session.began_at, state.now);
            self.past(session.seen_at, state.now);
            self.number(session.turn_ended_at.map_or(0, |at| at.0.saturating_add(1)));
        }
        let over = || state.file_reports().filter(|report| report.end.is_some());
        self.count(state.file_tickets().count());
        state.file_tickets().for_each(|ticket| self.ticket(ticket, state.now));
        self.count(over().count());
        over().for_each(|ticket| self.ticket(ticket, state.now));
        self.count(state.files.left_in_order().count());
        for (resource, left) in state.files.left_in_order() {
            self.text(resource.as_str());
            self.owner(&left.owner);
            self.past(left.at, state.now);
        }
    }

    fn ticket(&mut self, ticket: &FileTicket, now: Tick) {
        self.number(ticket.ticket.0);
        self.text(ticket.session.as_str());
        self.text(ticket.want.resource.as_str());
        self.want(&ticket.want);
        self.past(ticket.at, now);
        self.number(ticket.retry_at.since(ticket.at).0);
        self.names(&ticket.circle);
        self.byte(ticket.blocked.is_some().into());
        if let Some(blocked) = &ticket.blocked {
            self.past(blocked.at, now);
            self.owner(&blocked.owner);
            self.past(blocked.held_since, now);
            self.past(blocked.seen_at, now);
            self.names(&blocked.circle);
        }
        if let Some((at, end)) = ticket.end {
            self.past(at, now);
            self.byte(code_of_end(end));
        }
    }

    fn owner(&mut self, owner: &Owner) {
        self.text(owner.holder.as_str());
        self.texts([&owner.agent, &owner.session, &owner.process, &owner.task]);
    }

    fn texts(&mut self, texts: [&Arc<str>; 4]) {
        texts.into_iter().for_each(|text| self.text(text));
    }

    /// A name, or an empty text, which no name is.
    fn optional(&mut self, name: Option<&Holder>) {
        self.text(name.map(Holder::as_str).unwrap_or_default());
    }

    fn names(&mut self, names: &[Holder]) {
        self.count(names.len());
        names.iter().for_each(|name| self.text(name.as_str()));
    }
}

impl Restoring<'_> {
    pub(super) fn files(&mut self) -> Result<(), RestoreError> {
        let now = self.state.now;
        let mut before: Option<Holder> = None;
        for _ in 0..self.take.count(9)? {
            let session = self.take.file_session(now)?;
            self.take
                .ensure(before.is_none_or(|before| before < session.id), "sessions are not in their order")?;
            before = Some(session.id.clone());
            self.state.files.enter_session(session);
        }
        let mut last = Ticket(0);
        for _ in 0..self.take.count(28)? {
            let ticket = self.take.file_ticket(now, false)?;
            self.take.ensure(last < ticket.ticket, "tickets are not in their order")?;
            last = ticket.ticket;
            self.state.files.enter_ticket(ticket);
        }
        self.take.ensure(last <= self.state.last_ticket, "a ticket was never drawn")?;
        let mut last = Ticket(0);
        for _ in 0..self.take.count(28)? {
            let ticket = self.take.file_ticket(now, true)?;
            let fits = last < ticket.ticket && ticket.ticket <= self.state.last_ticket;
            self.take.ensure(fits, "reports are not in their order")?;
            last = ticket.ticket;
            self.state.files.enter_ticket(ticket);
        }
        for _ in 0..self.take.count(7)? {
            let resource = self.take.name(Resource::parse)?;
            self.take.ensure(self.state.left_file(&resource).is_none(), "a file was left twice")?;
            let owner = self.take.owner()?;
            let left = LeftFile { owner, at: self.take.past(now)? };
            self.state.files.leave(resource, left);
        }
        let fits = self.state.invariant_files_are_held_by_sessions_that_live().is_ok();
        self.take.ensure(fits, "a file is held by nobody")?;
        // One state has one form: what an older one says is not said in the newest.
        self.take.ensure(self.state.has_files(), "it needs no such form")
    }
}

impl Take<'_> {
    fn file_session(&mut self, now: Tick) -> Result<FileSession, RestoreError> {
        let id = self.name(Holder::parse)?;
        let parent = self.optional()?;
        let [agent, session, process, task] = self.texts()?;
        let (began_at, seen_at) = (self.past(now)?, self.past(now)?);
        let turn_ended_at = self.number()?.checked_sub(1).map(Tick);
        let fits = turn_ended_at.is_none_or(|at| at <= now) && began_at <= seen_at;
        self.ensure(fits, "a session was heard of before it began, or will be")?;
        Ok(FileSession { id, parent, agent, session, process, task, began_at, seen_at, turn_ended_at })
    }

    fn file_ticket(&mut self, now: Tick, is_over_with: bool) -> Result<FileTicket, RestoreError> {
        let ticket = Ticket(self.number()?);
        let session = self.name(Holder::parse)?;
        let resource = self.name(Resource::parse)?;
        let want = self.want(resource, Others::default())?;
        let at = self.past(now)?;
        let retry_at = Tick(self.after(at.0)?);
        let circle = self.names()?;
        let blocked = match self.byte()? {
            0 => None,
            1 => Some(self.blocked(now)?),
            _ => return Err(self.damaged("whether a session was blocked is neither yes nor no")),
        };
        let was_due = blocked.as_ref().is_none_or(|blocked| is_over(blocked.at.0, retry_at.0));
        self.ensure(was_due, "a session was blocked before its retry was due")?;
        let end = match is_over_with {
            true => Some((self.past(now)?, self.ticket_end()?)),
            false => None,
        };
        self.ensure(end.is_none() || blocked.is_some(), "a report tells of nobody who was blocked")?;
        Ok(FileTicket { ticket, session, want, at, retry_at, circle, blocked, end })
    }

    fn blocked(&mut self, now: Tick) -> Result<Blocked, RestoreError> {
        let at = self.past(now)?;
        let owner = self.owner()?;
        let (held_since, seen_at) = (self.past(now)?, self.past(now)?);
        self.ensure(held_since <= at && seen_at <= at, "a report tells of the future")?;
        Ok(Blocked { at, owner, held_since, seen_at, circle: self.names()? })
    }

    fn owner(&mut self) -> Result<Owner, RestoreError> {
        let holder = self.name(Holder::parse)?;
        let [agent, session, process, task] = self.texts()?;
        Ok(Owner { holder, agent, session, process, task })
    }

    fn texts(&mut self) -> Result<[Arc<str>; 4], RestoreError> {
        Ok([self.stored_text()?, self.stored_text()?, self.stored_text()?, self.stored_text()?])
    }

    fn stored_text(&mut self) -> Result<Arc<str>, RestoreError> {
        let text = self.text()?;
        self.ensure(is_text(text), "a text cannot be stored")?;
        Ok(text.into())
    }

    fn optional(&mut self) -> Result<Option<Holder>, RestoreError> {
        let text = self.text()?;
        if text.is_empty() {
            return Ok(None);
        }
        Holder::parse(text).map(Some).map_err(|_| self.damaged("a name is none"))
    }

    fn names(&mut self) -> Result<Vec<Holder>, RestoreError> {
        let count = self.count(2)?;
        (0..count).map(|_| self.name(Holder::parse)).collect()
    }

    fn ticket_end(&mut self) -> Result<TicketEnd, RestoreError> {
        let code = self.byte()?;
        let found = TicketEnd::ALL.into_iter().find(|end| code_of_end(*end) == code);
        found.ok_or_else(|| self.damaged("a ticket ended in an unknown way"))
    }
}

fn code_of_end(end: TicketEnd) -> u8 {
    match end {
        TicketEnd::Served => 0,
        TicketEnd::Gone => 1,
        TicketEnd::Resumed => 2,
    }
}
