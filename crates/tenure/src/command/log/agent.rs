//! What an event of an agent says: for people, and for programs.

use serde_json::{Value, json};
use tenure_core::kernel::{AgentEvent, LedgerTag, Mode, Resource, Tick, Want};

/// The agent, and what else the event says.
pub(super) fn details_of(event: &AgentEvent, tag: LedgerTag, time: impl Fn(Tick) -> String) -> String {
    match event {
        AgentEvent::Began { rank, principal, session, .. } => {
            format!("{}  priority {} in {session} for {principal}", rank.agent, rank.priority)
        }
        AgentEvent::Waits(pending) => {
            let wants: Vec<_> = pending.wants.iter().map(in_words).collect();
            let (ticket, agent) = (pending.ticket.0, &pending.rank.agent);
            format!("ticket {ticket}  {agent}  {}  until {}", wants.join(", "), time(pending.until))
        }
        AgentEvent::Left { ticket, end, .. } => format!("ticket {}  {}", ticket.0, end.as_str()),
        AgentEvent::Died { agent, retry_at, .. } => format!("{agent}  may come back at {}", time(*retry_at)),
        AgentEvent::Reported { agent, session, phase, .. } => {
            format!("{agent}  {} in {session}", phase.as_str())
        }
        AgentEvent::Touched { agent, leases, .. } => {
            let leases: Vec<_> = leases.iter().map(|fence| tag.lease_id(*fence)).collect();
            format!("{agent}  {}", leases.join(", "))
        }
        AgentEvent::Strayed { agent, outside, .. } => {
            let outside: Vec<_> = outside.iter().map(touch_in_words).collect();
            format!("{agent}  without a lease: {}", outside.join(", "))
        }
        AgentEvent::UsedUp { agent, used, .. } => {
            format!("{agent}  held leases for {} ms with one priority", used.as_millis())
        }
    }
}

/// Every field that the event has.
pub(super) fn fields_of(event: &AgentEvent, tag: LedgerTag, time: impl Fn(Tick) -> String) -> Value {
    match event {
        AgentEvent::Began { rank, principal, session, .. } => json!({ "agent": {
            "agent_id": rank.agent.as_str(),
            "priority_timestamp": rank.priority,
            "session_id": &**session,
            "principal": principal.as_str(),
        }}),
        AgentEvent::Waits(pending) => {
            let wants: Vec<_> = pending.wants.iter().map(|want| touch(&want.resource, want.mode)).collect();
            json!({
                "agent": { "agent_id": pending.rank.agent.as_str(), "priority_timestamp": pending.rank.priority },
                "wait": {
                    "ticket": pending.ticket.0,
                    "wants": wants,
                    "untilTick": pending.until.0,
                    "until": time(pending.until),
                },
            })
        }
        AgentEvent::Left { ticket, end, .. } => {
            json!({ "wait": { "ticket": ticket.0, "end": end.as_str() } })
        }
        AgentEvent::Died { agent, retry_at, .. } => json!({ "agent": {
            "agent_id": agent.as_str(),
            "retryTick": retry_at.0,
            "retryAt": time(*retry_at),
        }}),
        AgentEvent::Reported { agent, principal, session, phase, epoch, .. } => json!({ "agent": {
            "agent_id": agent.as_str(),
            "session_id": &**session,
            "principal": principal.as_str(),
            "state": phase.as_str(),
            "epoch": epoch,
        }}),
        AgentEvent::Touched { agent, leases, .. } => {
            let leases: Vec<_> = leases.iter().map(|fence| tag.lease_id(*fence)).collect();
            json!({ "agent": { "agent_id": agent.as_str() }, "leases": leases })
        }
        AgentEvent::Strayed { agent, outside, .. } => {
            let outside: Vec<_> = outside.iter().map(|(resource, mode)| touch(resource, *mode)).collect();
            json!({ "agent": { "agent_id": agent.as_str() }, "outside": outside })
        }
        AgentEvent::UsedUp { agent, used, .. } => {
            json!({ "agent": { "agent_id": agent.as_str(), "heldMs": used.as_millis() } })
        }
    }
}

fn in_words(want: &Want) -> String {
    format!("{} {}", want.mode.as_str(), want.resource)
}

fn touch_in_words((resource, mode): &(Resource, Mode)) -> String {
    format!("{} {resource}", mode.as_str())
}

fn touch(resource: &Resource, mode: Mode) -> Value {
    json!({ "resource": resource.as_str(), "predicate": mode.as_str() })
}
