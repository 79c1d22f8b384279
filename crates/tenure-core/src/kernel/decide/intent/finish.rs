//! Finish: the session's pipeline is gone, and the worker says why.

use crate::kernel::answer::Refusal;
use crate::kernel::draft::Draft;
use crate::kernel::intent::{IntentAnswer, SessionEnd, SessionState};
use crate::kernel::name::Holder;
use crate::kernel::value::Fence;

/// What the session holds is given back in the same decision. One that is over stays as it is, and so does one that
/// was over before anybody said so.
pub(super) fn finish(
    draft: &mut Draft<'_>,
    session: &Holder,
    guard: Fence,
    end: SessionEnd,
    detail: &str,
) -> Result<IntentAnswer, Refusal> {
    super::super::check_detail(detail)?;
    let session = super::own(draft, session, guard)?;
    if let Some(over) = draft.over(session) {
        return Ok(over);
    }
    // One that was never taken cannot have been carried out: whoever says so knows another ledger.
    if session.state == SessionState::New {
        return Err(Refusal::GuardLost);
    }
    Ok(draft.end_session(session, end, detail))
}
