//! The sessions: those that go on, those that ended last, and under which key each is found.

mod apply;
mod holdings;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::State;
use crate::kernel::intent::{IntentKey, Session, SessionState, TargetKind};
use crate::kernel::limits::{SESSION_BYTES_KEPT, SESSION_KEPT, SESSIONS_KEPT};
use crate::kernel::name::Holder;
use crate::kernel::value::Tick;
use crate::rules::time::is_over;

#[derive(Debug, Clone, Default)]
pub(crate) struct Sessions {
    by_id: BTreeMap<Holder, Session>,
    /// Of those that go on.
    keys: BTreeMap<(IntentKey, TargetKind), Holder>,
    /// Of those that no worker has taken.
    deadlines: BTreeSet<(Tick, Holder)>,
    by_revision: BTreeMap<u64, Holder>,
    /// Those that are over, oldest end first.
    over: VecDeque<(Tick, Holder)>,
    revision: u64,
    /// About how large those are that go on.
    live_bytes: usize,
    /// About how large those are that are over.
    over_bytes: usize,
}

impl Sessions {
    /// Whether there never was one that is still remembered.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(crate) fn get(&self, id: &Holder) -> Option<&Session> {
        self.by_id.get(id)
    }

    pub(crate) fn under(&self, key: IntentKey, kind: TargetKind) -> Option<&Session> {
        self.keys.get(&(key, kind)).and_then(|id| self.by_id.get(id))
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
            SessionState::Ended => {
                self.over_bytes += session.bytes();
                self.over.push_back((session.changed_at, session.id.clone()));
            }
            state => {
                self.keys.insert((session.key, session.intent.target.kind()), session.id.clone());
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
        self.keys.remove(&(session.key, session.intent.target.kind()));
        self.deadlines.remove(&(session.start_by, id.clone()));
        self.live_bytes -= session.bytes();
        change(&mut session);
        session.changed_at = at;
        session.revision = self.revision + 1;
        self.enter(session);
    }

    /// Drops those that ended long ago, and the oldest of too many.
    fn forget(&mut self, now: Tick) {
        while let Some((ended_at, id)) = self.over.front() {
            let kept = !is_over(now.0, ended_at.saturating_add(SESSION_KEPT).0);
            if kept && self.over.len() <= SESSIONS_KEPT && self.over_bytes <= SESSION_BYTES_KEPT {
                break;
            }
            if let Some(session) = self.by_id.remove(id) {
                self.by_revision.remove(&session.revision);
                self.over_bytes -= session.bytes();
            }
            self.over.pop_front();
        }
    }
}

impl State {
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

    pub fn sessions_revision(&self) -> u64 {
        self.sessions.revision()
    }

    pub(crate) fn has_sessions(&self) -> bool {
        !self.sessions.is_empty()
    }

    /// The session that goes on under a key, for a target of this kind.
    pub(crate) fn session_under(&self, key: IntentKey, kind: TargetKind) -> Option<&Session> {
        self.sessions.under(key, kind)
    }

    /// How many sessions go on, and about how large they are.
    pub(crate) fn live_sessions(&self) -> (usize, usize) {
        self.sessions.live()
    }

    /// The sessions that have waited too long for a worker at `now`.
    pub(crate) fn overdue_sessions(&self, now: Tick) -> impl Iterator<Item = &Session> {
        self.sessions.overdue(now)
    }

    pub(super) fn forget_sessions(&mut self) {
        self.sessions.forget(self.now);
    }
}
