//! Records what happened to a session.

use std::sync::Arc;

use crate::kernel::event::IssuedLease;
use crate::kernel::intent::{
    IntentAcceptance, IntentEvent, IntentSession, IntentSessionEnd, IntentSessionState, LEADER_LOCK,
    ORCHESTRATOR_PRINCIPAL, tuner_slot,
};
use crate::kernel::state::apply::ensure;
use crate::kernel::state::{ApplyError, KernelState};
use crate::rules::{has_duration, is_expired, is_storable_text};
use crate::value::{Fence, Holder, LeaseMode, Tick};

impl KernelState {
    pub(in crate::kernel) fn apply_intent(&mut self, event: &IntentEvent) -> Result<(), ApplyError> {
        let (id, at, next) = (event.session(), event.occurred_at(), event.next_state());
        if let IntentEvent::Accepted(accepted) = event {
            return self.apply_accepted(accepted);
        }
        let session = self.intent_sessions.get(id).ok_or(ApplyError("there is no such session"))?;
        ensure(session.state.successors().contains(&next), "the session was not where this can follow")?;
        match event {
            IntentEvent::Accepted(_) => {}
            IntentEvent::Starting { worker, leader: guard, slot, .. } => {
                let mut started = session.clone();
                started.state = next;
                started.worker = Some((worker.clone(), *guard));
                started.slot = *slot;
                let requires_slot = session.intent.target.requires_tuner();
                ensure(requires_slot == slot.is_some(), "it has a tuner and needs none, or needs one")?;
                ensure(self.holds_required_leases(&started), "it starts without its leases")?;
                ensure(self.is_leader_fence_of(*guard, worker, at), "its worker does not hold the guard")?;
                self.intent_sessions.update(id, at, |session| *session = started);
            }
            IntentEvent::Running { process, .. } => {
                ensure(is_storable_text(process), "its processes are called what cannot be stored")?;
                self.intent_sessions.update(id, at, |session| {
                    session.state = next;
                    session.process = process.clone();
                });
            }
            IntentEvent::Stopping { .. } => {
                self.intent_sessions.update(id, at, |session| session.state = next)
            }
            IntentEvent::Ended { end, detail, .. } => {
                ensure(is_storable_text(detail), "its end is told in what cannot be stored")?;
                self.end_intent_session(id, at, *end, detail);
            }
        }
        Ok(())
    }

    /// A session gets leases before it is taken and at no other time, on what it needs and on nothing else.
    pub(in crate::kernel) fn check_intent_session_lease_issued(
        &self,
        issued: &IssuedLease,
    ) -> Result<(), ApplyError> {
        let Some(session) = self.intent_sessions.get(&issued.holder) else { return Ok(()) };
        let target = &session.intent.target;
        let is_needed = || {
            let is_tuner = target.requires_tuner() && tuner_slot(&issued.resource).is_some();
            is_tuner || target.resource() == issued.resource
        };
        let is_right = session.state == IntentSessionState::New
            && issued.principal.as_str() == ORCHESTRATOR_PRINCIPAL
            && issued.terms.mode == LeaseMode::Exclusive
            && is_needed();
        ensure(is_right, "its holder is a session, and has no use for it")
    }

    /// Nobody waits under the name of a session.
    pub(in crate::kernel) fn check_not_an_intent_session(&self, holder: &Holder) -> Result<(), ApplyError> {
        ensure(self.intent_sessions.get(holder).is_none(), "its holder is a session, which never waits")
    }

    fn is_leader_fence_of(&self, fence: Fence, worker: &Holder, at: Tick) -> bool {
        self.find_lease(fence).is_some_and(|lease| {
            self.resource_name(lease.resource).as_str() == LEADER_LOCK
                && lease.terms.mode == LeaseMode::Exclusive
                && self.holder_name(lease.holder) == worker
                && !is_expired(at.0, lease.terms.expires_at.0)
        })
    }

    fn end_intent_session(&mut self, id: &Holder, at: Tick, end: IntentSessionEnd, detail: &Arc<str>) {
        self.intent_sessions.update(id, at, |session| {
            session.state = IntentSessionState::Ended;
            session.end = Some(end);
            session.detail = detail.clone();
        });
    }

    fn apply_accepted(&mut self, accepted: &IntentAcceptance) -> Result<(), ApplyError> {
        ensure(self.intent_sessions.get(&accepted.session).is_none(), "there is such a session already")?;
        self.check_not_a_file_session(&accepted.session)?;
        let other = self.intent_sessions.by_key(accepted.key, accepted.intent.target.kind());
        ensure(other.is_none(), "its key leads to another session")?;
        ensure(has_duration(accepted.at.0, accepted.start_by.0), "it leaves a worker no time")?;
        ensure(accepted.intent.check().is_ok(), "it wants what cannot be wanted")?;
        let session = IntentSession {
            id: accepted.session.clone(),
            intent: accepted.intent.clone(),
            key: accepted.key,
            principal: accepted.principal.clone(),
            state: IntentSessionState::New,
            revision: self.intent_sessions.revision() + 1,
            accepted_at: accepted.at,
            start_by: accepted.start_by,
            changed_at: accepted.at,
            worker: None,
            slot: None,
            process: Arc::from(""),
            end: None,
            detail: Arc::from(""),
        };
        ensure(self.holds_required_leases(&session), "somebody else has its name")?;
        self.intent_sessions.insert(session);
        Ok(())
    }
}
