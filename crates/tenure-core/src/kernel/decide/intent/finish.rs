//! Finish: the session's pipeline is gone, and the worker says why.

use crate::kernel::answer::Refusal;
use crate::kernel::draft::Draft;
use crate::kernel::intent::{IntentAnswer, SessionEnd, SessionState};
use crate::kernel::name::Holder;
use crate::kernel::value::Fence;

/// What the session holds is given back in the same decision. One that is over stays as it is.
pub(super) fn finish(
    draft: &mut Draft<'_>,
    session: &Holder,
    guard: Fence,
    end: SessionEnd,
    detail: &str,
) -> Result<IntentAnswer, Refusal> {
    super::super::check_detail(detail)?;
    let session = super::own(draft, session, guard)?;
    match session.state {
        SessionState::Ended => Ok(super::now_at(session)),
        // It was never taken, so it cannot have been carried out.
        SessionState::New => Err(Refusal::GuardLost),
        _ => Ok(draft.end_session(session, end, detail)),
    }
}
