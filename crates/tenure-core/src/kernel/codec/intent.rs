//! What happened to sessions, to what is stored and back.

use std::sync::Arc;

use super::decode::invalid;
use super::{number, value};
use crate::kernel::event::Event;
use crate::kernel::intent::{Accepted, Intent, IntentEvent, IntentKey, SessionEnd, Target};
use crate::kernel::name::{Holder, Principal};
use crate::kernel::value::{Fence, Tick};
use crate::rules::names::{InvalidInput, check_name};
use crate::stored::{self, intent_event};

pub(super) fn message_of(event: &IntentEvent) -> stored::IntentEvent {
    let session_id = event.session().as_str().to_owned();
    let tick = event.at().0;
    let event = match event {
        IntentEvent::Accepted(accepted) => intent_event::Event::Accepted(accepted_message(accepted)),
        IntentEvent::Starting { worker, guard, slot, .. } => {
            intent_event::Event::Starting(stored::IntentStarting {
                session_id,
                worker: worker.as_str().into(),
                guard: guard.0,
                slot_and_one: slot.map_or(0, |slot| u64::from(slot) + 1),
                tick,
            })
        }
        IntentEvent::Running { process, .. } => {
            let process = process.as_ref().into();
            intent_event::Event::Running(stored::IntentRunning { session_id, process, tick })
        }
        IntentEvent::Stopping { by, .. } => {
            let by = by.as_str().into();
            intent_event::Event::Stopping(stored::IntentStopping { session_id, by, tick })
        }
        IntentEvent::Ended { end, detail, .. } => {
            let (end, detail) = (number(*end as u8), detail.as_ref().into());
            intent_event::Event::Ended(stored::IntentEnded { session_id, end, detail, tick })
        }
    };
    stored::IntentEvent { event: Some(event) }
}

pub(super) fn event_of(message: stored::IntentEvent) -> Result<Event, InvalidInput> {
    let event = match message.event.ok_or_else(|| invalid("payload", "is empty"))? {
        intent_event::Event::Accepted(accepted) => IntentEvent::Accepted(accepted_of(accepted)?),
        intent_event::Event::Starting(starting) => IntentEvent::Starting {
            session: Holder::parse(&starting.session_id)?,
            at: Tick(starting.tick),
            worker: Holder::parse(&starting.worker)?,
            guard: Fence(starting.guard),
            slot: match starting.slot_and_one {
                0 => None,
                number => Some(u32::try_from(number - 1).map_err(|_| invalid("slot", "is too large"))?),
            },
        },
        intent_event::Event::Running(running) => IntentEvent::Running {
            session: Holder::parse(&running.session_id)?,
            at: Tick(running.tick),
            process: text("process", running.process)?,
        },
        intent_event::Event::Stopping(stopping) => IntentEvent::Stopping {
            session: Holder::parse(&stopping.session_id)?,
            at: Tick(stopping.tick),
            by: Principal::parse(&stopping.by)?,
        },
        intent_event::Event::Ended(ended) => IntentEvent::Ended {
            session: Holder::parse(&ended.session_id)?,
            at: Tick(ended.tick),
            end: value("end", &SessionEnd::ALL, ended.end)?,
            detail: text("detail", ended.detail)?,
        },
    };
    Ok(Event::Intent(Box::new(event)))
}

fn accepted_message(accepted: &Accepted) -> stored::IntentAccepted {
    let Intent { target, profile, params, correlation } = &accepted.intent;
    let (service_ref, recording_id, start_ms) = match target {
        Target::Service(service) => (service.as_ref().into(), String::new(), 0),
        Target::Recording { id, start_ms } => (String::new(), id.as_ref().into(), *start_ms),
    };
    stored::IntentAccepted {
        session_id: accepted.session.as_str().into(),
        service_ref,
        recording_id,
        start_ms,
        profile_id: profile.as_ref().into(),
        params: params.as_ref().into(),
        correlation_id: correlation.as_ref().into(),
        idempotency_key: accepted.key.0.to_vec(),
        principal: accepted.principal.as_str().into(),
        tick: accepted.at.0,
        start_by_tick: accepted.start_by.0,
    }
}

fn accepted_of(message: stored::IntentAccepted) -> Result<Accepted, InvalidInput> {
    let target = match (message.service_ref.as_str(), message.recording_id.as_str()) {
        (service, "") if message.start_ms == 0 => Target::Service(service.into()),
        ("", recording) => Target::Recording { id: recording.into(), start_ms: message.start_ms },
        _ => return Err(invalid("service_ref", "stands beside what belongs to a recording")),
    };
    let intent = Intent {
        target,
        profile: message.profile_id.into(),
        params: message.params.into(),
        correlation: message.correlation_id.into(),
    };
    intent.check()?;
    let key = message.idempotency_key.as_slice().try_into();
    Ok(Accepted {
        session: Holder::parse(&message.session_id)?,
        intent,
        key: IntentKey(key.map_err(|_| invalid("idempotency_key", "does not have 32 bytes"))?),
        principal: Principal::parse(&message.principal)?,
        at: Tick(message.tick),
        start_by: Tick(message.start_by_tick),
    })
}

/// A text for people: it may be empty, but has bounds like a name.
fn text(field: &'static str, text: String) -> Result<Arc<str>, InvalidInput> {
    if !text.is_empty() {
        check_name(field, &text)?;
    }
    Ok(text.into())
}
