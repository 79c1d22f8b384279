//! Adopt: what was got for a process before its session had a name.

use super::hear::{hear, introduce};
use crate::kernel::answer::Refusal;
use crate::kernel::draft::Draft;
use crate::kernel::event::Cause;
use crate::kernel::file::{FileAnswer, FileEnd, FileEvent, Introduction, Sign, TicketEnd, files};
use crate::kernel::name::Holder;

const DETAIL: &str = "its session is known by name now";

/// Who is not known, or is the same, has nothing to hand over. Only within one process, and only from one that nobody works for.
pub(super) fn adopt(draft: &mut Draft<'_>, from: &Holder, to: &Introduction) -> Result<FileAnswer, Refusal> {
    let state = draft.state;
    let Some(known) = state.file_session(from).filter(|known| known.id != to.id) else {
        return hear(draft, to, Sign::Active);
    };
    let is_above = to.parent.as_ref() == Some(from) || !state.file_family_below(from).is_empty();
    if known.process != to.process || is_above {
        return Err(Refusal::HolderTaken { holder: from.clone() });
    }
    super::check_room(draft, draft.living_leases_of(from).len())?;
    introduce(draft, to, Sign::Active)?;
    draft.expire_all_of(from);
    let leases = draft.living_leases_of(from);
    for lease in &leases {
        draft.revoke(lease, Cause::Transferred, &files(), DETAIL);
    }
    for ticket in state.file_tickets_of(from) {
        draft.close_ticket(ticket, TicketEnd::Gone);
    }
    // Over before its files go on: nobody is left who could have left anything behind.
    let (session, at, end) = (from.clone(), draft.now, FileEnd::HandedUp);
    draft.push_file(FileEvent::Ended { session, at, end, detail: DETAIL.into() });
    for lease in leases {
        let resource = state.resource_name(lease.resource);
        draft.close_tickets_for(&to.id, [resource], TicketEnd::Served);
        // Whoever waits for it waits on: it has not become free.
        draft.grant_file(&to.id, resource, lease.nonce, Some(lease.fence))?;
    }
    Ok(FileAnswer::Noted)
}
