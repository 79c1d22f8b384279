//! Give: a person hands a file to a session, whoever of the others has it.

use crate::kernel::answer::Refusal;
use crate::kernel::draft::{Draft, Place};
use crate::kernel::event::Cause;
use crate::kernel::file::{FileAnswer, FileWant, TicketEnd};
use crate::kernel::mode::Mode;
use crate::kernel::name::{Holder, Principal};

/// What an agent of another kind has, or a program, is not a person's to give: it was never told that it can lose it.
pub(super) fn give(
    draft: &mut Draft<'_>,
    file: &FileWant,
    to: &Holder,
    by: &Principal,
) -> Result<FileAnswer, Refusal> {
    let state = draft.state;
    state.file_session(to).ok_or(Refusal::NoSuchSession)?;
    super::check_files(std::slice::from_ref(file))?;
    file.names().for_each(|(resource, _)| draft.settle(resource));
    for (resource, _) in file.names() {
        let owner = draft.lease_on_file(resource).map(|lease| state.holder_name(lease.holder));
        if owner.is_some_and(|owner| state.file_session(owner).is_some()) {
            continue;
        }
        let mut blockers = draft.blockers(resource, Mode::Exclusive, Place::default());
        if let Some(stranger) = blockers.next() {
            let (holder, until) = (stranger.holder.clone(), stranger.until);
            let waiting = draft.waiting_on(resource);
            return Err(Refusal::Held { resource: resource.clone(), holder, until, waiting });
        }
    }
    super::check_room(draft, file.names().count())?;
    draft.close_tickets_for(to, file.names().map(|(resource, _)| resource), TicketEnd::Resumed);
    let mut leases = Vec::new();
    for (resource, nonce) in file.names() {
        let lease = draft.lease_on_file(resource);
        if lease.is_some_and(|lease| state.holder_name(lease.holder) == to) {
            continue;
        }
        if let Some(lease) = lease {
            draft.revoke(lease, Cause::Transferred, by, "a person gave it to another session");
        }
        leases.push(draft.grant_file(to, resource, nonce, lease.map(|lease| lease.fence))?);
    }
    Ok(FileAnswer::Granted { leases, left: Vec::new() })
}
