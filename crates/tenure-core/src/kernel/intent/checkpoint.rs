//! Intent sessions in a checkpoint.

use std::sync::Arc;

use crate::kernel::intent::{
    Intent, IntentKey, IntentSession, IntentSessionEnd, IntentSessionState, IntentTarget,
};
use crate::kernel::state::KernelState;
use crate::kernel::state::checkpoint::RestoreError;
use crate::kernel::state::checkpoint::bytes::{CheckpointReader, CheckpointWriter};
use crate::kernel::state::checkpoint::decode::CheckpointDecoder;
use crate::kernel::state::checkpoint::fields::{
    CheckpointCodec, checkpoint_codec, checkpoint_enum, checkpoint_option, checkpoint_struct,
};
use crate::value::{Fence, Holder, Tick};

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
