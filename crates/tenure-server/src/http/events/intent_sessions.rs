//! The session that an event is about, as it was right after it.

use std::sync::Arc;

use tenure_api::IntentSessionView;
use tenure_core::kernel::{
    ClockAnchor, IntentAcceptance, IntentEvent, IntentSession, IntentSessionState, Resource,
};

use crate::intents::view_of;

#[derive(Debug)]
pub(super) struct IntentSessionSnapshot {
    pub(super) session: IntentSession,
    /// What it shows: by that, it is known who may see it.
    pub(super) resource: Resource,
}

impl IntentSessionSnapshot {
    /// The session right after `event`. `before` is what it was, or became later; nothing where it is forgotten.
    pub(super) fn after_event(
        event: &IntentEvent,
        before: Option<IntentSession>,
        revision: u64,
    ) -> Option<Self> {
        let mut session = match event {
            IntentEvent::Accepted(accepted) => new_session(accepted),
            _ => before?,
        };
        session.state = event.next_state();
        session.changed_at = event.occurred_at();
        session.revision = revision;
        if session.state != IntentSessionState::Ended {
            (session.end, session.detail) = (None, Arc::from(""));
        }
        match event {
            IntentEvent::Starting { worker, leader: guard, slot, .. } => {
                session.worker = Some((worker.clone(), *guard));
                session.slot = *slot;
                session.process = Arc::from("");
            }
            IntentEvent::Running { process, .. } => session.process = process.clone(),
            IntentEvent::Ended { end, detail, .. } => {
                (session.end, session.detail) = (Some(*end), detail.clone());
            }
            IntentEvent::Accepted(_) | IntentEvent::Stopping { .. } => {}
        }
        let resource = session.intent.target.resource();
        Some(Self { session, resource })
    }

    pub(super) fn to_view(&self, anchor: ClockAnchor) -> IntentSessionView {
        view_of(&self.session, anchor)
    }

    /// How many bytes callers made it long by.
    pub(super) fn bytes(&self) -> usize {
        let IntentSession { intent, process, detail, .. } = &self.session;
        let intent_bytes = intent.profile.len() + intent.params.len() + intent.correlation.len();
        intent_bytes + process.len() + detail.len() + self.resource.as_str().len()
    }
}

fn new_session(accepted: &IntentAcceptance) -> IntentSession {
    IntentSession {
        id: accepted.session.clone(),
        intent: accepted.intent.clone(),
        key: accepted.key,
        principal: accepted.principal.clone(),
        state: IntentSessionState::New,
        revision: 0,
        accepted_at: accepted.at,
        start_by: accepted.start_by,
        changed_at: accepted.at,
        worker: None,
        slot: None,
        process: Arc::from(""),
        end: None,
        detail: Arc::from(""),
    }
}
