//! What an agent may ask.

use std::sync::Arc;

use super::event::Phase;
use crate::kernel::answer::End;
use crate::kernel::mode::Mode;
use crate::kernel::name::{Holder, Principal, Resource};
use crate::kernel::value::{Fence, Span, Tick, Ticket};
use crate::kernel::want::Want;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentCommand {
    /// Everything that it is about to touch: all of it, or none.
    Declare(Declare),
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
    Report(Report),
    /// What the agent touches, or was seen to touch.
    Touch {
        agent: Holder,
        principal: Principal,
        /// What, and in which way.
        touched: Vec<(Resource, Mode)>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub agent: Holder,
    pub principal: Principal,
    pub session: Arc<str>,
    pub phase: Phase,
    /// What it remembers from before its process restarted.
    pub remembers: Option<Remembered>,
}

/// What an agent remembers of itself from before its process restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remembered {
    /// How old it was.
    pub priority: u64,
    /// Which of its lives that was.
    pub epoch: u64,
}

/// What an agent is about to touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declare {
    pub agent: Holder,
    pub principal: Principal,
    pub session: Arc<str>,
    /// When its attempt began, in milliseconds, as it says.
    pub priority: u64,
    /// What it is about to touch, each resource once, in the strongest way that it names.
    pub wants: Vec<Want>,
    /// How long it waits, if it does.
    pub patience: Span,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentAnswer {
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
    Beaten(Vec<(Fence, Pulse)>),
    /// These are over, by this request or before it.
    Released(Vec<Fence>),
    Noted,
    /// What was touched beyond what the agent's leases permit, in the order told. Nothing: all was within.
    Touched {
        outside: Vec<(Resource, Mode)>,
    },
}

/// What became of one lease with a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pulse {
    Until(Tick),
    Over(End),
    /// There is no such lease, or none of this agent's.
    Unknown,
}
