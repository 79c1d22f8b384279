//! Requests and responses of the agents API. Names follow the KLIS documents.

mod state;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
pub use state::{
    AgentEventDetails, AgentList, AgentStateReport, AgentView, AgentWait, ContentionEdge, ContentionGraph,
    ContentionNode, DigestIdentity, DigestRecovery, PendingIntent, ResourceAccess, ResourceState,
    ResourceTouchReport, StateDigest, TouchResult,
};
use utoipa::ToSchema;

/// Request for all resources that an agent is about to touch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Id of the agent session.
    #[schema(min_length = 1, max_length = 256)]
    pub session_id: String,
    /// Id of the agent.
    #[schema(min_length = 1, max_length = 256, example = "agent-1")]
    pub agent_id: String,
    /// Intended accesses, from 1 to 256.
    #[schema(min_items = 1, max_items = 256)]
    pub intents: Vec<ManifestIntent>,
    /// TTL in milliseconds, from 1000, reduced to the configured maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1_000, example = 60_000)]
    pub ttl: Option<u64>,
    /// Start of the attempt in milliseconds: the smaller, the higher the priority. Default: smallest intent
    /// timestamp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_timestamp: Option<u64>,
    /// Maximum wait in milliseconds, from 1.
    #[serde(rename = "waitTimeoutMs", default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub wait_timeout_ms: Option<u64>,
}

/// One intended access.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ManifestIntent {
    /// Agent's id for the intent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 256)]
    pub id: Option<String>,
    /// Agent's description of the actor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4_096)]
    pub subject: Option<String>,
    /// Requested access mode.
    #[schema(pattern = "^(PROVIDES|CONSUMES|DEPENDS_ON|MUTATES|DELETES|RENAMES)$", example = "MUTATES")]
    pub predicate: String,
    /// Object to access.
    pub object: ManifestObject,
    /// Time of the intent in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<u64>,
    /// Agent's confidence, from 0 to 1, without effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1)]
    pub confidence: Option<f64>,
    /// Session id, if sent equal to the manifest's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 256)]
    pub session_id: Option<String>,
}

/// An object that an agent is about to touch: the resource `TYPE:path`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ManifestObject {
    /// Type: `FILE`, `SYMBOL`, `API_ENDPOINT`, `DATABASE_TABLE` or `CONFIG_KEY`.
    #[schema(pattern = "^(FILE|SYMBOL|API_ENDPOINT|DATABASE_TABLE|CONFIG_KEY)$", example = "FILE")]
    pub resource_type: String,
    /// Path: a trailing `/`, or the first `*` or `?`, covers all that starts with the part before it.
    #[schema(min_length = 1, max_length = 4_096, example = "src/lib.rs")]
    pub path: String,
}

/// The verdict on a manifest: the worst verdict of its intents, because all or none is granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "verdict", rename_all = "UPPERCASE")]
pub enum ManifestVerdict {
    /// All leases were granted.
    Granted {
        /// Leases in order of first mention, one per resource.
        leases: Vec<AgentLease>,
    },
    /// The agent waits; repeat the manifest for the current verdict.
    #[serde(rename_all = "camelCase")]
    Wait {
        /// Milliseconds until the wait times out.
        wait_timeout_ms: u64,
        /// Time of the timeout, RFC 3339 in UTC.
        wait_until: String,
        /// Position among agents waiting for the same resources, from 1.
        position: usize,
        /// Names of blocking holders.
        blocked_by: Vec<String>,
    },
    /// The agent must abort and may retry with the same priority.
    #[serde(rename_all = "camelCase")]
    Die {
        /// Milliseconds until the retry.
        retry_after_ms: u64,
        /// Priority timestamp for the retry.
        #[serde(rename = "priority_timestamp")]
        priority_timestamp: u64,
        /// Names of blocking holders.
        blocked_by: Vec<String>,
        /// Ids of its leases revoked for older agents.
        ended: Vec<String>,
    },
}

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
