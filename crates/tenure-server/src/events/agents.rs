//! The agents and file sessions of events.

use tenure_api::{AgentEventDetails, FileEventDetails, ResourceAccess};
use tenure_core::kernel::{
    AgentEvent, ClockAnchor, FileEvent, Holder, LeaseMode, Principal, Removed, Resource, RetryTicket, Ticket,
};
use tenure_registrar::runtime::AppliedEvent;

use crate::app::format_tick_with_anchor;

/// The agent right after `event`, the resources that the event names, and the principal that the agent belongs to.
pub(super) fn agent_details(
    event: &AgentEvent,
    applied: AppliedEvent<'_>,
    anchor: ClockAnchor,
) -> (AgentEventDetails, Vec<Resource>, Option<Principal>) {
    let (state, tag) = (applied.state, applied.state.ledger_tag());
    let ended_wait = match applied.removed {
        Some(Removed::AgentWait(wait)) => Some(&**wait),
        _ => None,
    };
    let id = match event {
        AgentEvent::Began { rank, .. } => Some(&rank.agent),
        AgentEvent::Waits(wait) => Some(&wait.rank.agent),
        AgentEvent::Left { .. } => ended_wait.map(|wait| &wait.rank.agent),
        AgentEvent::Died { agent, .. }
        | AgentEvent::Reported { agent, .. }
        | AgentEvent::Touched { agent, .. }
        | AgentEvent::Strayed { agent, .. }
        | AgentEvent::UsedUp { agent, .. } => Some(agent),
    };
    let known = id.and_then(|id| state.agent(id));
    let mut details = AgentEventDetails {
        agent_id: id.map_or_else(String::new, |id| id.as_str().to_owned()),
        session_id: known.map(|known| known.session.to_string()),
        state: known.and_then(|known| known.phase).map(|phase| phase.as_str().to_owned()),
        priority_timestamp: known.and_then(|known| known.priority),
        epoch: known.map(|known| known.epoch),
        ticket: None,
        wants: Vec::new(),
        wait_until: None,
        retry_after_ms: None,
        outside: Vec::new(),
        leases: Vec::new(),
        held_ms: None,
    };
    let mut accesses: Vec<(&Resource, LeaseMode)> = Vec::new();
    let wait = match event {
        AgentEvent::Waits(wait) => Some(wait),
        _ => ended_wait,
    };
    if let Some(wait) = wait {
        accesses.extend(wait.requests.iter().map(|request| (&request.resource, request.mode)));
        details.wants = accesses.iter().map(access).collect();
    }
    match event {
        // A new agent has reported no epoch.
        AgentEvent::Began { .. } => details.epoch = details.epoch.filter(|_| details.state.is_some()),
        AgentEvent::Waits(wait) => {
            details.ticket = Some(wait.ticket.0);
            details.wait_until = Some(format_tick_with_anchor(anchor, wait.until));
        }
        AgentEvent::Left { ticket, .. } => details.ticket = Some(ticket.0),
        AgentEvent::Died { at, retry_at, .. } => {
            details.retry_after_ms = Some(retry_at.since(*at).0.div_ceil(1_000));
        }
        AgentEvent::Reported { .. } => {}
        AgentEvent::Touched { leases, .. } => {
            details.leases = leases.iter().map(|fence| tag.lease_id(*fence)).collect();
        }
        AgentEvent::Strayed { outside, .. } => {
            accesses.extend(outside.iter().map(|(resource, mode)| (resource, *mode)));
            details.outside = accesses.iter().map(access).collect();
        }
        AgentEvent::UsedUp { used, .. } => details.held_ms = Some(used.as_millis()),
    }
    let resources = accesses.into_iter().map(|(resource, _)| resource.clone()).collect();
    (details, resources, known.map(|known| known.principal.clone()))
}

fn access((resource, mode): &(&Resource, LeaseMode)) -> ResourceAccess {
    ResourceAccess { resource: resource.as_str().to_owned(), predicate: mode.as_str().to_owned() }
}

/// The session and file right after `event`, and the resource of the file.
pub(super) fn file_details(
    event: &FileEvent,
    applied: AppliedEvent<'_>,
    anchor: ClockAnchor,
) -> (FileEventDetails, Option<Resource>) {
    let state = applied.state;
    let text = |holder: &Holder| holder.as_str().to_owned();
    let of_session = |id: Option<&Holder>, resource: Option<&Resource>| {
        let known = match applied.removed {
            Some(Removed::FileSession(session)) => Some(&**session),
            _ => id.and_then(|id| state.file_session(id)),
        };
        let details = FileEventDetails {
            holder: id.map(text).unwrap_or_default(),
            agent: known.map(|known| known.agent.to_string()),
            session: known.map(|known| known.session.to_string()),
            resource: resource.map(|resource| resource.as_str().to_owned()),
            owner: None,
            ticket: None,
            retry_at: None,
            circle: Vec::new(),
        };
        (details, resource.cloned())
    };
    let of_ticket = |ticket: Ticket| {
        let known: Option<&RetryTicket> = match applied.removed {
            Some(Removed::RetryTicket(known)) => Some(known),
            _ => state.retry_ticket(ticket),
        };
        let (session, resource) =
            (known.map(|known| &known.session), known.map(|known| &known.request.resource));
        let (details, resource) = of_session(session, resource);
        (FileEventDetails { ticket: Some(ticket.0), ..details }, resource)
    };
    match event {
        FileEvent::Began { session, .. } => of_session(Some(&session.id), None),
        FileEvent::Seen { session, .. }
        | FileEvent::TurnEnded { session, .. }
        | FileEvent::Ended { session, .. } => of_session(Some(session), None),
        FileEvent::Contended(notice) => {
            let (mut details, resource) = of_session(Some(&notice.session), Some(&notice.request.resource));
            (details.owner, details.ticket) = (Some(text(&notice.owner)), Some(notice.ticket.0));
            details.retry_at = Some(format_tick_with_anchor(anchor, notice.retry_at));
            details.circle = notice.cycle.iter().map(text).collect();
            (details, resource)
        }
        FileEvent::Blocked { ticket, report } => {
            let (mut details, resource) = of_ticket(*ticket);
            details.owner = Some(text(&report.owner.holder));
            details.circle = report.cycle.iter().map(text).collect();
            (details, resource)
        }
        FileEvent::Closed { ticket, .. } => of_ticket(*ticket),
        FileEvent::Violated { resource, owner, session, .. } => {
            let (details, resource) = of_session(session.as_ref(), Some(resource));
            (FileEventDetails { owner: owner.as_ref().map(text), ..details }, resource)
        }
    }
}
