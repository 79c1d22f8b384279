//! Decides the commands of file sessions.

use std::collections::BTreeSet;

use super::contention::record_contention;
use super::session::upsert_session;
use super::{session, session_lifecycle};
use crate::kernel::event::Event;
use crate::kernel::file::{
    FILE_LEASE_TTL, FileAcquire, FileCommand, FileEvent, FileOutcome, FileOwner, FileRequest,
    FileSessionActivity, FileSessionInfo, RetryTicket, RetryTicketEnd, UncommittedFile, files_principal,
};
use crate::kernel::lease::decision_builder::{DecisionBuilder, Grant, QueuePosition};
use crate::kernel::lease::lease_request::LeaseRequest;
use crate::kernel::outcome::{CommandOutcome, Rejection};
use crate::kernel::state::LeaseEntry;
use crate::rules::InvalidInput;
use crate::rules::overlap::ResourcePattern;
use crate::value::{
    Fence, Holder, LeaseMode, MAX_FILE_NAME_BYTES_PER_COMMAND, MAX_FILE_NAMES_PER_COMMAND,
    MAX_FILES_PER_COMMAND, Nonce, Resource,
};

pub(in crate::kernel) fn decide(
    decision: &mut DecisionBuilder<'_>,
    command: &FileCommand,
) -> Result<CommandOutcome, Rejection> {
    let answer = match command {
        FileCommand::RecordActivity { session, activity: sign } => {
            session::record_activity(decision, session, *sign)
        }
        FileCommand::Acquire(request) => acquire(decision, request),
        FileCommand::Commit { sessions, resources } => {
            session_lifecycle::release_committed_files(decision, sessions, resources)
        }
        FileCommand::ReleaseIdle { session, turn_ended_at, keep } => {
            session_lifecycle::release_idle(decision, session, *turn_ended_at, keep)
        }
        FileCommand::End { sessions, end, detail } => {
            session_lifecycle::end_sessions(decision, sessions, *end, detail)
        }
        FileCommand::Adopt { from, to } => session_lifecycle::replace_session(decision, from, to),
        FileCommand::Give { file, to, by } => session_lifecycle::give(decision, file, to, by),
        FileCommand::ForceRelease { resources, by, detail } => {
            session_lifecycle::force_release(decision, resources, by, detail)
        }
        FileCommand::Resume { report, file, checked } => {
            session_lifecycle::resume_blocked_session(decision, *report, file, checked)
        }
        FileCommand::RecordViolation { resource, session, detail } => {
            session_lifecycle::record_violation(decision, resource, session.as_ref(), detail)
        }
    };
    answer.map(|answer| CommandOutcome::File(Box::new(answer)))
}

pub(super) fn push_file_event(decision: &mut DecisionBuilder<'_>, event: FileEvent) {
    decision.push(Event::File(Box::new(event)));
}

/// The living lease on a resource, of which a file has one at most that is exclusive.
pub(super) fn lease_on<'a>(decision: &DecisionBuilder<'a>, resource: &Resource) -> Option<&'a LeaseEntry> {
    let slot = decision.state.find_resource(resource)?;
    decision.state.leases_on(slot).find(|lease| decision.is_active(lease))
}

/// The holders that keep `own_sessions` from using one name of a file. What one of these sessions holds, all of them may
/// use, even if other sessions wait for it.
pub(super) fn blockers_of(
    decision: &DecisionBuilder<'_>,
    own_sessions: &[Holder],
    resource: &Resource,
) -> Vec<Holder> {
    let owner = lease_on(decision, resource).map(|lease| decision.state.holder_name(lease.holder));
    if owner.is_some_and(|owner| own_sessions.contains(owner)) {
        return Vec::new();
    }
    let blockers = decision.blockers(resource, LeaseMode::Exclusive, QueuePosition::default());
    let foreign = blockers.filter(|blocker| !own_sessions.contains(blocker.holder));
    let mut found: Vec<_> = foreign.map(|blocker| blocker.holder.clone()).collect();
    found.dedup();
    found
}

