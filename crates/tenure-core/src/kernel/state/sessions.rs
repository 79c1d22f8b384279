//! The sessions: those that go on, those that ended last, and under which key each is found.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::{Misfit, State};
use crate::kernel::intent::{Accepted, IntentEvent, IntentKey, Session, SessionEnd, SessionState};
use crate::kernel::limits::{SESSION_KEPT, SESSIONS_KEPT};
use crate::kernel::name::Holder;
use crate::kernel::value::Tick;
use crate::rules::time::{is_over, lasts};

/// Everything that is known of sessions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sessions {
    by_id: BTreeMap<Holder, Session>,
    /// Of those that go on.
    keys: BTreeMap<IntentKey, Holder>,
    /// Of those that no worker has taken.
    deadlines: BTreeSet<(Tick, Holder)>,
    by_revision: BTreeMap<u64, Holder>,
    /// Those that are over, oldest end first.
    over: VecDeque<(Tick, Holder)>,
    revision: u64,
    /// About how large those are that go on.
    live_bytes: usize,
}

impl Sessions {
    /// Whether there never was one that is still remembered.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(crate) fn get(&self, id: &Holder) -> Option<&Session> {
        self.by_id.get(id)
    }

    /// The session that goes on under a key.
    pub(crate) fn under(&self, key: IntentKey) -> Option<&Session> {
        self.keys.get(&key).and_then(|id| self.by_id.get(id))
    }

    /// How many go on, and about how large they are.
    pub(crate) fn live(&self) -> (usize, usize) {
        (self.keys.len(), self.live_bytes)
    }

    /// The first moment at which a session has waited too long for a worker.
    pub(crate) fn next_deadline(&self) -> Option<Tick> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Those that have waited too long at `now`, the longest first.
    pub(crate) fn overdue(&self, now: Tick) -> impl Iterator<Item = &Session> {
        let overdue = self.deadlines.iter().take_while(move |(at, _)| is_over(now.0, at.0));
        overdue.filter_map(|(_, id)| self.by_id.get(id))
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Every session, by its name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.by_id.values()
    }

    /// Those that changed after `revision`, the last change last.
    pub(crate) fn since(&self, revision: u64) -> impl Iterator<Item = &Session> {
        let later = self.by_revision.range(revision.saturating_add(1)..);
        later.filter_map(|(_, id)| self.by_id.get(id))
    }

    /// Those that are over, oldest end first.
    pub(crate) fn over(&self) -> impl Iterator<Item = &Session> {
        self.over.iter().filter_map(|(_, id)| self.by_id.get(id))
    }

    /// Puts one in as it is, with everything that leads to it. Its revision is nobody else's.
    pub(crate) fn enter(&mut self, session: Session) {
        match session.state {
            SessionState::Ended => self.over.push_back((session.changed_at, session.id.clone())),
            state => {
                self.keys.insert(session.key, session.id.clone());
                self.live_bytes += session.bytes();
                if state == SessionState::New {
                    self.deadlines.insert((session.start_by, session.id.clone()));
                }
            }
        }
        self.revision = self.revision.max(session.revision);
        self.by_revision.insert(session.revision, session.id.clone());
        self.by_id.insert(session.id.clone(), session);
    }

    /// Raises the number of changes to what it was: the last change may be of one that is forgotten.
    pub(crate) fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }

    fn change(&mut self, id: &Holder, at: Tick, change: impl FnOnce(&mut Session)) {
        let Some(mut session) = self.by_id.remove(id) else { return };
        self.by_revision.remove(&session.revision);
        self.keys.remove(&session.key);
        self.deadlines.remove(&(session.start_by, id.clone()));
        self.live_bytes -= session.bytes();
        change(&mut session);
        session.changed_at = at;
        session.revision = self.revision + 1;
        self.enter(session);
    }

    fn forget(&mut self, now: Tick) {
        while let Some((ended_at, id)) = self.over.front() {
            let kept = !is_over(now.0, ended_at.saturating_add(SESSION_KEPT).0);
            if kept && self.over.len() <= SESSIONS_KEPT {
                break;
            }
            if let Some(session) = self.by_id.remove(id) {
                self.by_revision.remove(&session.revision);
            }
            self.over.pop_front();
        }
    }
}

impl State {
    /// A session, if it is known or remembered.
    pub fn session(&self, id: &Holder) -> Option<&Session> {
        self.sessions.get(id)
    }

