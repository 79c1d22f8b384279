//! Ends sessions and their turns, releases files, and hands them over.

use std::sync::Arc;

use super::decide::{
    blockers_of, blocking_holders, check_can_grant_files, check_count, check_files, close_ticket,
    close_tickets_for, grant_file, lease_on, push_file_event, unchecked_sessions,
};
use super::session::{record_activity, upsert_session};
use crate::kernel::event::RevocationCause;
use crate::kernel::file::{
    FileEvent, FileOutcome, FileRequest, FileSessionActivity, FileSessionEnd, FileSessionInfo,
    RetryTicketEnd, files_principal,
};
use crate::kernel::lease::check_detail;
use crate::kernel::lease::decision_builder::{DecisionBuilder, QueuePosition};
use crate::kernel::outcome::Rejection;
use crate::kernel::state::LeaseEntry;
use crate::lease::ReleaseReason;
use crate::rules::{InvalidInput, is_expired};
use crate::value::{Holder, LeaseMode, Principal, Resource, Tick, Ticket};

/// Whoever is below them ends first. Those that are not known ended before.
pub(super) fn end_sessions(
    decision: &mut DecisionBuilder<'_>,
    sessions: &[Holder],
    end: FileSessionEnd,
    detail: &str,
) -> Result<FileOutcome, Rejection> {
    check_detail(detail)?;
    let (state, mut order) = (decision.state, Vec::<Holder>::new());
    for id in sessions.iter().filter(|id| state.file_session(id).is_some()) {
        let below = state.file_session_descendants(id);
        for other in below.into_iter().rev().chain([id.clone()]) {
            if !order.contains(&other) {
                order.push(other);
            }
        }
    }
    if end == FileSessionEnd::TransferredToParent {
        let handed = order.iter().map(|id| decision.active_leases_of(id).len()).sum();
        check_can_grant_files(decision, handed)?;
    }
    let mut released = Vec::new();
    for id in &order {
        decision.expire_leases_of(id);
        for lease in decision.active_leases_of(id) {
            // To whoever is above all of them: those between end as well.
            let heir = state.file_session_ancestors(id).into_iter().find(|above| !order.contains(above));
            released.push(state.resource_name(lease.resource).clone());
            match (end, heir) {
                (FileSessionEnd::TransferredToParent, Some(heir)) => {
                    transfer_to_parent(decision, lease, &heir)?
                }
                (FileSessionEnd::Died, _) => {
                    decision.revoke(lease, RevocationCause::Reclaimed, &files_principal(), detail)
                }
                _ => decision.release(lease, ReleaseReason::Voluntary),
            }
        }
        for ticket in state.retry_tickets_of(id) {
            close_ticket(decision, ticket, RetryTicketEnd::Gone);
        }
        let detail = detail.into();
        push_file_event(decision, FileEvent::Ended { session: id.clone(), at: decision.now, end, detail });
    }
    Ok(FileOutcome::Released { resources: released, foreign: Vec::<(Resource, Holder)>::new() })
}

/// What a subagent changed is its session's to commit.
pub(super) fn transfer_to_parent(
    decision: &mut DecisionBuilder<'_>,
    lease: &LeaseEntry,
    heir: &Holder,
) -> Result<(), Rejection> {
    let resource = decision.state.resource_name(lease.resource);
    decision.revoke(lease, RevocationCause::Transferred, &files_principal(), "its subagent is done");
    close_tickets_for(decision, heir, [resource], RetryTicketEnd::Served);
    grant_file(decision, heir, resource, lease.terms.nonce, Some(lease.fence))?;
    Ok(())
}

/// Whether it is idle is looked at here, at the moment that counts: whoever asks may have known it a moment ago.
pub(super) fn release_idle(
    decision: &mut DecisionBuilder<'_>,
    id: &Holder,
    turn_ended_at: Tick,
    keep: &[Resource],
) -> Result<FileOutcome, Rejection> {
    let state = decision.state;
    let session = state.file_session(id).ok_or(Rejection::NoSuchSession)?;
    let due = turn_ended_at.saturating_add(state.limits().file_idle_timeout);
    if session.turn_ended_at != Some(turn_ended_at) || !is_expired(decision.now.0, due.0) {
        return Err(Rejection::NotIdle);
    }
    decision.expire_leases_of(id);
    let mut released = Vec::new();
    for lease in decision.active_leases_of(id) {
        let resource = state.resource_name(lease.resource);
        if keep.contains(resource) {
            continue;
        }
        decision.release(lease, ReleaseReason::Voluntary);
        released.push(resource.clone());
    }
    Ok(FileOutcome::Released { resources: released, foreign: Vec::new() })
}

