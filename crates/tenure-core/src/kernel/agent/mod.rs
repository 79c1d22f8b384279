//! Agents: an agent declares all that it is about to use, and is granted all of it, waits, or aborts (wait-die).
//!
//! An agent that only younger agents block waits. Any other aborts, releases what an older one waits for, and tries again
//! later with the same age. So waits lead only from old to young, without a cycle. A waiting agent that an older one blocks
//! aborts.
//!
//! Plain leases and those of other APIs have no age. An agent that they block aborts: it must never wait for a holder that
//! might wait for it. Plain requests wait behind waiting agents. A holder that waits as an agent, or holds what an agent
//! waits for, does not also wait in the FIFO queue, and an agent does not wait for a holder that does.

mod agent_limits;
mod codec;
mod decide;
mod decision;
mod declare;
mod state;
mod wait_die;

use std::sync::Arc;

pub(super) use agent_limits::enforce_limits;
pub(super) use decide::decide;
pub(super) use decision::{
    AgentDecision, is_barred_from_queue, record_change, requested_lease_count, time_out_wait_entries_near,
    wait_entries_conflicting,
};
pub use state::AgentRecord;
pub(super) use state::{AgentStore, conflicts_with};
pub(super) use wait_die::{reevaluate, reevaluate_all};

use crate::kernel::lease::lease_request::LeaseRequest;
use crate::kernel::outcome::LeaseEnd;
use crate::value::{Fence, Holder, LeaseMode, Principal, Resource, Tick, TickDuration, Ticket};

/// The age of an agent in its attempt. Smaller is older, and older is stronger; of two of the same age the one whose name
/// comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentRank {
    /// When its attempt began, in milliseconds, as it said.
    pub priority: u64,
    pub agent: Holder,
}

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
