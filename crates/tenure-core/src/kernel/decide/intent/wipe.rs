//! Wipe: a worker cleans up what one before it left behind.

use crate::kernel::answer::Refusal;
use crate::kernel::draft::Draft;
use crate::kernel::event::Cause;
use crate::kernel::intent::{IntentAnswer, SessionEnd, orchestrator};
use crate::kernel::name::Holder;
use crate::kernel::value::Fence;

/// Sessions of another guard only, and only those that are named: their processes were seen gone. What no worker has
/// taken stays, and so does what belongs to nobody's session.
pub(super) fn wipe(
    draft: &mut Draft<'_>,
    guard: Fence,
    sessions: &[Holder],
) -> Result<IntentAnswer, Refusal> {
    super::guarded(draft, guard)?;
    super::check_count(sessions)?;
    let (mut wiped, state) = (0, draft.state);
    for id in sessions {
        let Some(session) = state.session(id) else { continue };
        let is_foreign = session.worker.as_ref().is_some_and(|(_, taken)| *taken != guard);
        if !session.state.is_taken() || !is_foreign || draft.over(session).is_some() {
            continue;
        }
        draft.announce_end(session, SessionEnd::WorkerRestarted, "its worker was gone");
        for lease in draft.living_leases_of(&session.id) {
            draft.revoke(lease, Cause::Wiped, &orchestrator(), "its worker was gone");
        }
        wiped += 1;
    }
    Ok(IntentAnswer::Wiped { sessions: wiped })
}
