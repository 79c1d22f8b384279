//! Records what happened to a session.

use std::sync::Arc;

use crate::kernel::event::Issued;
use crate::kernel::intent::{
    Accepted, GUARD, IntentEvent, ORCHESTRATOR, Session, SessionEnd, SessionState, slot_of,
};
use crate::kernel::mode::Mode;
use crate::kernel::name::Holder;
use crate::kernel::state::apply::ensure;
use crate::kernel::state::{Misfit, State};
use crate::kernel::value::{Fence, Tick};
use crate::rules::names::is_text;
use crate::rules::time::{is_over, lasts};

impl State {
    pub(in crate::kernel::state) fn apply_intent(&mut self, event: &IntentEvent) -> Result<(), Misfit> {
        let (id, at, next) = (event.session(), event.at(), event.leads_to());
        if let IntentEvent::Accepted(accepted) = event {
            return self.apply_accepted(accepted);
        }
        let session = self.sessions.get(id).ok_or(Misfit("there is no such session"))?;
        ensure(session.state.may_follow().contains(&next), "the session was not where this can follow")?;
        match event {
            IntentEvent::Accepted(_) => {}
            IntentEvent::Starting { worker, guard, slot, .. } => {
                let mut started = session.clone();
                started.state = next;
                started.worker = Some((worker.clone(), *guard));
                started.slot = *slot;
                let needs_slot = session.intent.target.needs_tuner();
                ensure(needs_slot == slot.is_some(), "it has a tuner and needs none, or needs one")?;
                ensure(self.holds_what_it_should(&started), "it starts without its leases")?;
                ensure(self.is_guard_of(*guard, worker, at), "its worker does not hold the guard")?;
                self.sessions.change(id, at, |session| *session = started);
            }
            IntentEvent::Running { process, .. } => {
                ensure(is_text(process), "its processes are called what cannot be stored")?;
                self.sessions.change(id, at, |session| {
                    session.state = next;
                    session.process = process.clone();
                });
            }
            IntentEvent::Stopping { .. } => self.sessions.change(id, at, |session| session.state = next),
            IntentEvent::Ended { end, detail, .. } => {
                ensure(is_text(detail), "its end is told in what cannot be stored")?;
                self.end_session(id, at, *end, detail);
            }
        }
        Ok(())
    }

    /// A session gets leases before it is taken and at no other time, on what it needs and on nothing else.
    pub(in crate::kernel::state) fn check_issue_to_session(&self, issued: &Issued) -> Result<(), Misfit> {
        let Some(session) = self.sessions.get(&issued.holder) else { return Ok(()) };
        let target = &session.intent.target;
        let is_needed = || {
            let is_tuner = target.needs_tuner() && slot_of(&issued.resource).is_some();
            is_tuner || target.resource() == issued.resource
        };
        let is_right = session.state == SessionState::New
            && issued.principal.as_str() == ORCHESTRATOR
            && issued.mode == Mode::Exclusive
            && is_needed();
        ensure(is_right, "its holder is a session, and has no use for it")
    }

    /// Nobody waits under the name of a session.
    pub(in crate::kernel::state) fn check_is_no_session(&self, holder: &Holder) -> Result<(), Misfit> {
        ensure(self.sessions.get(holder).is_none(), "its holder is a session, which never waits")
    }

    fn is_guard_of(&self, fence: Fence, worker: &Holder, at: Tick) -> bool {
        self.find_lease(fence).is_some_and(|lease| {
            self.resource_name(lease.resource).as_str() == GUARD
                && lease.terms.mode == Mode::Exclusive
                && self.holder_name(lease.holder) == worker
                && !is_over(at.0, lease.terms.expires_at.0)
        })
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
        self.check_is_no_file_session(&accepted.session)?;
        let other = self.sessions.under(accepted.key, accepted.intent.target.kind());
        ensure(other.is_none(), "its key leads to another session")?;
        ensure(lasts(accepted.at.0, accepted.start_by.0), "it leaves a worker no time")?;
        ensure(accepted.intent.check().is_ok(), "it wants what cannot be wanted")?;
        let session = Session {
            id: accepted.session.clone(),
            intent: accepted.intent.clone(),
            key: accepted.key,
            principal: accepted.principal.clone(),
            state: SessionState::New,
            revision: self.sessions.revision() + 1,
            accepted_at: accepted.at,
            start_by: accepted.start_by,
            changed_at: accepted.at,
            worker: None,
            slot: None,
            process: Arc::from(""),
            end: None,
            detail: Arc::from(""),
        };
        ensure(self.holds_what_it_should(&session), "somebody else has its name")?;
        self.sessions.enter(session);
        Ok(())
    }
}
