//! Rest: the turn of a session is over, nothing was heard of it for long enough, and it lets go of what it has.

use crate::kernel::answer::Refusal;
use crate::kernel::draft::Draft;
use crate::kernel::file::FileAnswer;
use crate::kernel::name::{Holder, Resource};
use crate::kernel::value::Tick;
use crate::lease::ReleaseReason;
use crate::rules::time::is_over;

/// Whether it is idle is looked at here, at the moment that counts: whoever asks may have known it a moment ago.
pub(super) fn rest(
    draft: &mut Draft<'_>,
    id: &Holder,
    turn_ended_at: Tick,
    keep: &[Resource],
) -> Result<FileAnswer, Refusal> {
    let state = draft.state;
    let session = state.file_session(id).ok_or(Refusal::NoSuchSession)?;
    let due = turn_ended_at.saturating_add(state.limits().file_idle);
    if session.turn_ended_at != Some(turn_ended_at) || !is_over(draft.now.0, due.0) {
        return Err(Refusal::NotIdle);
    }
    draft.expire_all_of(id);
    let mut released = Vec::new();
    for lease in draft.living_leases_of(id) {
        let resource = state.resource_name(lease.resource);
        if keep.contains(resource) {
            continue;
        }
        draft.release(lease, ReleaseReason::Voluntary);
        released.push(resource.clone());
    }
    Ok(FileAnswer::Released { resources: released, foreign: Vec::new() })
}
