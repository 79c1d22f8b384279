//! What happened to an agent, in the past tense.

use std::sync::Arc;

use super::AgentRank;
use crate::kernel::lease_request::LeaseRequest;
use crate::kernel::mode::LeaseMode;
use crate::kernel::name::{Holder, Principal, Resource};
use crate::kernel::newtypes::{Fence, Tick, TickDuration, Ticket};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentEvent {
    /// An attempt began: from now on this is the agent's age.
    Began {
        rank: AgentRank,
        principal: Principal,
        session: Arc<str>,
        at: Tick,
    },
    Waits(AgentWait),
    Left {
        ticket: Ticket,
        at: Tick,
        end: AgentWaitEnd,
    },
    /// It died, and may come back.
    Died {
        agent: Holder,
        at: Tick,
        retry_at: Tick,
    },
    Reported {
        agent: Holder,
        principal: Principal,
        session: Arc<str>,
        at: Tick,
        phase: AgentPhase,
        /// Which of its lives this is.
        epoch: u64,
    },
    /// It touched what these leases are for.
    Touched {
        agent: Holder,
        at: Tick,
        leases: Vec<Fence>,
    },
    /// It touched what it has no lease for.
    Strayed {
        agent: Holder,
        at: Tick,
        /// What, and in which way.
        outside: Vec<(Resource, LeaseMode)>,
    },
    /// It has held leases for as long as an agent of one age may. Its attempt is over, and the next is younger.
    UsedUp {
        agent: Holder,
        at: Tick,
        /// For how long it has held leases.
        used: TickDuration,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentWait {
    pub ticket: Ticket,
    /// Who waits, and how old it is.
    pub rank: AgentRank,
    pub requests: Vec<LeaseRequest>,
    pub at: Tick,
    /// No grant at or after this tick.
    pub until: Tick,
}

crate::text_enum! {
    /// What an agent says that it is doing. It decides nothing, but for one: who says that it restarts has a moment longer.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum AgentPhase: parse {
        Planning = "PLANNING",
        Acquiring = "ACQUIRING",
        Executing = "EXECUTING",
        /// It waits until it can be sure of its leases.
        Paused = "PAUSED",
        Verifying = "VERIFYING",
        Completed = "COMPLETED",
        Aborted = "ABORTED",
        /// Its process goes, and comes back.
        DieRestart = "DIE_RESTART",
    }
}

impl AgentPhase {
    /// Whether the agent is done with everything, one way or the other.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Aborted)
    }
}

crate::text_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum AgentWaitEnd: parse {
        /// It has all of it, by leases that it got otherwise.
        Served = "SERVED",
        /// Its time was over before its turn came.
        TimedOut = "TIMED_OUT",
        /// It would have waited for an older one.
        Died = "DIED",
        /// It is done, or gave up.
        Withdrawn = "WITHDRAWN",
        /// It has held leases for too long.
        UsedUp = "USED_UP",
    }
}

crate::kernel::event::type_names! {
    AgentEvent {
        Began = "agent.began",
        Waits = "agent.waits",
        Left = "agent.left",
        Died = "agent.died",
        Reported = "agent.reported",
        Touched = "agent.touched",
        Strayed = "agent.strayed",
        UsedUp = "agent.used_up",
    }
}

impl AgentEvent {
    /// About how many bytes callers made it long by.
    pub fn byte_size(&self) -> usize {
        match self {
            AgentEvent::Began { rank, session, .. } => rank.agent.as_str().len() + session.len(),
            AgentEvent::Waits(pending) => {
                let request_size = |request: &LeaseRequest| 64 + request.resource.as_str().len();
                pending.rank.agent.as_str().len() + pending.requests.iter().map(request_size).sum::<usize>()
            }
            AgentEvent::Left { .. } => 0,
            AgentEvent::Reported { agent, session, .. } => agent.as_str().len() + session.len(),
            AgentEvent::Touched { agent, leases, .. } => agent.as_str().len() + 8 * leases.len(),
            AgentEvent::Strayed { agent, outside, .. } => {
                let each = |(resource, _): &(Resource, LeaseMode)| 16 + resource.as_str().len();
                agent.as_str().len() + outside.iter().map(each).sum::<usize>()
            }
            AgentEvent::Died { agent, .. } | AgentEvent::UsedUp { agent, .. } => agent.as_str().len(),
        }
    }

    pub fn occurred_at(&self) -> Tick {
        match self {
            AgentEvent::Waits(pending) => pending.at,
            AgentEvent::Began { at, .. }
            | AgentEvent::Left { at, .. }
            | AgentEvent::Died { at, .. }
            | AgentEvent::Reported { at, .. }
            | AgentEvent::Touched { at, .. }
            | AgentEvent::Strayed { at, .. }
            | AgentEvent::UsedUp { at, .. } => *at,
        }
    }
}
