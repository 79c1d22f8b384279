//! Agents: who declares what it is about to do, all of it at once, and gets all of it, waits, or dies and comes back.
//!
//! Wait-die: whoever is older than everybody in its way waits, anybody else dies, gives back what an older one waits for,
//! and comes back later with the age that it has. So waits only ever lead from the old to the young, and no circle of them
//! can close. Where an older one comes in front of somebody who waits, that one dies too: it would wait for an older one.
//!
//! Plain leases and those of other faces have no age. An agent that finds one in its way dies: it must never wait for
//! somebody who might wait for it. Everybody else finds agents that wait in front of them. Who waits as an agent, or has what
//! an agent waits for, does not wait in line as well, and an agent does not wait for who does.

mod agent_limits;
mod command;
mod decide;
mod decision;
mod declare;
mod event;
mod grant;
mod report;
mod wait_die;

pub(super) use agent_limits::enforce_limits;
pub use command::{
    AgentCommand, AgentOutcome, AgentReport, DeclareManifest, HeartbeatOutcome, ReportedAgentState,
};
pub(super) use decide::decide;
pub(super) use decision::{
    AgentDecision, is_barred_from_queue, record_change, requested_lease_count, time_out_wait_entries_near,
    wait_entries_conflicting,
};
pub use event::{AgentEvent, AgentPhase, AgentWait, AgentWaitEnd};
pub(super) use wait_die::{reevaluate, reevaluate_all};

use crate::kernel::name::Holder;

/// The age of an agent in its attempt. Smaller is older, and older is stronger; of two of the same age the one whose name
/// comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentRank {
    /// When its attempt began, in milliseconds, as it said.
    pub priority: u64,
    pub agent: Holder,
}
