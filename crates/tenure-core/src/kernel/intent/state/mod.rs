//! State of the intents API: active sessions, recently ended ones, and the key of each.

mod apply;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::kernel::intent::{
    IntentKey, IntentSession, IntentSessionState, IntentTargetKind, ORCHESTRATOR_PRINCIPAL, tuner_resource,
};
use crate::kernel::state::{KernelState, ensure};
use crate::rules::is_expired;
use crate::value::{
    Holder, INTENT_SESSION_RETENTION, LeaseMode, MAX_ENDED_INTENT_SESSION_BYTES, MAX_ENDED_INTENT_SESSIONS,
    Resource, Tick,
};

#[derive(Debug, Clone, Default)]
pub(in crate::kernel) struct IntentSessionStore {
    by_id: BTreeMap<Holder, IntentSession>,
    /// Of those that go on.
    keys: BTreeMap<(IntentKey, IntentTargetKind), Holder>,
    /// Of those that no worker has taken.
    deadlines: BTreeSet<(Tick, Holder)>,
    by_revision: BTreeMap<u64, Holder>,
    /// Those that are over, oldest end first.
    ended: VecDeque<(Tick, Holder)>,
    revision: u64,
    /// About how large those are that go on.
    active_bytes: usize,
    /// About how large those are that are over.
    ended_bytes: usize,
}

impl IntentSessionStore {
    /// Whether there never was one that is still remembered.
    pub(in crate::kernel) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(in crate::kernel) fn get(&self, id: &Holder) -> Option<&IntentSession> {
        self.by_id.get(id)
    }

    pub(in crate::kernel) fn by_key(&self, key: IntentKey, kind: IntentTargetKind) -> Option<&IntentSession> {
        self.keys.get(&(key, kind)).and_then(|id| self.by_id.get(id))
    }

    /// How many go on, and about how large they are.
    pub(in crate::kernel) fn active_count_and_size(&self) -> (usize, usize) {
        (self.keys.len(), self.active_bytes)
    }

    /// The first moment at which a session has waited too long for a worker.
    pub(in crate::kernel) fn next_deadline(&self) -> Option<Tick> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Those that have waited too long at `now`, the longest first.
    pub(in crate::kernel) fn overdue(&self, now: Tick) -> impl Iterator<Item = &IntentSession> {
        let overdue = self.deadlines.iter().take_while(move |(at, _)| is_expired(now.0, at.0));
        overdue.filter_map(|(_, id)| self.by_id.get(id))
    }

    pub(in crate::kernel) fn revision(&self) -> u64 {
        self.revision
    }

    /// Every session, by its name.
    pub(in crate::kernel) fn iter(&self) -> impl Iterator<Item = &IntentSession> {
        self.by_id.values()
    }

    /// Those that changed after `revision`, the last change last.
    pub(in crate::kernel) fn changed_since(&self, revision: u64) -> impl Iterator<Item = &IntentSession> {
        let later = self.by_revision.range(revision.saturating_add(1)..);
        later.filter_map(|(_, id)| self.by_id.get(id))
    }

    /// Those that are over, oldest end first.
    pub(in crate::kernel) fn ended(&self) -> impl Iterator<Item = &IntentSession> {
        self.ended.iter().filter_map(|(_, id)| self.by_id.get(id))
    }

    /// Puts one in as it is, with everything that leads to it. Its revision is nobody else's.
    pub(in crate::kernel) fn insert(&mut self, session: IntentSession) {
        match session.state {
            IntentSessionState::Ended => {
                self.ended_bytes += session.byte_size();
                self.ended.push_back((session.changed_at, session.id.clone()));
            }
            state => {
                self.keys.insert((session.key, session.intent.target.kind()), session.id.clone());
                self.active_bytes += session.byte_size();
                if state == IntentSessionState::New {
                    self.deadlines.insert((session.start_by, session.id.clone()));
                }
            }
        }
        self.revision = self.revision.max(session.revision);
        self.by_revision.insert(session.revision, session.id.clone());
        self.by_id.insert(session.id.clone(), session);
    }

    /// Raises the number of changes to what it was: the last change may be of one that is forgotten.
    pub(in crate::kernel) fn set_revision(&mut self, revision: u64) {
        self.revision = revision;
    }

    fn update(&mut self, id: &Holder, at: Tick, change: impl FnOnce(&mut IntentSession)) {
        let Some(mut session) = self.by_id.remove(id) else { return };
        self.by_revision.remove(&session.revision);
        self.keys.remove(&(session.key, session.intent.target.kind()));
        self.deadlines.remove(&(session.start_by, id.clone()));
        self.active_bytes -= session.byte_size();
        change(&mut session);
        session.changed_at = at;
        session.revision = self.revision + 1;
        self.insert(session);
    }

    /// Drops those that ended long ago, and the oldest of too many.
    fn forget(&mut self, now: Tick) {
        while let Some((ended_at, id)) = self.ended.front() {
            let kept = !is_expired(now.0, ended_at.saturating_add(INTENT_SESSION_RETENTION).0);
            if kept
                && self.ended.len() <= MAX_ENDED_INTENT_SESSIONS
                && self.ended_bytes <= MAX_ENDED_INTENT_SESSION_BYTES
            {
                break;
            }
            if let Some(session) = self.by_id.remove(id) {
                self.by_revision.remove(&session.revision);
                self.ended_bytes -= session.byte_size();
            }
            self.ended.pop_front();
        }
    }
}

