//! What happened to agents, to what is stored and back.

use crate::kernel::agent::{AgentEvent, AgentPhase, AgentRank, AgentWait, AgentWaitEnd};
use crate::kernel::codec::decode::invalid;
use crate::kernel::codec::fields::{MessageCodec, fields, message_codec, require_known};
use crate::proto;
use crate::rules::InvalidInput;
use crate::value::{LeaseMode, Resource};

fields! {
    AgentEvent in agent_event {
        Began as AgentBegan {
            principal: principal, session: session_id, at: tick;
            rank: flat AgentRank { priority: priority, agent: agent_id }
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
    AgentWait as AgentWaits {
        ticket: ticket, requests: wants, at: tick, until: until_tick;
        rank: flat AgentRank { priority: priority, agent: agent_id }
    }
}

message_codec! {
    AgentWaitEnd as String: |end| end.as_str().into(), |text| require_known("end", AgentWaitEnd::parse(&text));
    AgentPhase as String: |phase| phase.as_str().into(), |text| require_known("phase", AgentPhase::parse(&text));
    (Resource, LeaseMode) as proto::Touch:
        |touch| proto::Touch { resource: touch.0.to_message(), mode: touch.1.to_message() },
        |touch| Ok((MessageCodec::from_message(touch.resource)?, MessageCodec::from_message(touch.mode)?));
}
