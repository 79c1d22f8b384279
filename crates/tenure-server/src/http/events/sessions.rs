//! The session that an event is about, as it was right after it.

use std::sync::Arc;

use tenure_api::SessionView;
use tenure_core::kernel::{Accepted, Anchor, IntentEvent, Resource, Session, SessionState};

use crate::intents::view_of;

#[derive(Debug)]
pub(super) struct SessionThen {
    pub(super) session: Session,
    /// What it shows: by that, it is known who may see it.
    pub(super) resource: Resource,
}

impl SessionThen {
    /// The session right after `event`. `before` is what it was, or became later; nothing where it is forgotten.
    pub(super) fn after(event: &IntentEvent, before: Option<Session>, revision: u64) -> Option<Self> {
        let mut session = match event {
            IntentEvent::Accepted(accepted) => begun(accepted),
            _ => before?,
        };
        session.state = event.leads_to();
        session.changed_at = event.at();
        session.revision = revision;
        if session.state != SessionState::Ended {
            (session.end, session.detail) = (None, Arc::from(""));
        }
        match event {
            IntentEvent::Starting { worker, guard, slot, .. } => {
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

    pub(super) fn shown(&self, anchor: Anchor) -> SessionView {
        view_of(&self.session, anchor)
    }

    /// How many bytes callers made it long by.
    pub(super) fn bytes(&self) -> usize {
        let Session { intent, process, detail, .. } = &self.session;
        let wanted = intent.profile.len() + intent.params.len() + intent.correlation.len();
        wanted + process.len() + detail.len() + self.resource.as_str().len()
    }
}

fn begun(accepted: &Accepted) -> Session {
    Session {
        id: accepted.session.clone(),
        intent: accepted.intent.clone(),
        key: accepted.key,
        principal: accepted.principal.clone(),
        state: SessionState::New,
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
