//! Acquire: a session is about to change files. All of them are its own, or none is.

use super::contend::contend;
use super::hear::introduce;
use crate::kernel::answer::Refusal;
use crate::kernel::draft::Draft;
use crate::kernel::file::{FileAcquire, FileAnswer, FileWant, Sign, TicketEnd};
use crate::kernel::name::{Holder, Resource};
use crate::kernel::value::Nonce;

/// What the session has already, and what those above it have, counts as granted.
pub(super) fn acquire(draft: &mut Draft<'_>, acquire: &FileAcquire) -> Result<FileAnswer, Refusal> {
    super::check_count(acquire.files.len())?;
    introduce(draft, &acquire.session, Sign::Active)?;
    let family = family_of(draft, acquire);
    let names = super::names_of(&acquire.files);
    names.iter().for_each(|(resource, _)| draft.settle(resource));

    let in_the_way: Vec<(&FileWant, Vec<Holder>)> =
        acquire.files.iter().map(|file| (file, in_the_way(draft, &family, file))).collect();
    let held: Vec<_> = in_the_way.into_iter().filter(|(_, holders)| !holders.is_empty()).collect();
    if held.is_empty() {
        return grant(draft, acquire, &family, &names);
    }
    let all: Vec<Holder> = held.iter().flat_map(|(_, holders)| holders.iter().cloned()).collect();
    let sessions = super::unchecked(draft, &all, &acquire.checked);
    if !sessions.is_empty() {
        return Ok(FileAnswer::MustCheck { sessions });
    }
    contend(draft, &acquire.session.id, &family, &held)
}

/// The session and everybody above it.
fn family_of(draft: &Draft<'_>, acquire: &FileAcquire) -> Vec<Holder> {
    let session = &acquire.session;
    let parent = session.parent.iter().cloned();
    let above = session.parent.iter().flat_map(|parent| draft.state.file_family_above(parent));
    std::iter::once(session.id.clone()).chain(parent).chain(above).collect()
}

/// Who is in the way on any name of a file.
pub(super) fn in_the_way(draft: &Draft<'_>, family: &[Holder], file: &FileWant) -> Vec<Holder> {
    file.names().flat_map(|(resource, _)| draft.in_the_way_of(family, resource)).collect()
}

fn grant(
    draft: &mut Draft<'_>,
    acquire: &FileAcquire,
    family: &[Holder],
    names: &[(&Resource, Nonce)],
) -> Result<FileAnswer, Refusal> {
    let session = &acquire.session.id;
    let missing: Vec<_> =
        names.iter().filter(|(resource, _)| draft.lease_on_file(resource).is_none()).copied().collect();
    super::check_room(draft, missing.len())?;
    let mut leases = Vec::with_capacity(missing.len());
    for (resource, nonce) in missing {
        leases.push(draft.grant_file(session, resource, nonce, None)?);
    }
    let state = draft.state;
    let mut left = Vec::new();
    for file in &acquire.files {
        if let Some(ticket) = state.file_ticket_for(session, &file.resource) {
            draft.close_ticket(ticket, TicketEnd::Served);
        }
        let found = state.left_file(&file.resource);
        left.extend(
            found
                .filter(|found| !family.contains(&found.owner.holder))
                .map(|found| (file.resource.clone(), found.clone())),
        );
    }
    Ok(FileAnswer::Granted { leases, left })
}
