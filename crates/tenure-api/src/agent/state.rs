//! Reports of agents, and their state.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{AgentLease, ManifestIntent};

/// A report of an agent's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentStateReport {
    /// Id of the agent session.
    #[schema(min_length = 1, max_length = 256)]
    pub session_id: String,
    /// State of the agent.
    #[schema(
        pattern = "^(PLANNING|ACQUIRING|EXECUTING|PAUSED|VERIFYING|COMPLETED|ABORTED|DIE_RESTART)$",
        example = "EXECUTING"
    )]
    pub state: String,
    /// Digest remembered across a process restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<StateDigest>,
}

/// An agent's memory from before its process restarted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StateDigest {
    /// Digest version, always `1.0`.
    #[schema(example = "1.0")]
    pub version: String,
    /// Identity before the restart.
    pub identity: DigestIdentity,
    /// Progress before the restart.
    pub recovery: DigestRecovery,
}

/// The identity of an agent before a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DigestIdentity {
    /// Id of the agent.
    pub agent_id: String,
    /// Priority timestamp of its attempt.
    pub priority_timestamp: u64,
    /// Process epoch: stale if below the last reported one.
    pub epoch: u64,
}

/// The progress of an agent before a restart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DigestRecovery {
    /// Last reported state.
    pub last_phase: String,
    /// Intents not granted, at most 256.
    #[schema(max_items = 256)]
    pub pending_intents: Vec<ManifestIntent>,
}

/// The current state of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentView {
    /// Id of the agent.
    #[serde(rename = "agent_id")]
    pub agent_id: String,
    /// Id of the agent session.
    #[serde(rename = "session_id")]
    pub session_id: String,
    /// Last reported state, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Priority timestamp of its attempt: the smaller, the higher the priority.
    #[serde(rename = "priority_timestamp", default, skip_serializing_if = "Option::is_none")]
    pub priority_timestamp: Option<u64>,
    /// Process epoch last reported by the agent.
    pub epoch: u64,
    /// Time of the last change, RFC 3339 in UTC.
    pub changed_at: String,
    /// Leases that are active.
    pub leases: Vec<AgentLease>,
    /// Manifests that are waiting.
    pub waits: Vec<AgentWait>,
    /// Number of `DIE` verdicts in the attempt.
    pub deaths: u32,
    /// Milliseconds until the retry after `DIE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Resources touched without a lease in the attempt.
    pub outside: Vec<String>,
    /// Milliseconds with leases at this priority.
    pub held_ms: u64,
    /// Pending intents of the digest, only in the response to a report with one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PendingIntent>,
}

/// The current availability of a remembered intent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PendingIntent {
    /// Name of the resource, `TYPE:path`.
    pub resource: String,
    /// Requested access mode.
    pub predicate: String,
    /// Availability: `HELD` by this agent, `FREE`, or `BLOCKED`.
    pub now: String,
}

/// A waiting manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentWait {
    /// Resources with access modes.
    pub wants: Vec<ResourceAccess>,
    /// Start of the wait, RFC 3339 in UTC.
    pub since: String,
    /// Time of the timeout, RFC 3339 in UTC.
    pub wait_until: String,
    /// Names of blocking holders.
    pub blocked_by: Vec<String>,
}

/// A resource with an access mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResourceAccess {
    /// Name of the resource, `TYPE:path`.
    #[schema(example = "FILE:src/lib.rs")]
    pub resource: String,
    /// Requested access mode.
    #[schema(example = "MUTATES")]
    pub predicate: String,
}

/// A list of agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentList {
    /// Agents ordered by id.
    pub agents: Vec<AgentView>,
}

/// A report of resources that an agent touches or was seen to touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourceTouchReport {
    /// Resources with access modes, from 1 to 1024.
    #[schema(min_items = 1, max_items = 1_024)]
    pub resources: Vec<ResourceAccess>,
}

/// Confirmation that all touched resources are leased; otherwise the problem is `SCOPE_VIOLATION`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TouchResult {
    /// Number of touched resources.
    pub within: usize,
}

/// The agent of an event; fields that do not apply are omitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentEventDetails {
    /// Agent id, empty if no longer known.
    #[serde(rename = "agent_id")]
    pub agent_id: String,
    /// Id of the agent session.
    #[serde(rename = "session_id", default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Last reported state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Priority timestamp of its attempt.
    #[serde(rename = "priority_timestamp", default, skip_serializing_if = "Option::is_none")]
    pub priority_timestamp: Option<u64>,
    /// Process epoch last reported by the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// Ticket of the wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<u64>,
    /// Resources waited for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wants: Vec<ResourceAccess>,
    /// Time of the timeout, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_until: Option<String>,
    /// Milliseconds until the retry after `DIE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Resources touched without a lease.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<ResourceAccess>,
    /// Ids of the leases that were touched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leases: Vec<String>,
    /// Milliseconds with leases at one priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_ms: Option<u64>,
}

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
