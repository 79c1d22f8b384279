//! Sessions as bytes and back.

use super::bytes::{Put, Take};
use super::restore::Restoring;
use super::{RestoreError, WITH_SESSIONS};
use crate::kernel::intent::{Intent, IntentKey, Session, SessionEnd, SessionState, Target};
use crate::kernel::name::{Holder, Principal};
use crate::kernel::state::State;
use crate::kernel::value::{Fence, Tick};
use crate::rules::names::check_name;

/// The fewest bytes that a session has: those of its key, two for each of four names, one for each of eleven others.
const LEAST: usize = 32 + 2 * 4 + 11;

impl Put<'_> {
    /// All sessions: how many changes there were, those that go on by their names, those that are over by their ends.
    pub(super) fn sessions(&mut self, state: &State) {
        self.number(state.sessions.revision());
        let going = || state.sessions.iter().filter(|session| session.state != SessionState::Ended);
        self.count(going().count());
        going().for_each(|session| self.session(session, state.now));
        self.count(state.sessions.over().count());
        state.sessions.over().for_each(|session| self.session(session, state.now));
    }

    fn session(&mut self, session: &Session, now: Tick) {
        self.text(session.id.as_str());
        match &session.intent.target {
            Target::Service(service) => {
                self.byte(0);
                self.text(service);
            }
            Target::Recording { id, start_ms } => {
                self.byte(1);
                self.text(id);
                self.number(*start_ms);
            }
        }
        self.text(&session.intent.profile);
        self.text(&session.intent.params);
        self.text(&session.intent.correlation);
        self.bytes(&session.key.0);
        self.text(session.principal.as_str());
        self.byte(code_of_state(session.state));
        self.number(session.revision);
        self.past(session.accepted_at, now);
        self.number(session.start_by.since(session.accepted_at).0);
        self.past(session.changed_at, now);
        self.byte(u8::from(session.worker.is_some()));
        if let Some((worker, guard)) = &session.worker {
            self.text(worker.as_str());
            self.number(guard.0);
        }
        self.number(session.slot.map_or(0, |slot| u64::from(slot) + 1));
        self.text(&session.process);
        if let Some(end) = session.end {
            self.byte(code_of_session_end(end));
            self.text(&session.detail);
        }
    }
}

impl Restoring<'_> {
    pub(super) fn sessions(&mut self) -> Result<(), RestoreError> {
        let revision = self.take.number()?;
        let mut before: Option<Holder> = None;
        for _ in 0..self.take.count(LEAST)? {
            let session = self.take.session(self.state.now)?;
            let goes_on = session.state != SessionState::Ended;
            self.take.ensure(goes_on, "a session that is over goes on")?;
            let ascends = before.is_none_or(|before| before < session.id);
            self.take.ensure(ascends, "sessions are not in their order")?;
            before = Some(session.id.clone());
            self.enter_session(session, revision)?;
        }
        let mut before = (Tick(0), 0);
        for _ in 0..self.take.count(LEAST)? {
            let session = self.take.session(self.state.now)?;
            let after = (session.changed_at, session.revision);
            let in_order = session.state == SessionState::Ended && after.0 >= before.0 && after.1 > before.1;
            self.take.ensure(in_order, "ended sessions are not in their order")?;
            before = after;
            self.enter_session(session, revision)?;
        }
        self.state.sessions.set_revision(revision);
        // One state has one form: what an older one says is not said in the newest.
        self.take.ensure(revision > 0 || self.version > WITH_SESSIONS, "it needs no such form")
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

impl Take<'_> {
    fn session(&mut self, now: Tick) -> Result<Session, RestoreError> {
        let id = self.name(Holder::parse)?;
        let target = match self.byte()? {
            0 => Target::Service(self.text()?.into()),
            1 => Target::Recording { id: self.text()?.into(), start_ms: self.number()? },
            _ => return Err(self.damaged("a session shows neither a channel nor a recording")),
        };
        let intent = Intent {
            target,
            profile: self.text()?.into(),
            params: self.text()?.into(),
            correlation: self.text()?.into(),
        };
        self.ensure(intent.check().is_ok(), "a session wants what cannot be wanted")?;
        let key = IntentKey(self.array()?);
        let principal = self.name(Principal::parse)?;
        let code = self.byte()?;
        let state = SessionState::ALL.into_iter().find(|state| code_of_state(*state) == code);
        let state = state.ok_or_else(|| self.damaged("a session is nowhere"))?;
        let revision = self.number()?;
        self.ensure(revision > 0, "a session never began")?;
        let accepted_at = self.past(now)?;
        let start_by = Tick(self.after(accepted_at.0)?);
        let changed_at = self.past(now)?;
        let worker = match self.byte()? {
            0 => None,
            1 => Some((self.name(Holder::parse)?, Fence(self.number()?))),
            _ => return Err(self.damaged("nothing says whether a session has a worker")),
        };
        let slot = match self.number()? {
            0 => None,
            number => Some(u32::try_from(number - 1).map_err(|_| self.damaged("a tuner is too large"))?),
        };
        let process = self.detail()?;
        let (end, detail) = match state {
            SessionState::Ended => (Some(self.session_end()?), self.detail()?),
            _ => (None, "".into()),
        };
        Ok(Session {
            id,
            intent,
            key,
            principal,
            state,
            revision,
            accepted_at,
            start_by,
            changed_at,
            worker,
            slot,
            process,
            end,
            detail,
        })
    }

    fn session_end(&mut self) -> Result<SessionEnd, RestoreError> {
        let code = self.byte()?;
        let found = SessionEnd::ALL.into_iter().find(|end| code_of_session_end(*end) == code);
        found.ok_or_else(|| self.damaged("a session ended in an unknown way"))
    }

    /// A text for people, which may be empty.
    fn detail(&mut self) -> Result<std::sync::Arc<str>, RestoreError> {
        let text = self.text()?;
        let fits = text.is_empty() || check_name("detail", text).is_ok();
        self.ensure(fits, "a text for people is none")?;
        Ok(text.into())
    }
}

fn code_of_state(state: SessionState) -> u8 {
    match state {
        SessionState::New => 0,
        SessionState::Starting => 1,
        SessionState::Running => 2,
        SessionState::Stopping => 3,
        SessionState::Ended => 4,
    }
}

fn code_of_session_end(end: SessionEnd) -> u8 {
    match end {
        SessionEnd::Busy => 0,
        SessionEnd::NoTuner => 1,
        SessionEnd::NoWorker => 2,
        SessionEnd::Stopped => 3,
        SessionEnd::Completed => 4,
        SessionEnd::Failed => 5,
        SessionEnd::LeaseLost => 6,
        SessionEnd::WorkerRestarted => 7,
        SessionEnd::WorkerStopped => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A code that moves would give old checkpoints another meaning.
    #[test]
    fn codes_stay_what_they_are() {
        assert_eq!(SessionState::ALL.map(code_of_state), [0, 1, 2, 3, 4]);
        assert_eq!(SessionEnd::ALL.map(code_of_session_end), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
