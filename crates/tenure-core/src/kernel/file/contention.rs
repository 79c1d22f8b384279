//! A live session holds a file that another session needs: one ticket for each file, one retry, then a report.

use std::collections::BTreeSet;

use super::decide::{blockers_of, push_file_event};
use crate::kernel::file::{
    ContentionNotice, FILE_LEASE_TTL, FileEvent, FileOutcome, FileOwner, FileRequest, HeldFile,
};
use crate::kernel::lease::decision_builder::DecisionBuilder;
use crate::kernel::lease::lease_request::LeaseRequest;
use crate::kernel::outcome::Rejection;
use crate::kernel::state::Slot;
use crate::rules::is_expired;
use crate::value::{Holder, LeaseMode, MAX_REPORTED_CYCLE, MAX_RETRY_TICKETS_PER_SESSION, Tick, Ticket};

/// Asking again meets the same ticket and starts no new timer. Only what is asked at or after the end of that timer is the
/// retry, and there is one.
pub(super) fn record_contention(
    decision: &mut DecisionBuilder<'_>,
    session: &Holder,
    own_sessions: &[Holder],
    held: &[(&FileRequest, Vec<Holder>)],
) -> Result<FileOutcome, Rejection> {
    decision.check_has_space()?;
    let (state, now) = (decision.state, decision.now);
    let retry_at = now.checked_add(state.limits().file_retry_delay).ok_or(Rejection::Exhausted)?;
    // All of them are looked at first: who is refused has drawn none.
    let mut known = BTreeSet::new();
    let held: Vec<_> = held.iter().filter(|(file, _)| known.insert(&file.resource)).collect();
    let new =
        held.iter().filter(|(file, _)| state.retry_ticket_for(session, &file.resource).is_none()).count();
    if new > 0 && state.retry_tickets_of(session).count() + new > MAX_RETRY_TICKETS_PER_SESSION {
        return Err(Rejection::QueueFull {
            what: session.as_str().into(),
            max: MAX_RETRY_TICKETS_PER_SESSION,
        });
    }
    if state.last_ticket().0.checked_add(new as u64).is_none() {
        return Err(Rejection::Exhausted);
    }
    let mut next = state.last_ticket();
    let (mut report, mut until) = (None, None::<Tick>);
    let mut held_files: Vec<HeldFile> = Vec::with_capacity(held.len());
    for (file, holders) in held {
        let owner = holders[0].clone();
        let mut wait_until = |due: Tick| until = Some(until.map_or(due, |until| until.min(due)));
        let ticket = match state.retry_ticket_for(session, &file.resource) {
            Some(ticket) if ticket.blocked.is_some() => {
                report = report.or(Some(ticket.ticket));
                ticket.ticket
            }
            Some(ticket) if is_expired(now.0, ticket.retry_at.0) => {
                report_blocked(decision, ticket, own_sessions, file, &owner);
                report = report.or(Some(ticket.ticket));
                ticket.ticket
            }
            Some(ticket) => {
                wait_until(ticket.retry_at);
                ticket.ticket
            }
            None => {
                next = next.next().ok_or(Rejection::Exhausted)?;
                open_retry_ticket(decision, next, session, own_sessions, (file, &owner), retry_at);
                wait_until(retry_at);
                next
            }
        };
        held_files.push(HeldFile { resource: file.resource.clone(), holder: owner, ticket });
    }
    Ok(match (report, until) {
        (Some(report), _) => FileOutcome::Blocked { held: held_files, report },
        (None, until) => FileOutcome::Wait { held: held_files, until: until.unwrap_or(now) },
    })
}

fn open_retry_ticket(
    decision: &mut DecisionBuilder<'_>,
    ticket: Ticket,
    session: &Holder,
    own_sessions: &[Holder],
    (file, owner): (&FileRequest, &Holder),
    retry_at: Tick,
) {
    let nonce = file.names().next().map(|(_, nonce)| nonce).unwrap_or_default();
    let request = LeaseRequest::new(file.resource.clone(), LeaseMode::Exclusive, FILE_LEASE_TTL, nonce);
    let circle = cycle_of(decision, own_sessions, &request);
    push_file_event(
        decision,
        FileEvent::Contended(ContentionNotice {
            ticket,
            session: session.clone(),
            request,
            owner: owner.clone(),
            at: decision.now,
            retry_at,
            cycle: circle,
        }),
    );
}

