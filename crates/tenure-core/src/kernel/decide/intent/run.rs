//! Run: the worker has started the session's pipeline.

use std::sync::Arc;

use crate::kernel::answer::Refusal;
use crate::kernel::draft::Draft;
use crate::kernel::event::Event;
use crate::kernel::intent::{IntentAnswer, IntentEvent, SessionState};
use crate::kernel::name::Holder;
use crate::kernel::value::Fence;

/// Somebody may have asked for its end meanwhile, or it may have lost a lease: then it does not run, and the answer says
/// where it is.
pub(super) fn run(
    draft: &mut Draft<'_>,
    session: &Holder,
    guard: Fence,
    process: &Arc<str>,
) -> Result<IntentAnswer, Refusal> {
    super::super::check_detail(process)?;
    let session = super::own(draft, session, guard)?;
    if let Some(over) = draft.over(session) {
        return Ok(over);
    }
    draft.check_is_not_held_back()?;
    if session.state != SessionState::Starting {
        return Ok(super::now_at(session));
    }
    draft.push(Event::Intent(Box::new(IntentEvent::Running {
        session: session.id.clone(),
        at: draft.now,
        process: process.clone(),
    })));
    Ok(super::now_in(SessionState::Running))
}
