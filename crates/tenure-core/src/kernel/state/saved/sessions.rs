//! Sessions as bytes and back.

use std::sync::Arc;

use super::RestoreError;
use super::bytes::{Put, Take};
use super::part::{Saved, saved, saved_as, saved_code, saved_option};
use super::restore::Restoring;
use crate::kernel::intent::{Intent, IntentKey, Session, SessionEnd, SessionState, Target};
use crate::kernel::name::Holder;
use crate::kernel::state::State;
use crate::kernel::value::{Fence, Tick};

// The end and its detail follow where a session has ended.
saved! {
    Session {
        id, intent, key, principal, state, revision, accepted_at, start_by after accepted_at, changed_at, worker, slot,
        process,
    }
    given end: None;
    given detail: "".into();
    "a session never began" unless |session, _| session.revision > 0;
}

saved_code! {
    SessionState, "a session is nowhere";
    SessionEnd, "a session ended in an unknown way";
}

saved_as! { IntentKey: |put, key| put.bytes(&key.0), |take| take.array().map(IntentKey); }

saved_option! { (Holder, Fence); }

impl Saved for Intent {
    fn put(&self, put: &mut Put<'_>) {
        match &self.target {
            Target::Service(service) => {
                put.byte(0);
                put.text(service);
            }
            Target::Recording { id, start_ms } => {
                put.byte(1);
                put.text(id);
                put.number(*start_ms);
            }
        }
        [&self.profile, &self.params, &self.correlation].into_iter().for_each(|text| put.text(text));
    }

    fn read(take: &mut Take<'_>) -> Result<Self, RestoreError> {
        let target = match take.byte()? {
            0 => Target::Service(take.text()?.into()),
            1 => Target::Recording { id: take.text()?.into(), start_ms: take.number()? },
            _ => return Err(take.damaged("a session shows neither a channel nor a recording")),
        };
        let [profile, params, correlation] = [take.text()?, take.text()?, take.text()?].map(Into::into);
        let intent = Intent { target, profile, params, correlation };
        take.ensure(intent.check().is_ok(), "a session wants what cannot be wanted")?;
        Ok(intent)
    }
}

impl Put<'_> {
    /// All sessions: how many changes there were, those that go on by their names, those that are over by their ends.
    pub(super) fn sessions(&mut self, state: &State) {
        self.number(state.sessions.revision());
        let going = state.sessions.iter().filter(|session| session.state != SessionState::Ended);
        self.list(going, |put, session| session.put(put));
        self.list(state.sessions.over(), |put, session| {
            session.put(put);
            session.end.expect("a session that is over has an end").put(put);
            session.detail.put(put);
        });
    }
}

impl Restoring<'_> {
    pub(super) fn sessions(&mut self) -> Result<(), RestoreError> {
        let revision = self.take.number()?;
        let by_id = |session: &Session| session.id.clone();
        for session in self.take.ascending(by_id, "sessions are not in their order")? {
            let goes_on = session.state != SessionState::Ended;
            self.take.ensure(goes_on, "a session that is over goes on")?;
            self.enter_session(session, revision)?;
        }
        let mut before = (Tick(0), 0);
        for (mut session, (end, detail)) in Vec::<(Session, (SessionEnd, Arc<str>))>::read(&mut self.take)? {
            (session.end, session.detail) = (Some(end), detail);
            let after = (session.changed_at, session.revision);
            let in_order = session.state == SessionState::Ended && after.0 >= before.0 && after.1 > before.1;
            self.take.ensure(in_order, "ended sessions are not in their order")?;
            before = after;
            self.enter_session(session, revision)?;
        }
        self.state.sessions.set_revision(revision);
        Ok(())
    }

    fn enter_session(&mut self, session: Session, revision: u64) -> Result<(), RestoreError> {
        let (state, take) = (&mut self.state, &self.take);
        let is_new = state.session(&session.id).is_none();
        let newest = state.sessions.since(session.revision - 1).next();
        let is_free = newest.is_none_or(|other| other.revision != session.revision);
        take.ensure(is_new && is_free, "a session stands twice")?;
        take.ensure(session.revision <= revision, "a session changed after the last change")?;
        let goes_on = session.state != SessionState::Ended;
        let taken = goes_on && state.session_under(session.key, session.intent.target.kind()).is_some();
        take.ensure(!taken, "two sessions have one key")?;
        take.ensure(could_be(&session, state.last_fence), "a session cannot have come there like this")?;
        take.ensure(state.holds_what_it_should(&session), "a session does not hold what it is said to")?;
        state.sessions.enter(session);
        Ok(())
    }
}

/// Whether what is said of a session goes together.
fn could_be(session: &Session, last_fence: Fence) -> bool {
    let was_taken = session.worker.is_some();
    let has_right_slot = session.slot.is_some() == (was_taken && session.intent.target.needs_tuner());
    let knows_guard = session.worker.as_ref().is_none_or(|(_, guard)| *guard <= last_fence);
    let came_in_order = session.changed_at >= session.accepted_at;
    let is_plain = session.process.is_empty();
    has_right_slot
        && knows_guard
        && came_in_order
        && match session.state {
            SessionState::New => !was_taken && is_plain && session.changed_at == session.accepted_at,
            SessionState::Starting => was_taken && is_plain,
            SessionState::Running | SessionState::Stopping => was_taken,
            SessionState::Ended => was_taken || is_plain,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A code that moves would give old checkpoints another meaning.
    #[test]
    fn session_state_and_end_codes_are_stable() {
        assert_eq!(SessionState::ALL.map(|state| state as u8), [0, 1, 2, 3, 4]);
        assert_eq!(SessionEnd::ALL.map(|end| end as u8), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
