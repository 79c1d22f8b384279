//! Somebody who lives has what a session wants: one ticket for each file, one retry, then a report.

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
    let mut next = state.last_ticket();
    let (mut report, mut until) = (None, None::<Tick>);
    let mut told: Vec<HeldFile> = Vec::with_capacity(held.len());
    for (file, holders) in held {
        let owner = holders[0].clone();
        if told.iter().any(|known| known.resource == file.resource) {
            continue;
        }
        let ticket = match state.file_ticket_for(session, &file.resource) {
            Some(ticket) if ticket.blocked.is_some() => {
                report = report.or(Some(ticket.ticket));
                ticket.ticket
            }
            Some(ticket) if is_over(now.0, ticket.retry_at.0) => {
                block(draft, ticket, family, &owner);
                report = report.or(Some(ticket.ticket));
                ticket.ticket
            }
            Some(ticket) => {
                until = Some(until.map_or(ticket.retry_at, |until| until.min(ticket.retry_at)));
                ticket.ticket
            }
            None => {
                if state.file_tickets_of(session).count() + told.len() >= FILE_TICKETS {
                    return Err(Refusal::QueueFull { what: session.as_str().into(), most: FILE_TICKETS });
                }
                next = next.next().ok_or(Refusal::Exhausted)?;
                let retry_at = wait(draft, next, session, family, file, &owner)?;
                until = Some(until.map_or(retry_at, |until| until.min(retry_at)));
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
    file: &FileWant,
    owner: &Holder,
) -> Result<Tick, Refusal> {
    let now = draft.now;
    let retry_at = now.checked_add(draft.state.limits().file_retry).ok_or(Refusal::Exhausted)?;
    let nonce = file.names().next().map(|(_, nonce)| nonce).unwrap_or_default();
    let want = Want::new(file.resource.clone(), Mode::Exclusive, FILE_LEASE, nonce);
    let circle = circle_of(draft, family, &want);
    draft.push_file(FileEvent::Contended(Contended {
        ticket,
        session: session.clone(),
        want,
        owner: owner.clone(),
        at: now,
        retry_at,
        circle,
    }));
    Ok(retry_at)
}

fn block(draft: &mut Draft<'_>, ticket: &FileTicket, family: &[Holder], owner: &Holder) {
    let (state, now) = (draft.state, draft.now);
    let circle = circle_of(draft, family, &ticket.want);
    let known = state.file_session(owner);
    let held_since = draft.lease_on_file(&ticket.want.resource).map_or(now, |lease| lease.issued_at);
    let found = Blocked {
        at: now,
        owner: known.map_or_else(|| Owner::named(owner.clone()), |session| session.owner()),
        held_since,
        seen_at: known.map_or(held_since, |session| session.seen_at),
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