    /// Every session that is known or remembered, by its name.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.sessions.iter()
    }

    /// The sessions that changed after `revision`, the last change last.
    pub fn sessions_since(&self, revision: u64) -> impl Iterator<Item = &Session> {
        self.sessions.since(revision)
    }

    /// How many changes of sessions there were.
    pub fn sessions_revision(&self) -> u64 {
        self.sessions.revision()
    }

    /// Whether any session is known or remembered.
    pub(crate) fn has_sessions(&self) -> bool {
        !self.sessions.is_empty()
    }

    /// The session that goes on under a key.
    pub(crate) fn session_under(&self, key: IntentKey) -> Option<&Session> {
        self.sessions.under(key)
    }

    /// How many sessions go on, and about how large they are.
    pub(crate) fn live_sessions(&self) -> (usize, usize) {
        self.sessions.live()
    }

    /// The sessions that have waited too long for a worker at `now`.
    pub(crate) fn overdue_sessions(&self, now: Tick) -> impl Iterator<Item = &Session> {
        self.sessions.overdue(now)
    }

    pub(super) fn apply_intent(&mut self, event: &IntentEvent) -> Result<(), Misfit> {
        let id = event.session();
        if let IntentEvent::Accepted(accepted) = event {
            return self.apply_accepted(accepted);
        }
        let session = self.sessions.get(id).ok_or(Misfit("there is no such session"))?;
        let next = event.leads_to();
        ensure(session.state.may_follow().contains(&next), "the session was not where this can follow")?;
        let at = event.at();
        match event {
            IntentEvent::Accepted(_) => {}
            IntentEvent::Starting { worker, guard, slot, .. } => {
                let needs_slot = session.intent.target.needs_tuner();
                ensure(needs_slot == slot.is_some(), "it has a tuner and needs none, or needs one")?;
                let held = self.find_holder(id).map_or(0, |holder| self.leases_of(holder).count());
                ensure(held == 1 + usize::from(needs_slot), "it starts without its leases")?;
                self.sessions.change(id, at, |session| {
                    session.state = next;
                    session.worker = Some((worker.clone(), *guard));
                    session.slot = *slot;
                });
            }
            IntentEvent::Running { process, .. } => self.sessions.change(id, at, |session| {
                session.state = next;
                session.process = process.clone();
            }),
            IntentEvent::Stopping { .. } => self.sessions.change(id, at, |session| session.state = next),
            IntentEvent::Ended { end, detail, .. } => self.end_session(id, at, *end, detail),
        }
        Ok(())
    }

    fn end_session(&mut self, id: &Holder, at: Tick, end: SessionEnd, detail: &Arc<str>) {
        self.sessions.change(id, at, |session| {
            session.state = SessionState::Ended;
            session.end = Some(end);
            session.detail = detail.clone();
        });
    }

    fn apply_accepted(&mut self, accepted: &Accepted) -> Result<(), Misfit> {
        ensure(self.sessions.get(&accepted.session).is_none(), "there is such a session already")?;
        ensure(self.sessions.under(accepted.key).is_none(), "its key leads to another session")?;
        ensure(lasts(accepted.at.0, accepted.start_by.0), "it leaves a worker no time")?;
        ensure(accepted.intent.check().is_ok(), "it wants what cannot be wanted")?;
        let revision = self.sessions.revision() + 1;
        self.sessions.enter(Session {
            id: accepted.session.clone(),
            intent: accepted.intent.clone(),
            key: accepted.key,
            principal: accepted.principal.clone(),
            state: SessionState::New,
            revision,
            accepted_at: accepted.at,
            start_by: accepted.start_by,
            changed_at: accepted.at,
            worker: None,
            slot: None,
            process: Arc::from(""),
            end: None,
            detail: Arc::from(""),
        });
        Ok(())
    }

    /// Drops sessions that need not be remembered any longer.
    pub(super) fn forget_sessions(&mut self) {
        self.sessions.forget(self.now);
    }

    /// A session and its leases never disagree, and each that goes on is found by its key.
    pub(super) fn invariant_sessions_hold_what_they_are_said_to(&self) -> Result<(), String> {
        for session in self.sessions.iter() {
            let (id, state) = (&session.id, session.state);
            let held = self.find_holder(id).map_or(0, |holder| self.leases_of(holder).count());
            let right = match state {
                SessionState::New => held <= 1,
                SessionState::Ended => held == 0,
                _ => held == session.leases_needed(),
            };
            super::ensure(right, || format!("{id} is {} with {held} leases", state.as_str()))?;
            let found = self.sessions.under(session.key).is_some_and(|found| found.id == *id);
            let goes_on = state != SessionState::Ended;
            super::ensure(found == goes_on, || format!("{id} is found by its key: {found}"))?;
            super::ensure(session.end.is_none() == goes_on, || format!("{id} is over without an end"))?;
            super::ensure(session.worker.is_some() || !state.is_taken(), || format!("{id} has no worker"))?;
        }
        let (live, bytes) = self.sessions.live();
        let going = || self.sessions.iter().filter(|session| session.state != SessionState::Ended);
        super::ensure(live == going().count(), || "sessions and their keys differ in count".into())?;
        let counted = going().map(Session::bytes).sum::<usize>();
        super::ensure(bytes == counted, || "the size of sessions is counted wrongly".into())?;
        let over = self.sessions.over().count();
        super::ensure(live + over == self.sessions.iter().count(), || "an ended session is not queued".into())
    }
}

fn ensure(holds: bool, otherwise: &'static str) -> Result<(), Misfit> {
    if holds { Ok(()) } else { Err(Misfit(otherwise)) }
}
