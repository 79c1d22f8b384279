//! Resume: a person lets a blocked session go on. It gets its file, if that is free.

use crate::kernel::answer::Refusal;
use crate::kernel::draft::{Draft, Place};
use crate::kernel::file::{FileAnswer, FileWant, TicketEnd};
use crate::kernel::mode::Mode;
use crate::kernel::name::Holder;
use crate::kernel::value::Ticket;
use crate::rules::names::InvalidInput;

pub(super) fn resume(
    draft: &mut Draft<'_>,
    report: Ticket,
    file: &FileWant,
    checked: &[Holder],
) -> Result<FileAnswer, Refusal> {
    let state = draft.state;
    let ticket = state.file_ticket(report).ok_or(Refusal::NoSuchTicket)?;
    if ticket.end.is_some() {
        // It got on before, or is gone: there is nobody left to let go on.
        return Err(Refusal::NoSuchTicket);
    }
    if ticket.want.resource != file.resource {
        return Err(InvalidInput::new("file", "is not the one that the report is about").into());
    }
    super::check_files(std::slice::from_ref(file))?;
    file.names().for_each(|(resource, _)| draft.settle(resource));
    let above = state.file_family_above(&ticket.session);
    let family: Vec<Holder> = std::iter::once(ticket.session.clone()).chain(above).collect();
    let in_the_way = super::acquire::in_the_way(draft, &family, file);
    let sessions = super::unchecked(draft, &in_the_way, checked);
    if !sessions.is_empty() {
        return Ok(FileAnswer::MustCheck { sessions });
    }
    if let Some(refusal) = held(draft, &family, file) {
        return Err(refusal);
    }
    let missing: Vec<_> =
        file.names().filter(|(resource, _)| draft.lease_on_file(resource).is_none()).collect();
    super::check_room(draft, missing.len())?;
    let names = file.names().map(|(resource, _)| resource);
    draft.close_tickets_for(&ticket.session, names, TicketEnd::Resumed);
    let mut leases = Vec::new();
    for (resource, nonce) in missing {
        leases.push(draft.grant_file(&ticket.session, resource, nonce, None)?);
    }
    Ok(FileAnswer::Granted { leases, left: Vec::new() })
}

/// What is said of whoever is in the way.
fn held(draft: &Draft<'_>, family: &[Holder], file: &FileWant) -> Option<Refusal> {
    let mut names = file.names().map(|(resource, _)| resource);
    let resource = names.find(|resource| !draft.in_the_way_of(family, resource).is_empty())?;
    let mut blockers = draft.blockers(resource, Mode::Exclusive, Place::default());
    let blocker = blockers.find(|blocker| !family.contains(blocker.holder))?;
    let (holder, until) = (blocker.holder.clone(), blocker.until);
    Some(Refusal::Held { resource: resource.clone(), holder, until, waiting: draft.waiting_on(resource) })
}
