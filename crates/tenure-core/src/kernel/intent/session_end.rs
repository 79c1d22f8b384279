//! How sessions end within a decision: with what they hold, and because of what they lost.

use crate::kernel::decision_builder::DecisionBuilder;
use crate::kernel::event::Event;
use crate::kernel::intent::{
    IntentEvent, IntentOutcome, IntentSession, IntentSessionEnd, IntentSessionState, ORCHESTRATOR_PRINCIPAL,
};
use crate::kernel::name::{Holder, Resource};
use crate::kernel::newtypes::{Fence, Tick};
use crate::kernel::state::{LeaseEntry, Slot};
use crate::lease::ReleaseReason;
use crate::rules::time::is_expired;

/// What people read of a session that nobody took.
const NO_WORKER_DETAIL: &str = "no worker took it in time";
/// What people read of a session that lost a lease.
const LEASE_LOST_DETAIL: &str = "a lease of it was lost";

impl<'a> DecisionBuilder<'a> {
    pub(crate) fn end_intent_session(
        &mut self,
        session: &IntentSession,
        end: IntentSessionEnd,
        detail: &str,
    ) -> IntentOutcome {
        self.push_intent_session_end(session, end, detail);
        let reason = match end {
            IntentSessionEnd::Completed => ReleaseReason::Completed,
            IntentSessionEnd::Stopped | IntentSessionEnd::WorkerStopped => ReleaseReason::Voluntary,
            _ => ReleaseReason::Aborted,
        };
        for lease in self.active_leases_of(&session.id) {
            self.release(lease, reason);
        }
        IntentOutcome::Current { state: IntentSessionState::Ended, end: Some(end) }
    }

    /// Says that a session is over. What it holds has to be ended by who says so.
    pub(crate) fn push_intent_session_end(
        &mut self,
        session: &IntentSession,
        end: IntentSessionEnd,
        detail: &str,
    ) {
        self.ended_sessions.insert(session.id.clone(), end);
        self.push(Event::Intent(Box::new(IntentEvent::Ended {
            session: session.id.clone(),
            at: self.now,
            end,
            detail: detail.into(),
        })));
        // What it has lost without anybody saying so would else stay with one that is over.
        self.expire_leases_of(&session.id);
    }

    /// Where a session is, if it is over. One that is over without anybody having said so ends here: no worker took it in
    /// time, or it has lost a lease.
    pub(crate) fn ended_intent_session_outcome(&mut self, session: &IntentSession) -> Option<IntentOutcome> {
        let before = session.end.or_else(|| self.ended_sessions.get(&session.id).copied());
        if let Some(end) = before {
            return Some(IntentOutcome::Current { state: IntentSessionState::Ended, end: Some(end) });
        }
        if session.state == IntentSessionState::New {
            let too_late = is_expired(self.now.0, session.start_by.0);
            return too_late
                .then(|| self.end_intent_session(session, IntentSessionEnd::NoWorker, NO_WORKER_DETAIL));
        }
        let is_whole = self.active_leases_of(&session.id).len() == session.required_lease_count();
        (!is_whole).then(|| self.end_intent_session(session, IntentSessionEnd::LeaseLost, LEASE_LOST_DETAIL))
    }

    /// How many sessions go on, and about how large they are, without those that end in this decision.
    pub(crate) fn active_intent_session_count_and_size(&self) -> (usize, usize) {
        let (live, bytes) = self.state.active_intent_session_count_and_size();
        let ended = self.ended_sessions.keys().filter_map(|id| self.state.intent_session(id));
        (live - self.ended_sessions.len(), bytes - ended.map(IntentSession::byte_size).sum::<usize>())
    }

    /// A session that is taken ends with the first lease that it loses.
    pub(crate) fn end_orphaned_sessions(&mut self) {
        while let Some(holder) = self.orphaned_sessions.pop_first() {
            let state = self.state;
            if let Some(session) = state.intent_session(&holder)
                && session.state.is_taken()
            {
                self.ended_intent_session_outcome(session);
            }
        }
    }

    /// Notes whose lease ended, where that may be a session's.
    pub(crate) fn record_lost_lease(&mut self, lease: &LeaseEntry) {
        if self.state.has_intent_sessions()
            && self.state.principal_of(lease.holder).1.as_str() == ORCHESTRATOR_PRINCIPAL
        {
            self.orphaned_sessions.insert(self.state.holder_name(lease.holder).clone());
        }
    }

    /// Ends at most `max` sessions that have waited too long for a worker. Says whether there are more.
    pub(crate) fn sweep_intent_sessions(&mut self, max: usize) -> bool {
        let mut overdue = self.state.overdue_intent_sessions(self.now);
        for session in overdue.by_ref().take(max) {
            self.ended_intent_session_outcome(session);
        }
        overdue.next().is_some()
    }

    /// What a holder has, here and now, oldest first.
    pub(crate) fn active_leases_of(&self, holder: &Holder) -> Vec<&'a LeaseEntry> {
        let state = self.state;
        let slot: Option<Slot> = state.find_holder(holder);
        let leases = slot.into_iter().flat_map(|slot| state.leases_of(slot));
        let mut living: Vec<_> = leases.filter(|lease| self.is_active(lease)).collect();
        // Where they lie in memory must not show in the ledger.
        living.sort_unstable_by_key(|lease| lease.fence);
        living
    }

    /// On what a lease is, and when it is over, with what this decision has given it.
    pub(crate) fn expiry_and_resource_of(&self, fence: Fence) -> Option<(Tick, &Resource)> {
        let renewed = self.events().iter().rev().find_map(|event| match event {
            Event::Renewed { lease, expires_at, .. } if *lease == fence => Some(*expires_at),
            _ => None,
        });
        let issued = self.grants().find(|issued| issued.fence == fence);
        if let Some(issued) = issued {
            return Some((issued.expires_at, &issued.resource));
        }
        let lease = self.state.find_lease(fence)?;
        Some((renewed.unwrap_or(lease.terms.expires_at), self.state.resource_name(lease.resource)))
    }

    pub(crate) fn expire_leases_of(&mut self, holder: &Holder) {
        let Some(slot) = self.state.find_holder(holder) else { return };
        let mut leases: Vec<_> = self.state.leases_of(slot).collect();
        leases.sort_unstable_by_key(|lease| lease.fence);
        leases.into_iter().for_each(|lease| self.expire_if_due(lease));
    }
}
