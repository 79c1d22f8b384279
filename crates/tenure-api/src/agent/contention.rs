//! Who has what, and who waits for whom.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::leases::AgentLease;

/// `GET /v1/resource/{id}/state`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResourceState {
    /// Which resource.
    pub resource: String,
    /// Whether somebody has it, or something that overlaps it.
    pub held: bool,
    /// The leases on it, and on what overlaps it.
    pub leases: Vec<AgentLease>,
    /// Who waits for it, or for what overlaps it: agents first, the oldest first, then everybody else in their order.
    pub waiting: Vec<String>,
}

/// `GET /v1/contention`: who waits for whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContentionGraph {
    /// Everybody who waits or is waited for.
    pub nodes: Vec<ContentionNode>,
    /// Who waits for whom, on what.
    pub edges: Vec<ContentionEdge>,
    /// There are more edges than are told at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// Somebody who waits or is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContentionNode {
    /// The agent, or another holder.
    pub id: String,
    /// The agent's priority; nothing for holders of plain leases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_timestamp: Option<u64>,
    /// What the agent said that it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// One waits for the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ContentionEdge {
    /// Who waits.
    pub from: String,
    /// For whom.
    pub to: String,
    /// For what.
    pub resource: String,
    /// In which way.
    pub predicate: String,
    /// Whether the other has it (`HOLDS`) or waits in front (`WAITS`).
    pub because: String,
    /// How long the one waits at the most, from now.
    #[serde(rename = "waitTimeoutMs")]
    pub wait_timeout_ms: u64,
    /// Any one of several resources would do, and this is one of them: the other need not go.
    #[serde(rename = "oneOfSeveral", default, skip_serializing_if = "std::ops::Not::not")]
    pub one_of_several: bool,
}
