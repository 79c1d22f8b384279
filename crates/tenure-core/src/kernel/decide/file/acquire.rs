//! Acquire: a session is about to change files. All of them are its own, or none is.

use std::collections::BTreeSet;

use super::contend::contend;
use super::hear::introduce;
use crate::kernel::answer::Refusal;
use crate::kernel::draft::Draft;
use crate::kernel::file::{
    FileAcquire, FileAnswer, FileWant, Introduction, LeftFile, Owner, Sign, TicketEnd,
};
use crate::kernel::name::{Holder, Resource};
use crate::kernel::value::Nonce;

/// What the session has already, and what those above it have, counts as granted.
pub(super) fn acquire(draft: &mut Draft<'_>, acquire: &FileAcquire) -> Result<FileAnswer, Refusal> {
    super::check_files(&acquire.files)?;
    let sign = if acquire.background { Sign::Background } else { Sign::Active };
    introduce(draft, &acquire.session, sign)?;
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
    draft.close_tickets_for(session, names.iter().map(|(resource, _)| *resource), TicketEnd::Served);
    let mut leases = Vec::with_capacity(missing.len());
    for (resource, nonce) in missing {
        leases.push(draft.grant_file(session, resource, nonce, None)?);
    }
    let left = left_by_others(draft, &acquire.session, family, &acquire.files);
    Ok(FileAnswer::Granted { leases, left })
}

/// What of this another family let go of without a commit. Who speaks for the same session of the same process is of the same.
fn left_by_others(
    draft: &Draft<'_>,
    own: &Introduction,
    family: &[Holder],
    files: &[FileWant],
) -> Vec<(Resource, LeftFile)> {
    let is_own = |owner: &Owner| {
        family.contains(&owner.holder) || owner.process == own.process && owner.session == own.session
    };
    let mut told = BTreeSet::new();
    let files = files.iter().map(|file| &file.resource).filter(|resource| told.insert(*resource));
    let left = files.filter_map(|resource| Some((resource, draft.state.left_file(resource)?)));
    left.filter(|(_, left)| !is_own(&left.owner))
        .map(|(resource, left)| (resource.clone(), left.clone()))
        .collect()
}
