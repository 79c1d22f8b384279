//! Requests and responses of the worker. A worker in the server's own process uses the same.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::intent::IntentSessionView;

/// Request to acquire or renew the worker's leader lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeaderLockRequest {
    /// Worker id: `worker:BOOT:NAMESPACE:PID:START`.
    pub worker: String,
    /// TTL in milliseconds, from 1000 to 86400000.
    #[schema(minimum = 1_000, maximum = 86_400_000)]
    pub ttl_ms: u64,
    /// Id of a dead worker on this machine, whose leader lock is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead: Option<String>,
}

/// The leader lock held by the worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaderLockGrant {
    /// Fence of the leader lock, sent with every request.
    pub guard: u64,
    /// Id of the leader lock's lease, with the prefix of all lease ids of this ledger.
    pub lease_id: String,
    /// Remaining time in milliseconds.
    pub remaining_ms: u64,
}

/// Request for changed sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IntentSessionChangesRequest {
    /// Fence of the leader lock.
    pub guard: u64,
    /// Last known revision, 0 for all active sessions.
    pub since: u64,
    /// Maximum wait in milliseconds, from 0 to 60000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 60_000)]
    pub wait_ms: Option<u64>,
}

/// Changed sessions, latest change last; only active ones if `since` was 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IntentSessionChanges {
    /// Revision for the next request.
    pub revision: u64,
    /// Sessions in their current state.
    pub sessions: Vec<IntentSessionView>,
    /// Whether more changes remain for an immediate request.
    #[serde(default)]
    pub more: bool,
}

/// Request to take a session and its leases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IntentSessionTakeRequest {
    /// Fence of the leader lock.
    pub guard: u64,
    /// Id of the session.
    #[serde(rename = "session_id")]
    pub session_id: String,
    /// Number of tuners, from 0 to 64.
    #[schema(maximum = 64)]
    pub tuners: u32,
    /// TTL in milliseconds, from 1000 to 86400000.
    #[schema(minimum = 1_000, maximum = 86_400_000)]
    pub ttl_ms: u64,
}

/// Report that a session's pipeline runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IntentSessionRunningReport {
    /// Fence of the leader lock.
    pub guard: u64,
    /// Id of the session.
    #[serde(rename = "session_id")]
    pub session_id: String,
    /// Worker's name for the processes.
    pub process: String,
}

/// Report that a session's pipeline ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IntentSessionFinishRequest {
    /// Fence of the leader lock.
    pub guard: u64,
    /// Id of the session.
    #[serde(rename = "session_id")]
    pub session_id: String,
    /// Reason: `R_PIPELINE_EXITED`, `R_PIPELINE_FAILED`, `R_STOPPED`, `R_LEASE_EXPIRED` or
    /// `R_WORKER_STOPPED`.
    #[schema(pattern = "^R_(PIPELINE_EXITED|PIPELINE_FAILED|STOPPED|LEASE_EXPIRED|WORKER_STOPPED)$")]
    pub reason: String,
    /// Detail for the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// The state of a session after a worker's request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IntentSessionStatus {
    /// State: `STARTING`, `RUNNING`, `STOPPING` or `ENDED`.
    pub state: String,
    /// Reason for the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Outcome of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Leases after a take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<IntentSessionLeases>,
}

/// The leases of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IntentSessionLeases {
    /// Number of the tuner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<u32>,
    /// Lease ids: target, then tuner.
    pub leases: Vec<String>,
    /// Fences in the same order.
    pub fences: Vec<u64>,
    /// Milliseconds until the first expires.
    pub remaining_ms: u64,
}

/// Request to renew the leader lock and session leases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IntentSessionRenewalRequest {
    /// Fence of the leader lock.
    pub guard: u64,
    /// TTL in milliseconds, from 1000 to 86400000.
    #[schema(minimum = 1_000, maximum = 86_400_000)]
    pub ttl_ms: u64,
    /// Session ids, at most 1024.
    #[schema(max_items = 1_024)]
    pub sessions: Vec<String>,
}

/// The results of a renewal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IntentSessionRenewals {
    /// Remaining milliseconds of the leader lock.
    pub remaining_ms: u64,
    /// Sessions in request order.
    pub sessions: Vec<IntentSessionRenewal>,
}

/// The leases of one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IntentSessionRenewal {
    /// Id of the session.
    #[serde(rename = "session_id")]
    pub session_id: String,
    /// Whether all are held; otherwise the pipeline must end.
    pub held: bool,
    /// Milliseconds until the first expires.
    pub remaining_ms: u64,
    /// Session state, if held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// Request to end sessions whose processes and worker are gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IntentSessionWipeRequest {
    /// Fence of the leader lock.
    pub guard: u64,
    /// Session ids, at most 1024.
    #[schema(max_items = 1_024)]
    pub sessions: Vec<String>,
}

/// The result of a wipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WipeResult {
    /// Number of ended sessions.
    pub wiped: usize,
}

/// Request to release the leader lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaderLockReleaseRequest {
    /// Fence of the leader lock.
    pub guard: u64,
}
