//! Somebody who lives has what a session wants: one ticket for each file, one retry, then a report.

use std::collections::BTreeSet;

use crate::kernel::answer::Refusal;
use crate::kernel::draft::Draft;
use crate::kernel::file::{
    Blocked, Contended, FILE_LEASE, FileAnswer, FileEvent, FileTicket, FileWant, HeldFile, Owner,
};
use crate::kernel::limits::{CIRCLE_TOLD, FILE_TICKETS};
use crate::kernel::mode::Mode;
use crate::kernel::name::Holder;
use crate::kernel::value::{Tick, Ticket};
use crate::kernel::want::Want;
use crate::rules::time::is_over;

/// Asking again meets the same ticket and starts no new timer. Only what is asked at or after the end of that timer is the
/// retry, and there is one.
pub(super) fn contend(
    draft: &mut Draft<'_>,
    session: &Holder,
    family: &[Holder],
    held: &[(&FileWant, Vec<Holder>)],
) -> Result<FileAnswer, Refusal> {
    draft.check_has_room()?;
    let (state, now) = (draft.state, draft.now);
    let retry_at = now.checked_add(state.limits().file_retry).ok_or(Refusal::Exhausted)?;
    // All of them are looked at first: who is refused has drawn none.
    let mut known = BTreeSet::new();
    let held: Vec<_> = held.iter().filter(|(file, _)| known.insert(&file.resource)).collect();
    let new =
        held.iter().filter(|(file, _)| state.file_ticket_for(session, &file.resource).is_none()).count();
    if new > 0 && state.file_tickets_of(session).count() + new > FILE_TICKETS {
        return Err(Refusal::QueueFull { what: session.as_str().into(), most: FILE_TICKETS });
    }
    if state.last_ticket().0.checked_add(new as u64).is_none() {
        return Err(Refusal::Exhausted);
    }
    let mut next = state.last_ticket();
    let (mut report, mut until) = (None, None::<Tick>);
    let mut told: Vec<HeldFile> = Vec::with_capacity(held.len());
    for (file, holders) in held {
        let owner = holders[0].clone();
        let mut wait_until = |due: Tick| until = Some(until.map_or(due, |until| until.min(due)));
        let ticket = match state.file_ticket_for(session, &file.resource) {
            Some(ticket) if ticket.blocked.is_some() => {
                report = report.or(Some(ticket.ticket));
                ticket.ticket
            }
            Some(ticket) if is_over(now.0, ticket.retry_at.0) => {
                block(draft, ticket, family, file, &owner);
                report = report.or(Some(ticket.ticket));
                ticket.ticket
            }
            Some(ticket) => {
                wait_until(ticket.retry_at);
                ticket.ticket
            }
            None => {
                next = next.next().ok_or(Refusal::Exhausted)?;
                wait(draft, next, session, family, (file, &owner), retry_at);
                wait_until(retry_at);
                next
            }
        };
        told.push(HeldFile { resource: file.resource.clone(), holder: owner, ticket });
    }
    Ok(match (report, until) {
        (Some(report), _) => FileAnswer::Blocked { held: told, report },
        (None, until) => FileAnswer::Wait { held: told, until: until.unwrap_or(now) },
    })
}

fn wait(
    draft: &mut Draft<'_>,
    ticket: Ticket,
    session: &Holder,
    family: &[Holder],
    (file, owner): (&FileWant, &Holder),
    retry_at: Tick,
) {
    let nonce = file.names().next().map(|(_, nonce)| nonce).unwrap_or_default();
    let want = Want::new(file.resource.clone(), Mode::Exclusive, FILE_LEASE, nonce);
    let circle = circle_of(draft, family, &want);
    draft.push_file(FileEvent::Contended(Contended {
        ticket,
        session: session.clone(),
        want,
        owner: owner.clone(),
        at: draft.now,
        retry_at,
        circle,
    }));
}

fn block(draft: &mut Draft<'_>, ticket: &FileTicket, family: &[Holder], file: &FileWant, owner: &Holder) {
    let (state, now) = (draft.state, draft.now);
    let circle = circle_of(draft, family, &ticket.want);
    let known = state.file_session(owner);
    // It may have the file by another of its names, or a folder that it is in.
    let around = file.names().flat_map(|(resource, _)| state.leases_around(resource));
    let own = around.filter(|lease| draft.lives(lease) && state.holder_name(lease.holder) == owner);
    let held_since = own.map(|lease| lease.terms.issued_at).min().unwrap_or(now);
    let found = Blocked {
        at: now,
        owner: known.map_or_else(|| Owner::named(owner.clone()), |session| session.owner()),
        held_since,
        // Who gets a file is heard of, though signs of life within a second count once.
        seen_at: known.map_or(held_since, |session| session.seen_at.max(held_since)),
        circle,
    };
    draft.push_file(FileEvent::Blocked { ticket: ticket.ticket, found });
}

/// Who waits for whom in a circle, if the session waits for this, or those above it do in its place.
fn circle_of(draft: &Draft<'_>, family: &[Holder], want: &Want) -> Vec<Holder> {
    let circle = family.iter().find_map(|own| draft.circle(own, std::slice::from_ref(want)));
    let mut circle = circle.unwrap_or_default();
    circle.truncate(CIRCLE_TOLD);
    circle
}