/// What an agent of another kind has, or a program, is not a person's to give: it was never told that it can lose it.
pub(super) fn give(
    decision: &mut DecisionBuilder<'_>,
    file: &FileRequest,
    to: &Holder,
    by: &Principal,
) -> Result<FileOutcome, Rejection> {
    let state = decision.state;
    state.file_session(to).ok_or(Rejection::NoSuchSession)?;
    check_files(std::slice::from_ref(file))?;
    file.names().for_each(|(resource, _)| decision.expire_and_serve(resource));
    for (resource, _) in file.names() {
        let owner = lease_on(decision, resource).map(|lease| state.holder_name(lease.holder));
        if owner.is_some_and(|owner| state.file_session(owner).is_some()) {
            continue;
        }
        let mut blockers = decision.blockers(resource, LeaseMode::Exclusive, QueuePosition::default());
        if let Some(stranger) = blockers.next() {
            let (holder, until) = (stranger.holder.clone(), stranger.until);
            let waiting = decision.waiter_count(resource);
            return Err(Rejection::Held { resource: resource.clone(), holder, until, waiting });
        }
    }
    check_can_grant_files(decision, file.names().count())?;
    close_tickets_for(decision, to, file.names().map(|(resource, _)| resource), RetryTicketEnd::Resumed);
    let mut leases = Vec::new();
    for (resource, nonce) in file.names() {
        let lease = lease_on(decision, resource);
        if lease.is_some_and(|lease| state.holder_name(lease.holder) == to) {
            continue;
        }
        if let Some(lease) = lease {
            decision.revoke(lease, RevocationCause::Transferred, by, "a person gave it to another session");
        }
        leases.push(grant_file(decision, to, resource, nonce, lease.map(|lease| lease.fence))?);
    }
    Ok(FileOutcome::Granted { leases, uncommitted: Vec::new() })
}

/// Only what sessions of coding agents have: another lease has a holder of its own, and its own way to be revoked.
pub(super) fn force_release(
    decision: &mut DecisionBuilder<'_>,
    resources: &[Resource],
    by: &Principal,
    detail: &Arc<str>,
) -> Result<FileOutcome, Rejection> {
    check_detail(detail)?;
    check_count(resources.len())?;
    let (state, mut released) = (decision.state, Vec::new());
    for resource in resources {
        decision.expire_and_serve(resource);
        let Some(lease) = lease_on(decision, resource) else { continue };
        if state.file_session(state.holder_name(lease.holder)).is_some() {
            decision.revoke(lease, RevocationCause::Revoked, by, detail);
            released.push(resource.clone());
        }
    }
    Ok(FileOutcome::Released { resources: released, foreign: Vec::new() })
}

const ADOPTED_DETAIL: &str = "its session is known by name now";

/// Who is not known, or is the same, has nothing to hand over. Only within one process, and only from one that nobody works for.
pub(super) fn replace_session(
    decision: &mut DecisionBuilder<'_>,
    from: &Holder,
    to: &FileSessionInfo,
) -> Result<FileOutcome, Rejection> {
    let state = decision.state;
    let Some(known) = state.file_session(from).filter(|known| known.id != to.id) else {
        return record_activity(decision, to, FileSessionActivity::Active);
    };
    let is_above = to.parent.as_ref() == Some(from) || !state.file_session_descendants(from).is_empty();
    if known.process != to.process || is_above {
        return Err(Rejection::HolderTaken { holder: from.clone() });
    }
    check_can_grant_files(decision, decision.active_leases_of(from).len())?;
    upsert_session(decision, to, FileSessionActivity::Active)?;
    decision.expire_leases_of(from);
    let leases = decision.active_leases_of(from);
    for lease in &leases {
        decision.revoke(lease, RevocationCause::Transferred, &files_principal(), ADOPTED_DETAIL);
    }
    for ticket in state.retry_tickets_of(from) {
        close_ticket(decision, ticket, RetryTicketEnd::Gone);
    }
    // Over before its files go on: nobody is left who could have left anything behind.
    let (session, at, end) = (from.clone(), decision.now, FileSessionEnd::TransferredToParent);
    push_file_event(decision, FileEvent::Ended { session, at, end, detail: ADOPTED_DETAIL.into() });
    for lease in leases {
        let resource = state.resource_name(lease.resource);
        close_tickets_for(decision, &to.id, [resource], RetryTicketEnd::Served);
        // Whoever waits for it waits on: it has not become free.
        grant_file(decision, &to.id, resource, lease.terms.nonce, Some(lease.fence))?;
    }
    Ok(FileOutcome::Acknowledged)
}

