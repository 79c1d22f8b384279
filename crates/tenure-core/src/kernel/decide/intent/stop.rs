//! Stop: somebody wants a session to end.

use crate::kernel::answer::Refusal;
use crate::kernel::draft::Draft;
use crate::kernel::event::Event;
use crate::kernel::intent::{IntentAnswer, IntentEvent, SessionEnd, SessionState};
use crate::kernel::name::{Holder, Principal};

/// One that no worker has is over at once; else its worker hears of it. Stopping what stops or is over changes nothing.
pub(super) fn stop(draft: &mut Draft<'_>, session: &Holder, by: &Principal) -> Result<IntentAnswer, Refusal> {
    let session = super::known(draft, session)?;
    if let Some(over) = draft.over(session) {
        return Ok(over);
    }
    match session.state {
        SessionState::New => Ok(draft.end_session(session, SessionEnd::Stopped, "before a worker took it")),
        SessionState::Starting | SessionState::Running => {
            draft.push(Event::Intent(Box::new(IntentEvent::Stopping {
                session: session.id.clone(),
                at: draft.now,
                by: by.clone(),
            })));
            Ok(super::now_in(SessionState::Stopping))
        }
        SessionState::Stopping | SessionState::Ended => Ok(super::now_at(session)),
    }
}
