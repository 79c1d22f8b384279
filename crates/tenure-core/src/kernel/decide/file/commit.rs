//! Commit: what was committed, and is clean, need not be kept any longer.

use std::sync::Arc;

use crate::kernel::answer::Refusal;
use crate::kernel::draft::Draft;
use crate::kernel::file::{FileAnswer, FileEvent};
use crate::kernel::name::{Holder, Resource};
use crate::lease::ReleaseReason;

/// What subagents have counts as their session's: nobody can tell who of them committed.
pub(super) fn commit(
    draft: &mut Draft<'_>,
    sessions: &[Holder],
    resources: &[Resource],
) -> Result<FileAnswer, Refusal> {
    super::check_count(resources.len())?;
    let state = draft.state;
    let below = sessions.iter().flat_map(|session| state.file_family_below(session));
    let family: Vec<Holder> = sessions.iter().cloned().chain(below).collect();
    let (mut released, mut foreign) = (Vec::new(), Vec::new());
    for resource in resources {
        let Some(lease) = draft.lease_on_file(resource) else { continue };
        let holder = state.holder_name(lease.holder);
        let is_session = state.file_session(holder).is_some();
        if is_session && family.contains(holder) {
            draft.release(lease, ReleaseReason::Completed);
            released.push(resource.clone());
        } else if is_session {
            foreign.push((resource.clone(), holder.clone()));
        }
    }
    Ok(FileAnswer::Released { resources: released, foreign })
}

/// It is told, and changes nothing.
pub(super) fn violate(
    draft: &mut Draft<'_>,
    resource: &Resource,
    session: Option<&Holder>,
    detail: &Arc<str>,
) -> Result<FileAnswer, Refusal> {
    super::super::check_detail(detail)?;
    draft.check_has_room()?;
    let owner = draft.lease_on_file(resource).map(|lease| draft.state.holder_name(lease.holder).clone());
    draft.push_file(FileEvent::Violated {
        resource: resource.clone(),
        at: draft.now,
        owner,
        session: session.cloned(),
        detail: detail.clone(),
    });
    Ok(FileAnswer::Noted)
}