fn report_blocked(
    decision: &mut DecisionBuilder<'_>,
    ticket: &RetryTicket,
    own_sessions: &[Holder],
    file: &FileRequest,
    owner: &Holder,
) {
    let (state, now) = (decision.state, decision.now);
    let circle = cycle_of(decision, own_sessions, &ticket.request);
    let known = state.file_session(owner);
    // It may have the file by another of its names, or a folder that it is in.
    let around = file.names().flat_map(|(resource, _)| state.leases_overlapping(resource));
    let own = around.filter(|lease| decision.is_active(lease) && state.holder_name(lease.holder) == owner);
    let held_since = own.map(|lease| lease.terms.issued_at).min().unwrap_or(now);
    let found = BlockedReport {
        at: now,
        owner: known.map_or_else(|| FileOwner::from_holder(owner.clone()), |session| session.owner()),
        held_since,
        // Who gets a file is heard of, though signs of life within a second count once.
        seen_at: known.map_or(held_since, |session| session.seen_at.max(held_since)),
        cycle: circle,
    };
    push_file_event(decision, FileEvent::Blocked { ticket: ticket.ticket, report: found });
}

/// Who waits for whom in a circle, if the session waits for this, or those above it do in its place.
fn cycle_of(decision: &DecisionBuilder<'_>, own_sessions: &[Holder], request: &LeaseRequest) -> Vec<Holder> {
    let circle = own_sessions.iter().find_map(|own| decision.find_cycle(own, std::slice::from_ref(request)));
    let mut circle = circle.unwrap_or_default();
    circle.truncate(MAX_REPORTED_CYCLE);
    circle
}

/// The files that a session or one of its subagents requested and an unrelated session holds. A retry ticket reserves
/// nothing, so these requests come after all others.
pub(crate) fn blocked_requests_of<'d>(decision: &DecisionBuilder<'d>, holder: Slot) -> Vec<&'d LeaseRequest> {
    let state = decision.state;
    let session = state.file_session(state.holder_name(holder));
    let sessions = session.into_iter().flat_map(|session| {
        std::iter::once(session.id.clone()).chain(state.file_session_descendants(&session.id))
    });
    let mut requests = Vec::new();
    for member in sessions {
        let above = state.file_session_ancestors(&member);
        let own: Vec<Holder> = std::iter::once(member.clone()).chain(above).collect();
        let blocked = state.retry_tickets_of(&member).map(|ticket| &ticket.request);
        requests.extend(blocked.filter(|request| !blockers_of(decision, &own, &request.resource).is_empty()));
    }
    requests
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryTicket {
    /// Its number, and that of its report.
    pub ticket: Ticket,
    pub session: Holder,
    pub request: LeaseRequest,
    pub at: Tick,
    pub retry_at: Tick,
    /// Who waits for whom in a circle, beginning with the session; empty if there was none when it began to wait.
    pub cycle: Vec<Holder>,
    /// What was found at the retry, if the file was not free then.
    pub blocked: Option<BlockedReport>,
    pub end: Option<(Tick, RetryTicketEnd)>,
}

/// The retry found a living owner: the session stops and waits for an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedReport {
    pub at: Tick,
    pub owner: FileOwner,
    pub held_since: Tick,
    /// When something was last heard of the owner.
    pub seen_at: Tick,
    /// Who waits for whom in a circle, beginning with the session; empty if there is none.
    pub cycle: Vec<Holder>,
}

crate::text_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum RetryTicketEnd: parse {
        Served = "SERVED",
        Gone = "GONE",
        /// A person gave the file to the session after it was blocked.
        Resumed = "RESUMED",
    }
}