impl KernelState {
    pub fn intent_session(&self, id: &Holder) -> Option<&IntentSession> {
        self.intent_sessions.get(id)
    }

    /// Every session that is known or remembered, by its name.
    pub fn intent_sessions(&self) -> impl Iterator<Item = &IntentSession> {
        self.intent_sessions.iter()
    }

    /// The sessions that changed after `revision`, the last change last.
    pub fn intent_sessions_since(&self, revision: u64) -> impl Iterator<Item = &IntentSession> {
        self.intent_sessions.changed_since(revision)
    }

    pub fn intent_sessions_revision(&self) -> u64 {
        self.intent_sessions.revision()
    }

    pub(in crate::kernel) fn has_intent_sessions(&self) -> bool {
        !self.intent_sessions.is_empty()
    }

    /// The session that goes on under a key, for a target of this kind.
    pub(in crate::kernel) fn intent_session_by_key(
        &self,
        key: IntentKey,
        kind: IntentTargetKind,
    ) -> Option<&IntentSession> {
        self.intent_sessions.by_key(key, kind)
    }

    /// How many sessions go on, and about how large they are.
    pub(in crate::kernel) fn active_intent_session_count_and_size(&self) -> (usize, usize) {
        self.intent_sessions.active_count_and_size()
    }

    /// The sessions that have waited too long for a worker at `now`.
    pub(in crate::kernel) fn overdue_intent_sessions(
        &self,
        now: Tick,
    ) -> impl Iterator<Item = &IntentSession> {
        self.intent_sessions.overdue(now)
    }

    pub(in crate::kernel) fn forget_intent_sessions(&mut self) {
        self.intent_sessions.forget(self.now());
    }
}

impl KernelState {
    /// Whether a session holds what one that has come as far holds: nothing or its target before a worker has it, its
    /// target and its tuner then, nothing once it is over. It holds nothing else, and waits for nothing.
    pub(in crate::kernel) fn holds_required_leases(&self, session: &IntentSession) -> bool {
        let Some(holder) = self.find_holder(&session.id) else {
            return !session.state.is_taken();
        };
        let leases: Vec<_> = self.leases_of(holder).collect();
        let is_idle = leases.is_empty() && self.queue_entries_of(holder).next().is_none();
        let is_own = || {
            self.queue_entries_of(holder).next().is_none()
                && self.principal_of(holder).1.as_str() == ORCHESTRATOR_PRINCIPAL
                && leases.iter().all(|lease| lease.terms.mode == LeaseMode::Exclusive)
        };
        let holds =
            |resource: &Resource| leases.iter().any(|lease| self.resource_name(lease.resource) == resource);
        match session.state {
            IntentSessionState::Ended => is_idle,
            IntentSessionState::New => {
                is_idle || (leases.len() == 1 && is_own() && holds(&session.intent.target.resource()))
            }
            IntentSessionState::Starting | IntentSessionState::Running | IntentSessionState::Stopping => {
                leases.len() == session.required_lease_count()
                    && is_own()
                    && holds(&session.intent.target.resource())
                    && session.slot.is_none_or(|slot| holds(&tuner_resource(slot)))
            }
        }
    }

    /// A session and its leases never disagree, and each that goes on is found by its key.
    pub(in crate::kernel) fn invariant_intent_sessions_hold_required_leases(&self) -> Result<(), String> {
        let sessions = &self.intent_sessions;
        for session in sessions.iter() {
            let (id, state) = (&session.id, session.state);
            let held = || self.leases_of_holder(id).map(|lease| lease.resource.clone()).collect::<Vec<_>>();
            let wrong = || format!("{id} is {} and holds {:?}", state.as_str(), held());
            ensure(self.holds_required_leases(session), wrong)?;
            let found = sessions
                .by_key(session.key, session.intent.target.kind())
                .is_some_and(|found| found.id == *id);
            let is_active = state != IntentSessionState::Ended;
            ensure(found == is_active, || format!("{id} is found by its key: {found}"))?;
            ensure(session.end.is_none() == is_active, || format!("{id} is over without an end"))?;
            ensure(session.worker.is_some() || !state.is_taken(), || format!("{id} has no worker"))?;
            let deadline = (session.start_by, id.clone());
            let is_waiting = sessions.deadlines.contains(&deadline);
            ensure(is_waiting == (state == IntentSessionState::New), || {
                format!("{id} waits for a worker: {is_waiting}")
            })?;
            let by_revision = sessions.by_revision.get(&session.revision);
            ensure(by_revision == Some(id), || format!("{id} is not found by its revision"))?;
        }
        let count = sessions.by_id.len();
        let (live, live_bytes) = sessions.active_count_and_size();
        let going = || sessions.iter().filter(|session| session.state != IntentSessionState::Ended);
        ensure(live == going().count(), || "sessions and their keys differ in count".into())?;
        ensure(live + sessions.ended().count() == count, || "an ended session is not queued".into())?;
        ensure(sessions.by_revision.len() == count, || "sessions and revisions differ in count".into())?;
        let counted = going().map(IntentSession::byte_size).sum::<usize>();
        ensure(live_bytes == counted, || "the size of sessions is counted wrongly".into())?;
        let counted = sessions.ended().map(IntentSession::byte_size).sum::<usize>();
        ensure(sessions.ended_bytes == counted, || "the size of ended sessions is counted wrongly".into())
    }
}
