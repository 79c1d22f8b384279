//! How sessions of coding agents, their tickets and reports are stored: in records, and in checkpoints.

use std::sync::Arc;

use crate::kernel::codec::decode::invalid;
use crate::kernel::codec::fields::{MessageCodec, fields, message_codec, require_known, required};
use crate::kernel::file::{
    BlockedReport, ContentionNotice, FileEvent, FileOwner, FileSession, FileSessionEnd, FileSessionInfo,
    RetryTicket, RetryTicketEnd, UncommittedFile,
};
use crate::kernel::state::KernelState;
use crate::kernel::state::checkpoint::RestoreError;
use crate::kernel::state::checkpoint::bytes::{CheckpointReader, CheckpointWriter};
use crate::kernel::state::checkpoint::decode::CheckpointDecoder;
use crate::kernel::state::checkpoint::fields::{
    CheckpointCodec, checkpoint_enum, checkpoint_option, checkpoint_struct,
};
use crate::proto;
use crate::rules::{InvalidInput, is_expired, is_storable_text};
use crate::value::{RecordedProcess, Resource, Tick, Ticket};

fields! {
    FileEvent in file_event {
        Began as FileBegan {
            at: tick;
            session: flat FileSessionInfo {
                id: id, parent: parent, agent: agent by decode_text, session: session_id by decode_text,
                process: process, task: task
            }
        }
        Seen as FileSeen { session: id, at: tick, task: task by |task: Option<_>| task.map(decode_text).transpose() }
        TurnEnded as FileTurnEnded { session: id, at: tick }
        Blocked as FileBlocked {
            ticket: ticket;
            report: flat BlockedReport {
                at: tick, owner: owner, held_since: held_since_tick, seen_at: seen_tick, cycle: circle
            }
        }
        Closed as FileClosed { ticket: ticket, at: tick, end: end }
        Ended as FileEnded { session: id, at: tick, end: end, detail: detail by decode_text }
        Violated as FileViolated {
            resource: resource, at: tick, owner: owner, session: id, detail: detail by decode_text
        }
    } whole { Contended }
}

fields! {
    ContentionNotice as FileContended {
        ticket: ticket, session: id, request: want, owner: owner, at: tick, retry_at: retry_tick, cycle: circle
    }
}

fields! {
    FileOwner as FileOwner {
        holder: holder, agent: agent by decode_text, session: session_id by decode_text, process: process,
        task: task by decode_text
    }
}

message_codec! {
    FileSessionEnd as String: |end| end.as_str().into(), |text| require_known("end", FileSessionEnd::parse(&text));
    RetryTicketEnd as String: |end| end.as_str().into(), |text| require_known("end", RetryTicketEnd::parse(&text));
    RecordedProcess as String: |process| process.to_string(), |text| RecordedProcess::parse(&text);
    FileOwner as Option<proto::FileOwner>: |owner| Some(owner.to_message()), |owner| required("owner", owner);
    // One event has one form: what it is at is nothing where it is empty.
    Option<Arc<str>> as String: |task| task.as_deref().unwrap_or_default().into(),
        |task| Ok(Some(decode_text(task)?).filter(|task| !task.is_empty()));
}

fn decode_text(text: String) -> Result<Arc<str>, InvalidInput> {
    if is_storable_text(&text) { Ok(text.into()) } else { Err(invalid("text", "cannot be stored")) }
}

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
