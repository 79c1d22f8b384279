//! What happened to agents, to what is stored and back.

use super::decode::{decode_want, invalid};
use super::encode::want_message;
use super::{number, value};
use crate::kernel::agent::{AgentEvent, Pending, PendingEnd, Phase, Rank};
use crate::kernel::event::Event;
use crate::kernel::mode::Mode;
use crate::kernel::name::{Holder, Principal, Resource};
use crate::kernel::value::{Fence, Span, Tick, Ticket};
use crate::rules::names::InvalidInput;
use crate::stored::{self, agent_event};

pub(super) fn message_of(event: &AgentEvent) -> stored::AgentEvent {
    let event = match event {
        AgentEvent::Began { rank, principal, session, at } => agent_event::Event::Began(stored::AgentBegan {
            agent_id: rank.agent.as_str().into(),
            priority: rank.priority,
            principal: principal.as_str().into(),
            session_id: session.as_ref().into(),
            tick: at.0,
        }),
        AgentEvent::Waits(pending) => agent_event::Event::Waits(stored::AgentWaits {
            ticket: pending.ticket.0,
            agent_id: pending.rank.agent.as_str().into(),
            priority: pending.rank.priority,
            wants: pending.wants.iter().map(want_message).collect(),
            tick: pending.at.0,
            until_tick: pending.until.0,
        }),
        AgentEvent::Left { ticket, at, end } => agent_event::Event::Left(stored::AgentLeft {
            ticket: ticket.0,
            end: end.as_str().into(),
            tick: at.0,
        }),
        AgentEvent::Died { agent, at, retry_at } => agent_event::Event::Died(stored::AgentDied {
            agent_id: agent.as_str().into(),
            tick: at.0,
            retry_tick: retry_at.0,
        }),
        AgentEvent::Reported { agent, principal, session, at, phase, epoch } => {
            agent_event::Event::Reported(stored::AgentReported {
                agent_id: agent.as_str().into(),
                principal: principal.as_str().into(),
                session_id: session.as_ref().into(),
                tick: at.0,
                phase: phase.as_str().into(),
                epoch: *epoch,
            })
        }
        AgentEvent::Touched { agent, at, leases } => agent_event::Event::Touched(stored::AgentTouched {
            agent_id: agent.as_str().into(),
            tick: at.0,
            fences: leases.iter().map(|fence| fence.0).collect(),
        }),
        AgentEvent::Strayed { agent, at, outside } => agent_event::Event::Strayed(stored::AgentStrayed {
            agent_id: agent.as_str().into(),
            tick: at.0,
            outside: outside.iter().map(touch_message).collect(),
        }),
        AgentEvent::UsedUp { agent, at, used } => agent_event::Event::UsedUp(stored::AgentUsedUp {
            agent_id: agent.as_str().into(),
            tick: at.0,
            used_ticks: used.0,
        }),
    };
    stored::AgentEvent { event: Some(event) }
}

pub(super) fn event_of(message: stored::AgentEvent) -> Result<Event, InvalidInput> {
    let event = match message.event.ok_or_else(|| invalid("payload", "is empty"))? {
        agent_event::Event::Began(began) => AgentEvent::Began {
            rank: Rank { priority: began.priority, agent: Holder::parse(&began.agent_id)? },
            principal: Principal::parse(&began.principal)?,
            session: began.session_id.into(),
            at: Tick(began.tick),
        },
        agent_event::Event::Waits(waits) => AgentEvent::Waits(Pending {
            ticket: Ticket(waits.ticket),
            rank: Rank { priority: waits.priority, agent: Holder::parse(&waits.agent_id)? },
            wants: waits.wants.iter().map(decode_want).collect::<Result<_, _>>()?,
            at: Tick(waits.tick),
            until: Tick(waits.until_tick),
        }),
        agent_event::Event::Left(left) => AgentEvent::Left {
            ticket: Ticket(left.ticket),
            at: Tick(left.tick),
            end: PendingEnd::parse(&left.end).ok_or_else(|| invalid("end", "is unknown"))?,
        },
        agent_event::Event::Died(died) => AgentEvent::Died {
            agent: Holder::parse(&died.agent_id)?,
            at: Tick(died.tick),
            retry_at: Tick(died.retry_tick),
        },
        agent_event::Event::Reported(reported) => AgentEvent::Reported {
            agent: Holder::parse(&reported.agent_id)?,
            principal: Principal::parse(&reported.principal)?,
            session: reported.session_id.into(),
            at: Tick(reported.tick),
            phase: Phase::parse(&reported.phase).ok_or_else(|| invalid("phase", "is unknown"))?,
            epoch: reported.epoch,
        },
        agent_event::Event::Touched(touched) => AgentEvent::Touched {
            agent: Holder::parse(&touched.agent_id)?,
            at: Tick(touched.tick),
            leases: touched.fences.into_iter().map(Fence).collect(),
        },
        agent_event::Event::Strayed(strayed) => AgentEvent::Strayed {
            agent: Holder::parse(&strayed.agent_id)?,
            at: Tick(strayed.tick),
            outside: strayed.outside.iter().map(decode_touch).collect::<Result<_, _>>()?,
        },
        agent_event::Event::UsedUp(used_up) => AgentEvent::UsedUp {
            agent: Holder::parse(&used_up.agent_id)?,
            at: Tick(used_up.tick),
            used: Span(used_up.used_ticks),
        },
    };
    Ok(Event::Agent(Box::new(event)))
}

fn touch_message((resource, mode): &(Resource, Mode)) -> stored::Touch {
    stored::Touch { resource: resource.as_str().into(), mode: number(*mode as u8) }
}

fn decode_touch(touch: &stored::Touch) -> Result<(Resource, Mode), InvalidInput> {
    Ok((Resource::parse(&touch.resource)?, value("mode", &Mode::ALL, touch.mode)?))
}
