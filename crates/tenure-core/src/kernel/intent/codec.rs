//! What happened to sessions, to what is stored and back.

use std::sync::Arc;

use crate::kernel::codec::decode::invalid;
use crate::kernel::codec::fields::{MessageCodec, enum_number, enum_value, fields, message_codec};
use crate::kernel::intent::{
    Intent, IntentAcceptance, IntentEvent, IntentKey, IntentSessionEnd, IntentTarget,
};
use crate::proto;
use crate::rules::{InvalidInput, check_name};
use crate::value::{Holder, Principal, Tick};

fields! {
    IntentEvent in intent_event {
        Starting as IntentStarting {
            session: session_id, at: tick, worker: worker, leader: guard, slot: slot_and_one
        }
        Running as IntentRunning {
            session: session_id, at: tick, process: process by |name| decode_text("process", name)
        }
        Stopping as IntentStopping { session: session_id, at: tick, by: by }
        Ended as IntentEnded {
            session: session_id, at: tick, end: end, detail: detail by |detail| decode_text("detail", detail)
        }
    } whole { Accepted }
}

message_codec! {
    IntentSessionEnd as i32: |end| enum_number(*end as u8), |number| enum_value("end", &IntentSessionEnd::ALL, number);
    Option<u32> as u64: |slot| slot.map_or(0, |slot| u64::from(slot) + 1), |number| decode_slot(number);
}

impl MessageCodec<proto::IntentAccepted> for IntentAcceptance {
    fn to_message(&self) -> proto::IntentAccepted {
        let Intent { target, profile, params, correlation } = &self.intent;
        let (service_ref, recording_id, start_ms) = match target {
            IntentTarget::Service(service) => (service.as_ref().into(), String::new(), 0),
            IntentTarget::Recording { id, start_ms } => (String::new(), id.as_ref().into(), *start_ms),
        };
        proto::IntentAccepted {
            session_id: self.session.as_str().into(),
            service_ref,
            recording_id,
            start_ms,
            profile_id: profile.as_ref().into(),
            params: params.as_ref().into(),
            correlation_id: correlation.as_ref().into(),
            idempotency_key: self.key.0.to_vec(),
            principal: self.principal.as_str().into(),
            tick: self.at.0,
            start_by_tick: self.start_by.0,
        }
    }

    fn from_message(message: proto::IntentAccepted) -> Result<Self, InvalidInput> {
        let target = match (message.service_ref.as_str(), message.recording_id.as_str()) {
            (service, "") if message.start_ms == 0 => IntentTarget::Service(service.into()),
            ("", recording) => IntentTarget::Recording { id: recording.into(), start_ms: message.start_ms },
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
        Ok(IntentAcceptance {
            session: Holder::parse(&message.session_id)?,
            intent,
            key: IntentKey(key.map_err(|_| invalid("idempotency_key", "does not have 32 bytes"))?),
            principal: Principal::parse(&message.principal)?,
            at: Tick(message.tick),
            start_by: Tick(message.start_by_tick),
        })
    }
}

fn decode_slot(slot_and_one: u64) -> Result<Option<u32>, InvalidInput> {
    let slot = slot_and_one.checked_sub(1).map(u32::try_from).transpose();
    slot.map_err(|_| invalid("slot", "is too large"))
}

/// A text for people: it may be empty, but has bounds like a name.
fn decode_text(field: &'static str, text: String) -> Result<Arc<str>, InvalidInput> {
    if !text.is_empty() {
        check_name(field, &text)?;
    }
    Ok(text.into())
}
