//! The agent, file or intent session of an event, as it was right after it.

use std::sync::Arc;

use tenure_api::{AgentEventDetails, FileEventDetails, IntentSessionView, ResourceAccess};
use tenure_core::kernel::{
    AgentEvent, AgentPhase, AgentRecord, AgentWait, ClockAnchor, Fence, FileEvent, FileSession, Holder,
    IntentAcceptance, IntentEvent, IntentSession, IntentSessionState, LeaseMode, LeaseRequest, LedgerTag,
    Principal, Resource, RetryTicket, Tick, TickDuration, Ticket,
};

use crate::app::format_tick_with_anchor;
use crate::intents::view_of;

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

/// What an event about files is about. What is not known any more is left out.
#[derive(Debug, Default)]
pub(super) struct FileSnapshot {
    session: Option<Holder>,
    agent: Option<String>,
    name: Option<String>,
    pub(super) resource: Option<Resource>,
    owner: Option<Holder>,
    ticket: Option<Ticket>,
    retry_at: Option<Tick>,
    circle: Vec<Holder>,
    pub(super) cause: Option<&'static str>,
    pub(super) detail: Option<String>,
}

impl FileSnapshot {
    /// The subject right after `event`. `known` looks up a session, and `retry_ticket` a ticket, as they were before it.
    pub(super) fn after_event(
        event: &FileEvent,
        known: impl Fn(&Holder) -> Option<FileSession>,
        retry_ticket: impl Fn(Ticket) -> Option<RetryTicket>,
    ) -> Self {
        let of_ticket = |ticket: Ticket| {
            let ticket_of = retry_ticket(ticket);
            let of = ticket_of.as_ref().map(|wait| Self::of(&wait.session, &known)).unwrap_or_default();
            let resource = ticket_of.map(|wait| wait.request.resource);
            Self { ticket: Some(ticket), resource, ..of }
        };
        let nonempty = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        match event {
            FileEvent::Began { session, .. } => Self {
                session: Some(session.id.clone()),
                agent: Some(session.agent.to_string()),
                name: Some(session.session.to_string()),
                ..Self::default()
            },
            FileEvent::Seen { session, .. } | FileEvent::TurnEnded { session, .. } => {
                Self::of(session, &known)
            }
            FileEvent::Contended(contended) => Self {
                resource: Some(contended.request.resource.clone()),
                owner: Some(contended.owner.clone()),
                ticket: Some(contended.ticket),
                retry_at: Some(contended.retry_at),
                circle: contended.cycle.clone(),
                ..Self::of(&contended.session, &known)
            },
            FileEvent::Blocked { ticket, report: found } => Self {
                owner: Some(found.owner.holder.clone()),
                circle: found.cycle.clone(),
                ..of_ticket(*ticket)
            },
            FileEvent::Closed { ticket, end, .. } => Self { cause: Some(end.as_str()), ..of_ticket(*ticket) },
            FileEvent::Ended { session, end, detail, .. } => {
                Self { cause: Some(end.as_str()), detail: nonempty(detail), ..Self::of(session, &known) }
            }
            FileEvent::Violated { resource, owner, session, detail, .. } => Self {
                resource: Some(resource.clone()),
                owner: owner.clone(),
                detail: nonempty(detail),
                ..session.as_ref().map(|session| Self::of(session, &known)).unwrap_or_default()
            },
        }
    }

    fn of(session: &Holder, known: impl Fn(&Holder) -> Option<FileSession>) -> Self {
        let known = known(session);
        Self {
            session: Some(session.clone()),
            agent: known.as_ref().map(|known| known.agent.to_string()),
            name: known.map(|known| known.session.to_string()),
            ..Self::default()
        }
    }

    /// How many bytes callers made it long by.
    pub(super) fn bytes(&self) -> usize {
        let name = |holder: &Option<Holder>| holder.as_ref().map_or(0, |holder| holder.as_str().len());
        let circle = self.circle.iter().map(|holder| holder.as_str().len()).sum::<usize>();
        let resource = self.resource.as_ref().map_or(0, |resource| resource.as_str().len());
        let detail = self.detail.as_ref().map_or(0, String::len);
        name(&self.session) + name(&self.owner) + resource + circle + detail + 256
    }

    pub(super) fn to_view(&self, anchor: ClockAnchor) -> FileEventDetails {
        let text = |holder: &Holder| holder.as_str().to_owned();
        FileEventDetails {
            holder: self.session.as_ref().map(text).unwrap_or_default(),
            agent: self.agent.clone(),
            session: self.name.clone(),
            resource: self.resource.as_ref().map(|resource| resource.as_str().to_owned()),
            owner: self.owner.as_ref().map(text),
            ticket: self.ticket.map(|ticket| ticket.0),
            retry_at: self.retry_at.map(|at| format_tick_with_anchor(anchor, at)),
            circle: self.circle.iter().map(text).collect(),
        }
    }
}

#[derive(Debug)]
pub(super) struct IntentSessionSnapshot {
    pub(super) session: IntentSession,
    /// What it shows: by that, it is known who may see it.
    pub(super) resource: Resource,
}

impl IntentSessionSnapshot {
    /// The session right after `event`. `before` is what it was, or became later; nothing where it is forgotten.
    pub(super) fn after_event(
        event: &IntentEvent,
        before: Option<IntentSession>,
        revision: u64,
    ) -> Option<Self> {
        let mut session = match event {
            IntentEvent::Accepted(accepted) => new_session(accepted),
            _ => before?,
        };
        session.state = event.next_state();
        session.changed_at = event.occurred_at();
        session.revision = revision;
        if session.state != IntentSessionState::Ended {
            (session.end, session.detail) = (None, Arc::from(""));
        }
        match event {
            IntentEvent::Starting { worker, leader: guard, slot, .. } => {
                session.worker = Some((worker.clone(), *guard));
                session.slot = *slot;
                session.process = Arc::from("");
            }
            IntentEvent::Running { process, .. } => session.process = process.clone(),
            IntentEvent::Ended { end, detail, .. } => {
                (session.end, session.detail) = (Some(*end), detail.clone());
            }
            IntentEvent::Accepted(_) | IntentEvent::Stopping { .. } => {}
        }
        let resource = session.intent.target.resource();
        Some(Self { session, resource })
    }

    pub(super) fn to_view(&self, anchor: ClockAnchor) -> IntentSessionView {
        view_of(&self.session, anchor)
    }

    /// How many bytes callers made it long by.
    pub(super) fn bytes(&self) -> usize {
        let IntentSession { intent, process, detail, .. } = &self.session;
        let intent_bytes = intent.profile.len() + intent.params.len() + intent.correlation.len();
        intent_bytes + process.len() + detail.len() + self.resource.as_str().len()
    }
}

fn new_session(accepted: &IntentAcceptance) -> IntentSession {
    IntentSession {
        id: accepted.session.clone(),
        intent: accepted.intent.clone(),
        key: accepted.key,
        principal: accepted.principal.clone(),
        state: IntentSessionState::New,
        revision: 0,
        accepted_at: accepted.at,
        start_by: accepted.start_by,
        changed_at: accepted.at,
        worker: None,
        slot: None,
        process: Arc::from(""),
        end: None,
        detail: Arc::from(""),
    }
}
