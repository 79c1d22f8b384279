//! Names for what happens, so that a run can say what it has tried.

use tenure_client::Effect as ClientEffect;
use tenure_core::kernel::{
    AgentEvent, AgentWaitEnd, CommandOutcome, Event, IntentEvent, IntentSessionEnd, Rejection,
    RevocationCause, WaitEnd,
};
use tenure_registrar::{Effect, Reply};

use crate::simulation_log::SimulationLog;

/// Counts what a server did, and adds it to the records digest.
pub fn record_server_effect(effect: &Effect, log: &mut SimulationLog) {
    log.records_digest().add(effect);
    match effect {
        Effect::Publish(events) => events.iter().for_each(|event| log.record_coverage(event_kind(event))),
        Effect::Answer { reply, .. } => log.record_coverage(reply_kind(reply)),
        Effect::Served { .. } => log.record_coverage("waiter served"),
        Effect::Unserved { .. } => log.record_coverage("waiter not served"),
        Effect::ServedTooLate { .. } => log.record_coverage("waiter served too late"),
        Effect::Append(_) => log.record_coverage("write"),
        Effect::StepDown(_) => log.record_coverage("step down"),
    }
}

pub fn record_client_effect(effect: &ClientEffect, log: &mut SimulationLog) {
    match effect {
        ClientEffect::Send { .. } => log.record_coverage("message sent"),
        ClientEffect::Held(_) => log.record_coverage("client holds"),
        ClientEffect::Lost => log.record_coverage("client lost its lease"),
        ClientEffect::Refused => log.record_coverage("client refused"),
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
        Event::Revoked { cause: RevocationCause::Reclaimed, .. } => "lease reclaimed",
        Event::Revoked { cause: RevocationCause::Transferred, .. } => "lease handed over",
        Event::Revoked { .. } => "lease revoked",
        Event::Queued(queued) if queued.requests.iter().any(|request| !request.alternatives.is_empty()) => {
            "wait for any one of several began"
        }
        Event::Queued(_) => "wait began",
        Event::Left { end: WaitEnd::TimedOut, .. } => "wait timed out",
        Event::Left { .. } => "wait withdrawn",
        Event::Intent(event) => match &**event {
            IntentEvent::Ended { end, .. } => session_end_kind(*end),
            event => event.type_name(),
        },
        Event::Agent(event) => match &**event {
            AgentEvent::Left { end: AgentWaitEnd::TimedOut, .. } => "agent's wait timed out",
            AgentEvent::Left { end: AgentWaitEnd::Died, .. } => "agent died waiting",
            event => event.type_name(),
        },
        Event::Work(event) => event.type_name(),
        Event::File(event) => event.type_name(),
        Event::Marked { .. } => "time marked",
        Event::Resumed { .. } => "writer started",
        Event::Restored { .. } => "ledger restored",
    }
}

fn session_end_kind(end: IntentSessionEnd) -> &'static str {
    match end {
        IntentSessionEnd::Busy => "session ended: busy",
        IntentSessionEnd::NoTuner => "session ended: no tuner",
        IntentSessionEnd::NoWorker => "session ended: no worker",
        IntentSessionEnd::LeaseLost => "session ended: lease lost",
        IntentSessionEnd::WorkerRestarted => "session ended: worker restarted",
        IntentSessionEnd::Stopped => "session ended: stopped",
        _ => "session ended: done",
    }
}

fn reply_kind(reply: &Reply) -> &'static str {
    match reply {
        Reply::Busy => "told busy",
        Reply::TooLate => "told too late",
        Reply::Unavailable => "told unavailable",
        Reply::OutcomeUnknown => "told outcome unknown",
        Reply::Answered { answer: CommandOutcome::Rejected(rejection), .. } => rejection_kind(rejection),
        Reply::Answered { .. } => "answered",
    }
}

fn rejection_kind(rejection: &Rejection) -> &'static str {
    match rejection {
        Rejection::Invalid(_) => "refused: invalid",
        Rejection::Held { .. } => "refused: held",
        Rejection::QueueFull { .. } => "refused: queue full",
        Rejection::Deadlock { .. } => "refused: deadlock",
        Rejection::QuotaExceeded { .. } => "refused: quota",
        Rejection::KeyReused => "refused: key reused",
        Rejection::HolderTaken { .. } => "refused: holder taken",
        Rejection::NotFound => "refused: not found",
        Rejection::NoSuchTicket => "refused: no such ticket",
        Rejection::NotHolder => "refused: not the holder",
        Rejection::Ended { .. } => "refused: over",
        Rejection::WrongDirection { .. } => "refused: wrong direction",
        Rejection::LeaderLost => "refused: guard lost",
        Rejection::NoSuchSession => "refused: no such session",
        Rejection::OutOfScope { .. } => "rejected: out of scope",
        Rejection::BudgetExceeded { .. } => "rejected: budget exceeded",
        Rejection::OutlivesParent { .. } => "rejected: outlives its parent",
        Rejection::NoSpace => "rejected: no space",
        _ => "refused: otherwise",
    }
}
