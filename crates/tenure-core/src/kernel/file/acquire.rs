//! Acquire: a session is about to change files. All of them are its own, or none is.

use std::collections::BTreeSet;

use super::activity::upsert_session;
use super::contention::record_contention;
use super::decide::{
    blockers_of, check_can_grant_files, check_files, close_tickets_for, distinct_names, grant_file, lease_on,
    unchecked_sessions,
};
use crate::kernel::decision_builder::DecisionBuilder;
use crate::kernel::file::{
    FileAcquire, FileOutcome, FileOwner, FileRequest, FileSessionActivity, FileSessionInfo, RetryTicketEnd,
    UncommittedFile,
};
use crate::kernel::name::{Holder, Resource};
use crate::kernel::newtypes::Nonce;
use crate::kernel::outcome::Rejection;

/// What the session has already, and what those above it have, counts as granted.
pub(super) fn acquire(
    decision: &mut DecisionBuilder<'_>,
    acquire: &FileAcquire,
) -> Result<FileOutcome, Rejection> {
    check_files(&acquire.files)?;
    let sign = if acquire.background { FileSessionActivity::Background } else { FileSessionActivity::Active };
    upsert_session(decision, &acquire.session, sign)?;
    let own_sessions = with_ancestors(decision, acquire);
    let names = distinct_names(&acquire.files);
    names.iter().for_each(|(resource, _)| decision.expire_and_serve(resource));

    let in_the_way: Vec<(&FileRequest, Vec<Holder>)> =
        acquire.files.iter().map(|file| (file, blocking_holders(decision, &own_sessions, file))).collect();
    let held: Vec<_> = in_the_way.into_iter().filter(|(_, holders)| !holders.is_empty()).collect();
    if held.is_empty() {
        return grant(decision, acquire, &own_sessions, &names);
    }
    let all: Vec<Holder> = held.iter().flat_map(|(_, holders)| holders.iter().cloned()).collect();
    let sessions = unchecked_sessions(decision, &all, &acquire.checked);
    if !sessions.is_empty() {
        return Ok(FileOutcome::CheckRequired { sessions });
    }
    record_contention(decision, &acquire.session.id, &own_sessions, &held)
}

/// The session and everybody above it.
fn with_ancestors(decision: &DecisionBuilder<'_>, acquire: &FileAcquire) -> Vec<Holder> {
    let session = &acquire.session;
    let parent = session.parent.iter().cloned();
    let above = session.parent.iter().flat_map(|parent| decision.state.file_session_ancestors(parent));
    std::iter::once(session.id.clone()).chain(parent).chain(above).collect()
}

/// Who is in the way on any name of a file.
pub(super) fn blocking_holders(
    decision: &DecisionBuilder<'_>,
    own_sessions: &[Holder],
    file: &FileRequest,
) -> Vec<Holder> {
    file.names().flat_map(|(resource, _)| blockers_of(decision, own_sessions, resource)).collect()
}

fn grant(
    decision: &mut DecisionBuilder<'_>,
    acquire: &FileAcquire,
    own_sessions: &[Holder],
    names: &[(&Resource, Nonce)],
) -> Result<FileOutcome, Rejection> {
    let session = &acquire.session.id;
    let missing: Vec<_> =
        names.iter().filter(|(resource, _)| lease_on(decision, resource).is_none()).copied().collect();
    check_can_grant_files(decision, missing.len())?;
    close_tickets_for(decision, session, names.iter().map(|(resource, _)| *resource), RetryTicketEnd::Served);
    let mut leases = Vec::with_capacity(missing.len());
    for (resource, nonce) in missing {
        leases.push(grant_file(decision, session, resource, nonce, None)?);
    }
    let uncommitted =
        uncommitted_by_unrelated_sessions(decision, &acquire.session, own_sessions, &acquire.files);
    Ok(FileOutcome::Granted { leases, uncommitted })
}

/// The files that an unrelated session released without a commit. A session of the same process with the same session id
/// is not unrelated.
fn uncommitted_by_unrelated_sessions(
    decision: &DecisionBuilder<'_>,
    own: &FileSessionInfo,
    own_sessions: &[Holder],
    files: &[FileRequest],
) -> Vec<(Resource, UncommittedFile)> {
    let is_own = |owner: &FileOwner| {
        own_sessions.contains(&owner.holder) || owner.process == own.process && owner.session == own.session
    };
    let mut seen = BTreeSet::new();
    let files = files.iter().map(|file| &file.resource).filter(|resource| seen.insert(*resource));
    let uncommitted =
        files.filter_map(|resource| Some((resource, decision.state.uncommitted_file(resource)?)));
    let foreign = uncommitted.filter(|(_, file)| !is_own(&file.owner));
    foreign.map(|(resource, file)| (resource.clone(), file.clone())).collect()
}
