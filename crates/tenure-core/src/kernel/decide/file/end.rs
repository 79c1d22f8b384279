//! Ends sessions and their turns, releases files, and hands them over.

use std::sync::Arc;

use super::hear::{hear, introduce};
use crate::kernel::answer::Refusal;
use crate::kernel::draft::{Draft, Place};
use crate::kernel::event::Cause;
use crate::kernel::file::{FileAnswer, FileEnd, FileEvent, FileWant, Introduction, Sign, TicketEnd, files};
use crate::kernel::mode::Mode;
use crate::kernel::name::{Holder, Principal, Resource};
use crate::kernel::state::LeaseEntry;
use crate::kernel::value::{Tick, Ticket};
use crate::lease::ReleaseReason;
use crate::rules::names::InvalidInput;
use crate::rules::time::is_over;

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
    draft.grant_file(heir, resource, lease.terms.nonce, Some(lease.fence))?;
    Ok(())
}

/// Whether it is idle is looked at here, at the moment that counts: whoever asks may have known it a moment ago.
pub(super) fn rest(
    draft: &mut Draft<'_>,
    id: &Holder,
    turn_ended_at: Tick,
    keep: &[Resource],
) -> Result<FileAnswer, Refusal> {
    let state = draft.state;
    let session = state.file_session(id).ok_or(Refusal::NoSuchSession)?;
    let due = turn_ended_at.saturating_add(state.limits().file_idle);
    if session.turn_ended_at != Some(turn_ended_at) || !is_over(draft.now.0, due.0) {
        return Err(Refusal::NotIdle);
    }
    draft.expire_all_of(id);
    let mut released = Vec::new();
    for lease in draft.living_leases_of(id) {
        let resource = state.resource_name(lease.resource);
        if keep.contains(resource) {
            continue;
        }
        draft.release(lease, ReleaseReason::Voluntary);
        released.push(resource.clone());
    }
    Ok(FileAnswer::Released { resources: released, foreign: Vec::new() })
}

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

/// Only what sessions of coding agents have: another lease has a holder of its own, and its own way to be revoked.
pub(super) fn force_release(
    draft: &mut Draft<'_>,
    resources: &[Resource],
    by: &Principal,
    detail: &Arc<str>,
) -> Result<FileAnswer, Refusal> {
    super::super::check_detail(detail)?;
    super::check_count(resources.len())?;
    let (state, mut released) = (draft.state, Vec::new());
    for resource in resources {
        draft.settle(resource);
        let Some(lease) = draft.lease_on_file(resource) else { continue };
        if state.file_session(state.holder_name(lease.holder)).is_some() {
            draft.revoke(lease, Cause::Revoked, by, detail);
            released.push(resource.clone());
        }
    }
    Ok(FileAnswer::Released { resources: released, foreign: Vec::new() })
}

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
        draft.grant_file(&to.id, resource, lease.terms.nonce, Some(lease.fence))?;
    }
    Ok(FileAnswer::Noted)
}

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
