//! Sessions of coding agents, what they want and what they left behind, as bytes and back.

use super::RestoreError;
use super::bytes::{Put, Take};
use super::part::{Saved, saved, saved_code, saved_option};
use super::restore::Restoring;
use crate::kernel::file::{Blocked, FileSession, FileTicket, LeftFile, Owner, TicketEnd};
use crate::kernel::name::Resource;
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

saved_option! { Blocked; }

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
        let by_id = |session: &FileSession| session.id.clone();
        for session in self.take.ascending(by_id, "sessions are not in their order")? {
            self.state.files.enter_session(session);
        }
        let by_number = |ticket: &FileTicket| ticket.ticket;
        for ticket in self.take.ascending(by_number, "tickets are not in their order")? {
            self.enter_ticket(ticket)?;
        }
        let by_number = |(ticket, _): &(FileTicket, _)| ticket.ticket;
        for (mut ticket, end) in self.take.ascending(by_number, "reports are not in their order")? {
            self.take.ensure(ticket.blocked.is_some(), "a report tells of nobody who was blocked")?;
            ticket.end = Some(end);
            self.enter_ticket(ticket)?;
        }
        for (resource, left) in Vec::<(Resource, LeftFile)>::read(&mut self.take)? {
            self.take.ensure(self.state.left_file(&resource).is_none(), "a file was left twice")?;
            self.state.files.leave(resource, left);
        }
        let fits = self.state.invariant_files_are_held_by_sessions_that_live().is_ok();
        self.take.ensure(fits, "a file is held by nobody")
    }

    /// No ticket has the number 0.
    fn enter_ticket(&mut self, ticket: FileTicket) -> Result<(), RestoreError> {
        let was_drawn = (Ticket(1)..=self.state.last_ticket).contains(&ticket.ticket);
        self.take.ensure(was_drawn, "a ticket was never drawn")?;
        self.state.files.enter_ticket(ticket);
        Ok(())
    }
}
