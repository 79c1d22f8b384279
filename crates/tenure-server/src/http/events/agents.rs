//! The agent that an event is about, as it was right after it.

use std::sync::Arc;

use tenure_api::{AgentEventDetails, ResourceAccess};
use tenure_core::kernel::{
    AgentEvent, AgentPhase, AgentRecord, AgentWait, ClockAnchor, Fence, Holder, LeaseMode, LeaseRequest,
    LedgerTag, Principal, Resource, Tick, TickDuration, Ticket,
};

use crate::clock::format_tick_with_anchor;

/// An agent at one moment. What is not known any more is left out.
#[derive(Debug, Default)]
pub(super) struct AgentSnapshot {
    agent: Option<Holder>,
    /// To whom it belongs: who may hear of what names no resource.
    pub(super) principal: Option<Principal>,
    session: Option<Arc<str>>,
    priority: Option<u64>,
    phase: Option<AgentPhase>,
    epoch: Option<u64>,
    ticket: Option<Ticket>,
    requested: Vec<(Resource, LeaseMode)>,
    until: Option<Tick>,
    retry_at: Option<Tick>,
    outside: Vec<(Resource, LeaseMode)>,
    leases: Vec<Fence>,
    held: Option<TickDuration>,
    pub(super) cause: Option<&'static str>,
}

impl AgentSnapshot {
    /// The agent right after `event`. `known` is what an agent was before, and `waiting` what a ticket was for.
    pub(super) fn after_event(
        event: &AgentEvent,
        known: impl Fn(&Holder) -> Option<AgentRecord>,
        waiting: impl Fn(Ticket) -> Option<AgentWait>,
    ) -> Self {
        match event {
            AgentEvent::Began { rank, principal, session, .. } => Self {
                principal: Some(principal.clone()),
                session: Some(session.clone()),
                priority: Some(rank.priority),
                ..Self::of(&rank.agent, known)
            },
            AgentEvent::Waits(pending) => Self {
                ticket: Some(pending.ticket),
                requested: requested_resources(&pending.requests),
                until: Some(pending.until),
                priority: Some(pending.rank.priority),
                ..Self::of(&pending.rank.agent, known)
            },
            AgentEvent::Left { ticket, end, .. } => {
                let pending = waiting(*ticket);
                let then = pending.as_ref().map(|pending| Self::of(&pending.rank.agent, known));
                let wants = pending.map(|pending| requested_resources(&pending.requests)).unwrap_or_default();
                Self {
                    ticket: Some(*ticket),
                    requested: wants,
                    cause: Some(end.as_str()),
                    ..then.unwrap_or_default()
                }
            }
            AgentEvent::Died { agent, retry_at, .. } => {
                Self { retry_at: Some(*retry_at), ..Self::of(agent, known) }
            }
            AgentEvent::Reported { agent, principal, session, phase, epoch, .. } => Self {
                principal: Some(principal.clone()),
                session: Some(session.clone()),
                phase: Some(*phase),
                epoch: Some(*epoch),
                ..Self::of(agent, known)
            },
            AgentEvent::Touched { agent, leases, .. } => {
                Self { leases: leases.clone(), ..Self::of(agent, known) }
            }
            AgentEvent::Strayed { agent, outside, .. } => {
                Self { outside: outside.clone(), ..Self::of(agent, known) }
            }
            AgentEvent::UsedUp { agent, used, .. } => Self { held: Some(*used), ..Self::of(agent, known) },
        }
    }

    fn of(agent: &Holder, known: impl Fn(&Holder) -> Option<AgentRecord>) -> Self {
        let known = known(agent);
        let known = known.as_ref();
        Self {
            agent: Some(agent.clone()),
            principal: known.map(|known| known.principal.clone()),
            session: known.map(|known| known.session.clone()),
            priority: known.and_then(|known| known.priority),
            phase: known.and_then(|known| known.phase),
            epoch: known.map(|known| known.epoch),
            ..Self::default()
        }
    }

    pub(super) fn resources(&self) -> impl Iterator<Item = &Resource> + Clone {
        self.requested.iter().chain(&self.outside).map(|(resource, _)| resource)
    }

    pub(super) fn to_view(&self, at: Tick, tag: LedgerTag, anchor: ClockAnchor) -> AgentEventDetails {
        let each = |list: &[(Resource, LeaseMode)]| {
            let one = |(resource, mode): &(Resource, LeaseMode)| ResourceAccess {
                resource: resource.as_str().to_owned(),
                predicate: mode.as_str().to_owned(),
            };
            list.iter().map(one).collect()
        };
        AgentEventDetails {
            agent_id: self.agent.as_ref().map_or_else(String::new, |agent| agent.as_str().to_owned()),
            session_id: self.session.as_ref().map(|session| session.to_string()),
            state: self.phase.map(|phase| phase.as_str().to_owned()),
            priority_timestamp: self.priority,
            epoch: self.epoch,
            ticket: self.ticket.map(|ticket| ticket.0),
            wants: each(&self.requested),
            wait_until: self.until.map(|until| format_tick_with_anchor(anchor, until)),
            retry_after_ms: self.retry_at.map(|retry_at| retry_at.since(at).0.div_ceil(1_000)),
            outside: each(&self.outside),
            leases: self.leases.iter().map(|fence| tag.lease_id(*fence)).collect(),
            held_ms: self.held.map(TickDuration::as_millis),
        }
    }
}

fn requested_resources(requests: &[LeaseRequest]) -> Vec<(Resource, LeaseMode)> {
    requests.iter().map(|request| (request.resource.clone(), request.mode)).collect()
}
