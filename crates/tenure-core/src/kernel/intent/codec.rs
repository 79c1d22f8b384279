//! How intent sessions are stored: in records, and in checkpoints.

use std::sync::Arc;

use crate::kernel::codec::decode::invalid;
use crate::kernel::codec::fields::{MessageCodec, enum_number, enum_value, fields, message_codec};
use crate::kernel::intent::{
    Intent, IntentAcceptance, IntentEvent, IntentKey, IntentSession, IntentSessionEnd, IntentSessionState,
    IntentTarget,
};
use crate::kernel::state::KernelState;
use crate::kernel::state::checkpoint::RestoreError;
use crate::kernel::state::checkpoint::bytes::{CheckpointReader, CheckpointWriter};
use crate::kernel::state::checkpoint::decode::CheckpointDecoder;
use crate::kernel::state::checkpoint::fields::{
    CheckpointCodec, checkpoint_codec, checkpoint_enum, checkpoint_option, checkpoint_struct,
};
use crate::proto;
use crate::rules::{InvalidInput, check_name};
use crate::value::{Fence, Holder, Principal, Tick};

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

// The end and its detail follow where a session has ended.
checkpoint_struct! {
    IntentSession {
        id, intent, key, principal, state, revision, accepted_at, start_by after accepted_at, changed_at, worker, slot,
        process,
    }
    preset end: None;
    preset detail: "".into();
    "a session never began" unless |session, _| session.revision > 0;
}

checkpoint_enum! {
    IntentSessionState, "a session is nowhere";
    IntentSessionEnd, "a session ended in an unknown way";
}

checkpoint_codec! { IntentKey: |put, key| put.bytes(&key.0), |take| take.array().map(IntentKey); }

checkpoint_option! { (Holder, Fence); }

impl CheckpointCodec for Intent {
    fn write(&self, put: &mut CheckpointWriter<'_>) {
        match &self.target {
            IntentTarget::Service(service) => {
                put.byte(0);
                put.text(service);
            }
            IntentTarget::Recording { id, start_ms } => {
                put.byte(1);
                put.text(id);
                put.varint(*start_ms);
            }
        }
        [&self.profile, &self.params, &self.correlation].into_iter().for_each(|text| put.text(text));
    }

    fn read(take: &mut CheckpointReader<'_>) -> Result<Self, RestoreError> {
        let target = match take.byte()? {
            0 => IntentTarget::Service(take.text()?.into()),
            1 => IntentTarget::Recording { id: take.text()?.into(), start_ms: take.varint()? },
            _ => return Err(take.damaged("a session shows neither a channel nor a recording")),
        };
        let [profile, params, correlation] = [take.text()?, take.text()?, take.text()?].map(Into::into);
        let intent = Intent { target, profile, params, correlation };
        take.ensure(intent.check().is_ok(), "a session wants what cannot be wanted")?;
        Ok(intent)
    }
}

impl CheckpointWriter<'_> {
    /// All sessions: how many changes there were, those that go on by their names, those that are over by their ends.
    pub(in crate::kernel) fn encode_intent_sessions(&mut self, state: &KernelState) {
        self.varint(state.intent_sessions.revision());
        let going = state.intent_sessions.iter().filter(|session| session.state != IntentSessionState::Ended);
        self.list(going, |put, session| session.write(put));
        self.list(state.intent_sessions.ended(), |put, session| {
            session.write(put);
            session.end.expect("a session that is over has an end").write(put);
            session.detail.write(put);
        });
    }
}

impl CheckpointDecoder<'_> {
    pub(in crate::kernel) fn decode_intent_sessions(&mut self) -> Result<(), RestoreError> {
        let revision = self.reader.varint()?;
        let by_id = |session: &IntentSession| session.id.clone();
        for session in self.reader.ascending_list(by_id, "sessions are not in their order")? {
            let is_active = session.state != IntentSessionState::Ended;
            self.reader.ensure(is_active, "a session that is over goes on")?;
            self.insert_session(session, revision)?;
        }
        let mut before = (Tick(0), 0);
        for (mut session, (end, detail)) in
            Vec::<(IntentSession, (IntentSessionEnd, Arc<str>))>::read(&mut self.reader)?
        {
            (session.end, session.detail) = (Some(end), detail);
            let after = (session.changed_at, session.revision);
            let in_order =
                session.state == IntentSessionState::Ended && after.0 >= before.0 && after.1 > before.1;
            self.reader.ensure(in_order, "ended sessions are not in their order")?;
            before = after;
            self.insert_session(session, revision)?;
        }
        self.state.intent_sessions.set_revision(revision);
        Ok(())
    }

    fn insert_session(&mut self, session: IntentSession, revision: u64) -> Result<(), RestoreError> {
        let (state, take) = (&mut self.state, &self.reader);
        let is_new = state.intent_session(&session.id).is_none();
        let newest = state.intent_sessions.changed_since(session.revision - 1).next();
        let is_free = newest.is_none_or(|other| other.revision != session.revision);
        take.ensure(is_new && is_free, "a session stands twice")?;
        take.ensure(session.revision <= revision, "a session changed after the last change")?;
        let is_active = session.state != IntentSessionState::Ended;
        let taken =
            is_active && state.intent_session_by_key(session.key, session.intent.target.kind()).is_some();
        take.ensure(!taken, "two sessions have one key")?;
        take.ensure(
            is_reachable(&session, state.last_fence()),
            "a session cannot have come there like this",
        )?;
        take.ensure(state.holds_required_leases(&session), "a session does not hold what it is said to")?;
        state.intent_sessions.insert(session);
        Ok(())
    }
}

/// Whether what is said of a session goes together.
fn is_reachable(session: &IntentSession, last_fence: Fence) -> bool {
    let was_taken = session.worker.is_some();
    let has_right_slot = session.slot.is_some() == (was_taken && session.intent.target.requires_tuner());
    let knows_guard = session.worker.as_ref().is_none_or(|(_, guard)| *guard <= last_fence);
    let came_in_order = session.changed_at >= session.accepted_at;
    let is_plain = session.process.is_empty();
    has_right_slot
        && knows_guard
        && came_in_order
        && match session.state {
            IntentSessionState::New => !was_taken && is_plain && session.changed_at == session.accepted_at,
            IntentSessionState::Starting => was_taken && is_plain,
            IntentSessionState::Running | IntentSessionState::Stopping => was_taken,
            IntentSessionState::Ended => was_taken || is_plain,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A code that moves would give old checkpoints another meaning.
    #[test]
    fn session_state_and_end_codes_are_stable() {
        assert_eq!(IntentSessionState::ALL.map(|state| state as u8), [0, 1, 2, 3, 4]);
        assert_eq!(IntentSessionEnd::ALL.map(|end| end as u8), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
