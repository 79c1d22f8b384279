//! What a session holds: the one place that says it, for events, for saved states and for the invariant.

use crate::kernel::intent::{IntentSession, IntentSessionState, ORCHESTRATOR_PRINCIPAL, tuner_resource};
use crate::kernel::mode::LeaseMode;
use crate::kernel::name::Resource;
use crate::kernel::state::{KernelState, ensure};

impl KernelState {
    /// Whether a session holds what one that has come as far holds: nothing or its target before a worker has it, its
    /// target and its tuner then, nothing once it is over. It holds nothing else, and waits for nothing.
    pub(in crate::kernel::state) fn holds_required_leases(&self, session: &IntentSession) -> bool {
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
    pub(in crate::kernel::state) fn invariant_intent_sessions_hold_required_leases(
        &self,
    ) -> Result<(), String> {
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
