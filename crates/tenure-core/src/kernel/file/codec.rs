//! What happened to files, to what is stored and back.

use std::sync::Arc;

use crate::kernel::codec::decode::invalid;
use crate::kernel::codec::fields::{MessageCodec, fields, message_codec, require_known, required};
use crate::kernel::file::{
    BlockedReport, ContentionNotice, FileEvent, FileOwner, FileSessionEnd, FileSessionInfo, RetryTicketEnd,
};
use crate::proto;
use crate::rules::{InvalidInput, is_storable_text};
use crate::value::RecordedProcess;

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
