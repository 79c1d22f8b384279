//! End: sessions are over, and keep nobody waiting.

use crate::kernel::answer::Refusal;
use crate::kernel::draft::Draft;
use crate::kernel::event::Cause;
use crate::kernel::file::{FileAnswer, FileEnd, FileEvent, TicketEnd, files};
use crate::kernel::name::{Holder, Resource};
use crate::kernel::state::LeaseEntry;
use crate::lease::ReleaseReason;

/// Whoever is below them ends first. Those that are not known ended before.
pub(super) fn end(
    draft: &mut Draft<'_>,
    sessions: &[Holder],
    end: FileEnd,
    detail: &str,
) -> Result<FileAnswer, Refusal> {
    super::super::check_detail(detail)?;
    let (state, mut order) = (draft.state, Vec::<Holder>::new());
    for id in sessions.iter().filter(|id| state.file_session(id).is_some()) {
        let below = state.file_family_below(id);
        for other in below.into_iter().rev().chain([id.clone()]) {
            if !order.contains(&other) {
                order.push(other);
            }
        }
    }
    if end == FileEnd::HandedUp {
        let handed = order.iter().map(|id| draft.living_leases_of(id).len()).sum();
        super::check_room(draft, handed)?;
    }
    let mut released = Vec::new();
    for id in &order {
        draft.expire_all_of(id);
        for lease in draft.living_leases_of(id) {
            // To whoever is above all of them: those between end as well.
            let heir = state.file_family_above(id).into_iter().find(|above| !order.contains(above));
            released.push(state.resource_name(lease.resource).clone());
            match (end, heir) {
                (FileEnd::HandedUp, Some(heir)) => hand_up(draft, lease, &heir)?,
                (FileEnd::Died, _) => draft.revoke(lease, Cause::Reclaimed, &files(), detail),
                _ => draft.release(lease, ReleaseReason::Voluntary),
            }
        }
        for ticket in state.file_tickets_of(id) {
            draft.close_ticket(ticket, TicketEnd::Gone);
        }
        let detail = detail.into();
        draft.push_file(FileEvent::Ended { session: id.clone(), at: draft.now, end, detail });
    }
    Ok(FileAnswer::Released { resources: released, foreign: Vec::<(Resource, Holder)>::new() })
}

/// What a subagent changed is its session's to commit.
pub(super) fn hand_up(draft: &mut Draft<'_>, lease: &LeaseEntry, heir: &Holder) -> Result<(), Refusal> {
    let resource = draft.state.resource_name(lease.resource);
    draft.revoke(lease, Cause::Transferred, &files(), "its subagent is done");
    draft.close_tickets_for(heir, [resource], TicketEnd::Served);
    draft.grant_file(heir, resource, lease.nonce, Some(lease.fence))?;
    Ok(())
}
