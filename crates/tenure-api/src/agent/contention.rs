//! Leases and waiters of a resource, and the wait-for graph.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::leases::AgentLease;

/// The leases and waiters of a resource and of resources that overlap it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResourceState {
    /// Name of the resource.
    pub resource: String,
    /// Whether it or an overlapping resource is leased.
    pub held: bool,
    /// Active leases on it or overlapping it.
    pub leases: Vec<AgentLease>,
    /// Waiters: agents, oldest first, then the FIFO queue.
    pub waiting: Vec<String>,
}

/// The wait-for graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContentionGraph {
    /// Waiters and their blockers.
    pub nodes: Vec<ContentionNode>,
    /// Waits, one per blocker and resource.
    pub edges: Vec<ContentionEdge>,
    /// Whether edges beyond the first 10000 are missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// A waiter or blocker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContentionNode {
    /// Name of the agent or holder.
    pub id: String,
    /// Priority timestamp, only for agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_timestamp: Option<u64>,
    /// State reported by the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// A waiter and one of its blockers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContentionEdge {
    /// Name of the waiter.
    pub from: String,
    /// Name of the blocker.
    pub to: String,
    /// Resource waited for.
    pub resource: String,
    /// Requested access mode.
    pub predicate: String,
    /// Cause of the wait: `HOLDS` (blocker has a lease) or `WAITS` (blocker is ahead).
    pub because: String,
    /// Milliseconds until the wait times out.
    #[serde(rename = "waitTimeoutMs")]
    pub wait_timeout_ms: u64,
    /// Whether another resource would also suffice.
    #[serde(rename = "oneOfSeveral", default, skip_serializing_if = "std::ops::Not::not")]
    pub one_of_several: bool,
}
