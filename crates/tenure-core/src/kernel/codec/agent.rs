//! What happened to agents, to what is stored and back.

use super::decode::invalid;
use super::part::{Stored, fields, known, stored_as};
use crate::kernel::agent::{AgentEvent, Pending, PendingEnd, Phase, Rank};
use crate::kernel::mode::Mode;
use crate::kernel::name::Resource;
use crate::rules::names::InvalidInput;
use crate::stored;

fields! {
    AgentEvent in agent_event {
        Began as AgentBegan {
            principal: principal, session: session_id, at: tick;
            rank: flat Rank { priority: priority, agent: agent_id }
        }
        Left as AgentLeft { ticket: ticket, at: tick, end: end }
        Died as AgentDied { agent: agent_id, at: tick, retry_at: retry_tick }
        Reported as AgentReported {
            agent: agent_id, principal: principal, session: session_id, at: tick, phase: phase, epoch: epoch
        }
        Touched as AgentTouched { agent: agent_id, at: tick, leases: fences }
        Strayed as AgentStrayed { agent: agent_id, at: tick, outside: outside }
        UsedUp as AgentUsedUp { agent: agent_id, at: tick, used: used_ticks }
    } whole { Waits }
}

fields! {
    Pending as AgentWaits {
        ticket: ticket, wants: wants, at: tick, until: until_tick;
        rank: flat Rank { priority: priority, agent: agent_id }
    }
}

stored_as! {
    PendingEnd as String: |end| end.as_str().into(), |text| known("end", PendingEnd::parse(&text));
    Phase as String: |phase| phase.as_str().into(), |text| known("phase", Phase::parse(&text));
    (Resource, Mode) as stored::Touch:
        |touch| stored::Touch { resource: touch.0.to_message(), mode: touch.1.to_message() },
        |touch| Ok((Stored::of_message(touch.resource)?, Stored::of_message(touch.mode)?));
}