pub(super) fn resume_blocked_session(
    decision: &mut DecisionBuilder<'_>,
    report: Ticket,
    file: &FileRequest,
    checked: &[Holder],
) -> Result<FileOutcome, Rejection> {
    let state = decision.state;
    let ticket = state.retry_ticket(report).ok_or(Rejection::NoSuchTicket)?;
    if ticket.end.is_some() {
        // It got on before, or is gone: there is nobody left to let go on.
        return Err(Rejection::NoSuchTicket);
    }
    if ticket.request.resource != file.resource {
        return Err(InvalidInput::new("file", "is not the one that the report is about").into());
    }
    check_files(std::slice::from_ref(file))?;
    file.names().for_each(|(resource, _)| decision.expire_and_serve(resource));
    let above = state.file_session_ancestors(&ticket.session);
    let own_sessions: Vec<Holder> = std::iter::once(ticket.session.clone()).chain(above).collect();
    let in_the_way = blocking_holders(decision, &own_sessions, file);
    let sessions = unchecked_sessions(decision, &in_the_way, checked);
    if !sessions.is_empty() {
        return Ok(FileOutcome::CheckRequired { sessions });
    }
    if let Some(rejection) = held_rejection(decision, &own_sessions, file) {
        return Err(rejection);
    }
    let missing: Vec<_> =
        file.names().filter(|(resource, _)| lease_on(decision, resource).is_none()).collect();
    check_can_grant_files(decision, missing.len())?;
    let names = file.names().map(|(resource, _)| resource);
    close_tickets_for(decision, &ticket.session, names, RetryTicketEnd::Resumed);
    let mut leases = Vec::new();
    for (resource, nonce) in missing {
        leases.push(grant_file(decision, &ticket.session, resource, nonce, None)?);
    }
    Ok(FileOutcome::Granted { leases, uncommitted: Vec::new() })
}

/// What is said of whoever is in the way.
fn held_rejection(
    decision: &DecisionBuilder<'_>,
    own_sessions: &[Holder],
    file: &FileRequest,
) -> Option<Rejection> {
    let mut names = file.names().map(|(resource, _)| resource);
    let resource = names.find(|resource| !blockers_of(decision, own_sessions, resource).is_empty())?;
    let mut blockers = decision.blockers(resource, LeaseMode::Exclusive, QueuePosition::default());
    let blocker = blockers.find(|blocker| !own_sessions.contains(blocker.holder))?;
    let (holder, until) = (blocker.holder.clone(), blocker.until);
    Some(Rejection::Held {
        resource: resource.clone(),
        holder,
        until,
        waiting: decision.waiter_count(resource),
    })
}

/// What subagents have counts as their session's: nobody can tell who of them committed.
pub(super) fn release_committed_files(
    decision: &mut DecisionBuilder<'_>,
    sessions: &[Holder],
    resources: &[Resource],
) -> Result<FileOutcome, Rejection> {
    check_count(resources.len())?;
    let state = decision.state;
    let below = sessions.iter().flat_map(|session| state.file_session_descendants(session));
    let own_sessions: Vec<Holder> = sessions.iter().cloned().chain(below).collect();
    let (mut released, mut foreign) = (Vec::new(), Vec::new());
    for resource in resources {
        let Some(lease) = lease_on(decision, resource) else { continue };
        let holder = state.holder_name(lease.holder);
        let is_session = state.file_session(holder).is_some();
        if is_session && own_sessions.contains(holder) {
            decision.release(lease, ReleaseReason::Completed);
            released.push(resource.clone());
        } else if is_session {
            foreign.push((resource.clone(), holder.clone()));
        }
    }
    Ok(FileOutcome::Released { resources: released, foreign })
}

/// It is told, and changes nothing.
pub(super) fn record_violation(
    decision: &mut DecisionBuilder<'_>,
    resource: &Resource,
    session: Option<&Holder>,
    detail: &Arc<str>,
) -> Result<FileOutcome, Rejection> {
    check_detail(detail)?;
    decision.check_has_space()?;
    let owner = lease_on(decision, resource).map(|lease| decision.state.holder_name(lease.holder).clone());
    push_file_event(
        decision,
        FileEvent::Violated {
            resource: resource.clone(),
            at: decision.now,
            owner,
            session: session.cloned(),
            detail: detail.clone(),
        },
    );
    Ok(FileOutcome::Acknowledged)
}
