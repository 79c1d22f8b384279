//! What the worker asks, and is told. A worker in the server's own process uses the same.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::intent::IntentSessionView;

/// `POST /api/v3/worker/guard`: be the one worker. Asked again by the one that is, it renews.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LeaderLockRequest {
    /// Which process asks: `worker:BOOT:NAMESPACE:PID:START`.
    pub worker: String,
    /// For how long.
    #[schema(minimum = 1_000, maximum = 86_400_000)]
    pub ttl_ms: u64,
    /// A worker of the same machine that is proven dead. If it has the guard, it loses it at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead: Option<String>,
}

/// The guard is the asker's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaderLockGrant {
    /// Its fence, which the worker names with everything that it asks.
    pub guard: u64,
    /// Its id. How it begins is how every lease of this ledger does.
    pub lease_id: String,
    /// How long it lasts.
    pub remaining_ms: u64,
}

/// `POST /api/v3/worker/changes`: which sessions changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IntentSessionChangesRequest {
    /// The worker's guard.
    pub guard: u64,
    /// The last revision that the worker knows; 0 is all that go on.
    pub since: u64,
    /// How long to wait for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 60_000)]
    pub wait_ms: Option<u64>,
}

/// The sessions that changed, the last change last. With `since` 0, those that go on only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IntentSessionChanges {
    /// What to ask with next.
    pub revision: u64,
    /// As they are now.
    pub sessions: Vec<IntentSessionView>,
    /// Whether there are more than fit into one answer. Ask for them at once.
    #[serde(default)]
    pub more: bool,
}

/// `POST /api/v3/worker/take`: this session with its leases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IntentSessionTakeRequest {
    /// The worker's guard.
    pub guard: u64,
    /// Which session.
    #[serde(rename = "session_id")]
    pub session_id: String,
    /// How many tuners there are.
    #[schema(maximum = 64)]
    pub tuners: u32,
    /// How long its leases last.
    #[schema(minimum = 1_000, maximum = 86_400_000)]
    pub ttl_ms: u64,
}

/// `POST /api/v3/worker/running`: its pipeline runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IntentSessionRunningReport {
    /// The worker's guard.
    pub guard: u64,
    /// Which session.
    #[serde(rename = "session_id")]
    pub session_id: String,
    /// The processes, as the worker names them.
    pub process: String,
}

/// `POST /api/v3/worker/finish`: its pipeline is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IntentSessionFinishRequest {
    /// The worker's guard.
    pub guard: u64,
    /// Which session.
    #[serde(rename = "session_id")]
    pub session_id: String,
    /// Why: `R_PIPELINE_EXITED`, `R_PIPELINE_FAILED`, `R_STOPPED`, `R_LEASE_EXPIRED` or `R_WORKER_STOPPED`.
    #[schema(pattern = "^R_(PIPELINE_EXITED|PIPELINE_FAILED|STOPPED|LEASE_EXPIRED|WORKER_STOPPED)$")]
    pub reason: String,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Where a session is, by what was asked or before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IntentSessionStatus {
    /// `STARTING`, `RUNNING`, `STOPPING` or `ENDED`.
    pub state: String,
    /// Why it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How it went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// After a take: what the session holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<IntentSessionLeases>,
}

/// What a session holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IntentSessionLeases {
    /// Which tuner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<u32>,
    /// The ids of its leases: of the target, and of the tuner.
    pub leases: Vec<String>,
    /// Their fences, in the same order.
    pub fences: Vec<u64>,
    /// How long the first of them lasts.
    pub remaining_ms: u64,
}

/// `POST /api/v3/worker/keep`: the worker lives, and so do these sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IntentSessionRenewalRequest {
    /// The worker's guard.
    pub guard: u64,
    /// For how long from now.
    #[schema(minimum = 1_000, maximum = 86_400_000)]
    pub ttl_ms: u64,
    /// Which sessions.
    #[schema(max_items = 1_024)]
    pub sessions: Vec<String>,
}

/// What became of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IntentSessionRenewals {
    /// How long the guard lasts.
    pub remaining_ms: u64,
    /// Each session, in the order asked for.
    pub sessions: Vec<IntentSessionRenewal>,
}

/// One session's leases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IntentSessionRenewal {
    /// Which session.
    #[serde(rename = "session_id")]
    pub session_id: String,
    /// Whether they live; else they are lost, and its pipeline must end.
    pub held: bool,
    /// How long the first of them lasts.
    pub remaining_ms: u64,
    /// Where the session is, if they live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// `POST /api/v3/worker/wipe`: the processes of these sessions were seen gone, and so was their worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IntentSessionWipeRequest {
    /// The worker's guard.
    pub guard: u64,
    /// Which sessions.
    #[schema(max_items = 1_024)]
    pub sessions: Vec<String>,
}

/// How many of them were over by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WipeResult {
    /// How many.
    pub wiped: usize,
}

/// `POST /api/v3/worker/leave`: the worker ends, in good order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaderLockReleaseRequest {
    /// The worker's guard.
    pub guard: u64,
}
