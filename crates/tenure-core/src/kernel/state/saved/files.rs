//! Sessions of coding agents, what they want and what they left behind, as bytes and back.

use super::RestoreError;
use super::bytes::{Put, Take};
use super::part::{Saved, saved, saved_code};
use super::restore::Restoring;
use crate::kernel::file::{Blocked, FileSession, FileTicket, LeftFile, Owner, TicketEnd};
use crate::kernel::name::{Holder, Resource};
use crate::kernel::state::State;
use crate::kernel::value::{Tick, Ticket};
use crate::rules::time::is_over;

saved! {
    FileSession { id, parent, agent, session, process, task, began_at, seen_at, turn_ended_at }
    "a session was heard of before it began, or will be" unless
        |it, now| it.turn_ended_at.is_none_or(|at| at <= now) && it.began_at <= it.seen_at;
}

saved! {
    FileTicket { ticket, session, want, at, retry_at after at, circle, blocked }
    given end: None;
    "a session was blocked before its retry was due" unless
        |it, _| it.blocked.as_ref().is_none_or(|blocked| is_over(blocked.at.0, it.retry_at.0));
}

saved! {
    Blocked { at, owner, held_since, seen_at, circle }
    "a report tells of the future" unless |it, _| it.held_since <= it.at && it.seen_at <= it.at;
}

saved! { Owner { holder, agent, session, process, task } }

saved! { LeftFile { owner, at } }

saved_code! { TicketEnd, "a ticket ended in an unknown way"; }

impl Saved for Option<Blocked> {
    fn put(&self, put: &mut Put<'_>) {
        put.optional(self.as_ref());
    }

    fn read(take: &mut Take<'_>) -> Result<Self, RestoreError> {
        take.optional()
    }
}

impl Put<'_> {
    /// Sessions by their names, open tickets and the reports of others by their numbers, and what was left, the oldest first.
    pub(super) fn files(&mut self, state: &State) {
        self.list(state.file_sessions(), |put, session| session.put(put));
        self.list(state.file_tickets(), |put, ticket| ticket.put(put));
        let reports = state.file_reports().filter_map(|report| Some((report, report.end?)));
        self.list(reports, |put, (report, end)| {
            report.put(put);
            end.put(put);
        });
        self.list(state.files.left_in_order(), |put, (resource, left)| {
            resource.put(put);
            left.put(put);
        });
    }
}

impl Restoring<'_> {
    pub(super) fn files(&mut self) -> Result<(), RestoreError> {
        let mut before: Option<Holder> = None;
        for session in Vec::<FileSession>::read(&mut self.take)? {
            self.take
                .ensure(before.is_none_or(|before| before < session.id), "sessions are not in their order")?;
            before = Some(session.id.clone());
            self.state.files.enter_session(session);
        }
        let mut last = Ticket(0);
        for ticket in Vec::<FileTicket>::read(&mut self.take)? {
            self.take.ensure(last < ticket.ticket, "tickets are not in their order")?;
            last = ticket.ticket;
            self.state.files.enter_ticket(ticket);
        }
        self.take.ensure(last <= self.state.last_ticket, "a ticket was never drawn")?;
        let mut last = Ticket(0);
        for (mut ticket, end) in Vec::<(FileTicket, (Tick, TicketEnd))>::read(&mut self.take)? {
            self.take.ensure(ticket.blocked.is_some(), "a report tells of nobody who was blocked")?;
            ticket.end = Some(end);
            let fits = last < ticket.ticket && ticket.ticket <= self.state.last_ticket;
            self.take.ensure(fits, "reports are not in their order")?;
            last = ticket.ticket;
            self.state.files.enter_ticket(ticket);
        }
        for (resource, left) in Vec::<(Resource, LeftFile)>::read(&mut self.take)? {
            self.take.ensure(self.state.left_file(&resource).is_none(), "a file was left twice")?;
            self.state.files.leave(resource, left);
        }
        let fits = self.state.invariant_files_are_held_by_sessions_that_live().is_ok();
        self.take.ensure(fits, "a file is held by nobody")
    }
}
