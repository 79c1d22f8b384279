//! File sessions, their tickets and reports in a checkpoint.

use crate::kernel::file::{
    BlockedReport, FileOwner, FileSession, RetryTicket, RetryTicketEnd, UncommittedFile,
};
use crate::kernel::state::KernelState;
use crate::kernel::state::checkpoint::RestoreError;
use crate::kernel::state::checkpoint::bytes::{CheckpointReader, CheckpointWriter};
use crate::kernel::state::checkpoint::decode::CheckpointDecoder;
use crate::kernel::state::checkpoint::fields::{
    CheckpointCodec, checkpoint_enum, checkpoint_option, checkpoint_struct,
};
use crate::rules::is_expired;
use crate::value::{Resource, Tick, Ticket};

checkpoint_struct! {
    FileSession { id, parent, agent, session, process, task, began_at, seen_at, turn_ended_at }
    "a session was heard of before it began, or will be" unless
        |it, now| it.turn_ended_at.is_none_or(|at| at <= now) && it.began_at <= it.seen_at;
}

checkpoint_struct! {
    RetryTicket { ticket, session, request, at, retry_at after at, cycle, blocked }
    preset end: None;
    "a session was blocked before its retry was due" unless
        |it, _| it.blocked.as_ref().is_none_or(|blocked| is_expired(blocked.at.0, it.retry_at.0));
}

checkpoint_struct! {
    BlockedReport { at, owner, held_since, seen_at, cycle }
    "a report tells of the future" unless |it, _| it.held_since <= it.at && it.seen_at <= it.at;
}

checkpoint_struct! { FileOwner { holder, agent, session, process, task } }

checkpoint_struct! { UncommittedFile { owner, at } }

checkpoint_enum! { RetryTicketEnd, "a ticket ended in an unknown way"; }

checkpoint_option! { BlockedReport; }

impl CheckpointWriter<'_> {
    /// Sessions by their names, open tickets and the reports of others by their numbers, and what was left, the oldest first.
    pub(in crate::kernel) fn encode_files(&mut self, state: &KernelState) {
        self.list(state.file_sessions(), |put, session| session.write(put));
        self.list(state.retry_tickets(), |put, ticket| ticket.write(put));
        let reports = state.blocked_reports().filter_map(|report| Some((report, report.end?)));
        self.list(reports, |put, (report, end)| {
            report.write(put);
            end.write(put);
        });
        self.list(state.files.uncommitted_oldest_first(), |put, (resource, uncommitted)| {
            resource.write(put);
            uncommitted.write(put);
        });
    }
}

impl CheckpointDecoder<'_> {
    pub(in crate::kernel) fn decode_files(&mut self) -> Result<(), RestoreError> {
        let by_id = |session: &FileSession| session.id.clone();
        for session in self.reader.ascending_list(by_id, "sessions are not in their order")? {
            self.state.files.insert_session(session);
        }
        let by_number = |ticket: &RetryTicket| ticket.ticket;
        for ticket in self.reader.ascending_list(by_number, "tickets are not in their order")? {
            self.insert_ticket(ticket)?;
        }
        let by_number = |(ticket, _): &(RetryTicket, _)| ticket.ticket;
        for (mut ticket, end) in self.reader.ascending_list(by_number, "reports are not in their order")? {
            self.reader.ensure(ticket.blocked.is_some(), "a report tells of nobody who was blocked")?;
            ticket.end = Some(end);
            self.insert_ticket(ticket)?;
        }
        for (resource, uncommitted) in Vec::<(Resource, UncommittedFile)>::read(&mut self.reader)? {
            self.reader.ensure(self.state.uncommitted_file(&resource).is_none(), "a file was left twice")?;
            self.state.files.record_uncommitted(resource, uncommitted);
        }
        let fits = self.state.invariant_files_are_held_by_active_sessions().is_ok();
        self.reader.ensure(fits, "a file is held by nobody")
    }

    /// No ticket has the number 0.
    fn insert_ticket(&mut self, ticket: RetryTicket) -> Result<(), RestoreError> {
        let was_drawn = (Ticket(1)..=self.state.last_ticket).contains(&ticket.ticket);
        self.reader.ensure(was_drawn, "a ticket was never drawn")?;
        self.state.files.insert_ticket(ticket);
        Ok(())
    }
}