pub(super) fn grant_file(
    decision: &mut DecisionBuilder<'_>,
    session: &Holder,
    resource: &Resource,
    nonce: Nonce,
    continues: Option<Fence>,
) -> Result<Fence, Rejection> {
    let request = LeaseRequest::new(resource.clone(), LeaseMode::Exclusive, FILE_LEASE_TTL, nonce);
    decision.issue_lease(Grant { continues, ..Grant::new(session, &files_principal(), &request) })
}

pub(super) fn close_ticket(decision: &mut DecisionBuilder<'_>, ticket: &RetryTicket, end: RetryTicketEnd) {
    push_file_event(decision, FileEvent::Closed { ticket: ticket.ticket, at: decision.now, end });
}

/// Ends the tickets that a session has for these names, of which each is there once.
pub(super) fn close_tickets_for<'n>(
    decision: &mut DecisionBuilder<'_>,
    session: &Holder,
    names: impl IntoIterator<Item = &'n Resource>,
    end: RetryTicketEnd,
) {
    let state = decision.state;
    for ticket in names.into_iter().filter_map(|name| state.retry_ticket_for(session, name)) {
        close_ticket(decision, ticket, end);
    }
}

/// Who of these lives by nobody's word but their own, and was not looked at.
pub(super) fn unchecked_sessions(
    decision: &DecisionBuilder<'_>,
    in_the_way: &[Holder],
    checked: &[Holder],
) -> Vec<Holder> {
    let is_session = |holder: &&Holder| decision.state.file_session(holder).is_some();
    let unchecked = in_the_way.iter().filter(is_session).filter(|holder| !checked.contains(holder));
    let mut found: Vec<_> = unchecked.cloned().collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether there is room for that many more leases that last as long as those on files. After a restore, that one still lives
/// is not said either.
pub(super) fn check_can_grant_files(decision: &DecisionBuilder<'_>, leases: usize) -> Result<(), Rejection> {
    if leases == 0 {
        return decision.check_not_in_restore_quarantine();
    }
    decision.check_may_grant()?;
    let has_time = decision.now.checked_add(FILE_LEASE_TTL).is_some();
    let has_numbers = decision.remaining_fences() >= leases as u64;
    if has_time && has_numbers { Ok(()) } else { Err(Rejection::Exhausted) }
}

pub(super) fn check_count(files: usize) -> Result<(), Rejection> {
    if files <= MAX_FILES_PER_COMMAND {
        return Ok(());
    }
    let reason = format!("has {files} entries; at most {MAX_FILES_PER_COMMAND} are allowed; ask in parts");
    Err(InvalidInput::new("files", reason).into())
}

/// Whether each name means one thing, and whether there are not too many of them.
pub(super) fn check_files(files: &[FileRequest]) -> Result<(), Rejection> {
    check_count(files.len())?;
    let names = || files.iter().flat_map(|file| std::iter::once(&file.resource).chain(&file.aliases));
    let bytes: usize = names().map(|name| name.as_str().len()).sum();
    if names().count() > MAX_FILE_NAMES_PER_COMMAND || bytes > MAX_FILE_NAME_BYTES_PER_COMMAND {
        let reason = format!(
            "has more than {MAX_FILE_NAMES_PER_COMMAND} names, or than {MAX_FILE_NAME_BYTES_PER_COMMAND} bytes of them; ask in parts"
        );
        return Err(InvalidInput::new("files", reason).into());
    }
    // A session and its subagents may not have a folder and what is below it in different hands, so nobody has a folder.
    if names().any(|name| matches!(ResourcePattern::from_name(name.as_str()), ResourcePattern::Prefix(_))) {
        let reason = "has a folder or a pattern for a name; name each file";
        return Err(InvalidInput::new("files", reason).into());
    }
    Ok(())
}

/// Each name once: one file that is named twice is one file.
pub(super) fn distinct_names(files: &[FileRequest]) -> Vec<(&Resource, Nonce)> {
    let mut known = BTreeSet::new();
    files.iter().flat_map(FileRequest::names).filter(|(resource, _)| known.insert(*resource)).collect()
}

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
