//! Names for what happens, so that a run can say what it has tried.

use tenure_client::Effect as Sent;
use tenure_core::kernel::{
    AgentEvent, Answer, Cause, Event, IntentEvent, PendingEnd, Refusal, SessionEnd, WaitEnd,
};
use tenure_registrar::{Effect, Reply};

use crate::log::Log;

/// Counts what a server did, and adds it to the records digest.
pub fn note_server(effect: &Effect, log: &mut Log) {
    log.records().add(effect);
    match effect {
        Effect::Publish(events) => events.iter().for_each(|event| log.count(event_kind(event))),
        Effect::Answer { reply, .. } => log.count(reply_kind(reply)),
        Effect::Served { .. } => log.count("waiter served"),
        Effect::Unserved { .. } => log.count("waiter not served"),
        Effect::Append(_) => log.count("write"),
        Effect::StepDown(_) => log.count("step down"),
    }
}

pub fn count_client(effect: &Sent, log: &mut Log) {
    match effect {
        Sent::Send { .. } => log.count("message sent"),
        Sent::Held(_) => log.count("client holds"),
        Sent::Lost => log.count("client lost its lease"),
        Sent::Refused => log.count("client refused"),
    }
}

fn event_kind(event: &Event) -> &'static str {
    match event {
        Event::Issued(issued) if issued.continues.is_some() => "lease continued",
        Event::Issued(issued) if issued.ticket.is_some() => "lease issued to a waiter",
        Event::Issued(_) => "lease issued",
        Event::Renewed { .. } => "lease renewed",
        Event::Released { .. } => "lease released",
        Event::Expired { .. } => "lease expired",
        Event::Revoked { cause: Cause::Reclaimed, .. } => "lease reclaimed",
        Event::Revoked { cause: Cause::Transferred, .. } => "lease handed over",
        Event::Revoked { .. } => "lease revoked",
        Event::Queued(queued) if queued.wants.iter().any(|want| !want.others.is_empty()) => {
            "wait for any one of several began"
        }
        Event::Queued(_) => "wait began",
        Event::Left { end: WaitEnd::TimedOut, .. } => "wait timed out",
        Event::Left { .. } => "wait withdrawn",
        Event::Intent(event) => match &**event {
            IntentEvent::Ended { end, .. } => end_kind(*end),
            event => event.type_name(),
        },
        Event::Agent(event) => match &**event {
            AgentEvent::Left { end: PendingEnd::TimedOut, .. } => "agent's wait timed out",
            AgentEvent::Left { end: PendingEnd::Died, .. } => "agent died waiting",
            event => event.type_name(),
        },
        Event::Work(event) => event.type_name(),
        Event::File(event) => event.type_name(),
        Event::Marked { .. } => "time marked",
        Event::Resumed { .. } => "writer started",
        Event::Restored { .. } => "ledger restored",
    }
}

fn end_kind(end: SessionEnd) -> &'static str {
    match end {
        SessionEnd::Busy => "session ended: busy",
        SessionEnd::NoTuner => "session ended: no tuner",
        SessionEnd::NoWorker => "session ended: no worker",
        SessionEnd::LeaseLost => "session ended: lease lost",
        SessionEnd::WorkerRestarted => "session ended: worker restarted",
        SessionEnd::Stopped => "session ended: stopped",
        _ => "session ended: done",
    }
}

fn reply_kind(reply: &Reply) -> &'static str {
    match reply {
        Reply::Busy => "told busy",
        Reply::TooLate => "told too late",
        Reply::Unavailable => "told unavailable",
        Reply::OutcomeUnknown => "told outcome unknown",
        Reply::Answered { answer: Answer::Refused(refusal), .. } => refusal_kind(refusal),
        Reply::Answered { .. } => "answered",
    }
}

fn refusal_kind(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Invalid(_) => "refused: invalid",
        Refusal::Held { .. } => "refused: held",
        Refusal::QueueFull { .. } => "refused: queue full",
        Refusal::Deadlock { .. } => "refused: deadlock",
        Refusal::QuotaExceeded { .. } => "refused: quota",
        Refusal::KeyReused => "refused: key reused",
        Refusal::HolderTaken { .. } => "refused: holder taken",
        Refusal::NotFound => "refused: not found",
        Refusal::NoSuchTicket => "refused: no such ticket",
        Refusal::NotHolder => "refused: not the holder",
        Refusal::Over { .. } => "refused: over",
        Refusal::WrongDirection { .. } => "refused: wrong direction",
        Refusal::GuardLost => "refused: guard lost",
        Refusal::NoSuchSession => "refused: no such session",
        _ => "refused: otherwise",
    }
}
