//! What an agent may ask.

use std::sync::Arc;

use super::event::AgentPhase;
use crate::kernel::lease_request::LeaseRequest;
use crate::kernel::mode::LeaseMode;
use crate::kernel::name::{Holder, Principal, Resource};
use crate::kernel::newtypes::{Fence, Tick, TickDuration, Ticket};
use crate::kernel::outcome::LeaseEnd;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentCommand {
    /// Everything that it is about to touch: all of it, or none.
    Declare(DeclareManifest),
    Heartbeat {
        agent: Holder,
        principal: Principal,
        leases: Vec<Fence>,
    },
    Release {
        agent: Holder,
        principal: Principal,
        leases: Vec<Fence>,
    },
    Report(AgentReport),
    /// What the agent touches, or was seen to touch.
    Touch {
        agent: Holder,
        principal: Principal,
        /// What, and in which way.
        touched: Vec<(Resource, LeaseMode)>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentReport {
    pub agent: Holder,
    pub principal: Principal,
    pub session: Arc<str>,
    pub phase: AgentPhase,
    /// What it remembers from before its process restarted.
    pub memory: Option<ReportedAgentState>,
}

/// What an agent remembers of itself from before its process restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedAgentState {
    /// How old it was.
    pub priority: u64,
    /// Which of its lives that was.
    pub epoch: u64,
}

/// What an agent is about to touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclareManifest {
    pub agent: Holder,
    pub principal: Principal,
    pub session: Arc<str>,
    /// When its attempt began, in milliseconds, as it says.
    pub priority: u64,
    /// What it is about to touch, each resource once, in the strongest way that it names.
    pub requests: Vec<LeaseRequest>,
    /// How long it waits, if it does.
    pub wait_timeout: TickDuration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentOutcome {
    /// All of it is the agent's, in the order asked for.
    Granted {
        leases: Vec<Fence>,
    },
    /// It waits. Asking the same again says how that went.
    Wait {
        /// Its place, for good.
        ticket: Ticket,
        /// How many older ones wait for something of it, and itself.
        position: usize,
        until: Tick,
        blocked_by: Vec<Holder>,
    },
    /// It may come back then, with the age that it has.
    Die {
        retry_at: Tick,
        blocked_by: Vec<Holder>,
        /// What it held that an older one waits for. It is over.
        ended: Vec<Fence>,
    },
    /// What became of each lease, in the order asked for.
    Heartbeats(Vec<(Fence, HeartbeatOutcome)>),
    /// These are over, by this request or before it.
    Released(Vec<Fence>),
    Acknowledged,
    /// What was touched beyond what the agent's leases permit, in the order told. Nothing: all was within.
    Touched {
        outside: Vec<(Resource, LeaseMode)>,
    },
}

/// What became of one lease with a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeartbeatOutcome {
    Active(Tick),
    Ended(LeaseEnd),
    /// There is no such lease, or none of this agent's.
    Unknown,
}
