//! The leases of agents, and what becomes of those that they name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A lease of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentLease {
    /// Id of the lease.
    pub id: String,
    /// Leased resource, `TYPE:path`.
    #[schema(example = "FILE:src/lib.rs")]
    pub resource: String,
    /// Access mode of the lease.
    pub predicate: String,
    /// Id of the agent.
    pub agent_id: String,
    /// Time of the grant, RFC 3339 in UTC.
    pub acquired_at: String,
    /// Time of expiry, RFC 3339 in UTC.
    pub expires_at: String,
    /// TTL in milliseconds, restarted by a heartbeat.
    pub ttl: u64,
    /// Fence: increases with every grant.
    pub fence: u64,
    /// Remaining time in milliseconds.
    #[serde(rename = "remainingMs")]
    pub remaining_ms: u64,
}

/// An agent and leases to renew, release or reconcile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentLeaseIds {
    /// Id of the agent.
    #[schema(min_length = 1, max_length = 256)]
    pub agent_id: String,
    /// Lease ids, at most 1024.
    #[schema(max_items = 1_024)]
    pub lease_ids: Vec<String>,
}

/// The results of a heartbeat, in request order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatResult {
    /// Leases that were renewed.
    pub renewed: Vec<HeartbeatRenewal>,
    /// Leases that ended or belong to another holder.
    pub rejected: Vec<HeartbeatRejection>,
}

/// A lease renewed by a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatRenewal {
    /// Id of the lease.
    pub id: String,
    /// New time of expiry, RFC 3339 in UTC.
    pub expires_at: String,
    /// Remaining time in milliseconds.
    #[serde(rename = "remainingMs")]
    pub remaining_ms: u64,
}

/// A lease not renewed by a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatRejection {
    /// Id of the lease.
    pub id: String,
    /// Rejection code: `EXPIRED`, `RELEASED`, `REVOKED` or `NOT_FOUND`.
    pub code: String,
}

/// The results of a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentReleaseResult {
    /// Ids of ended leases, including earlier ends.
    pub released: Vec<String>,
    /// Ids that are not leases of the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

/// The current state of leases, overriding the agent's memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReconcileResult {
    /// Lease states by requested id.
    pub leases: BTreeMap<String, ReconciledLease>,
}

/// The current state of one lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReconciledLease {
    /// Whether the agent holds it.
    pub held: bool,
    /// State: `ACTIVE`, `EXPIRED`, `RELEASED`, or `UNKNOWN` (forgotten, or never this agent's).
    pub state: String,
    /// Remaining milliseconds, 0 after the end.
    pub remaining_ms: u64,
    /// Leased resource, `TYPE:path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Access mode of the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicate: Option<String>,
    /// Time of expiry, RFC 3339 in UTC.
    #[serde(rename = "expires_at", default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Fence of the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    /// Cause of the end: `EXPIRED`, `COMPLETED`, `ABORTED`, `VOLUNTARY`, `DIED`, `REVOKED`, ….
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Time of the end, RFC 3339 in UTC.
    #[serde(rename = "ended_at", default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Current conflicting holders, if the lease ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_by: Vec<String>,
}
