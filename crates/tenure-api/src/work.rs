//! Work: leases that say what their holder may do, and how much of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::lease::Lease;

/// What a lease allows: what it names and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkScope {
    /// On which work.
    #[serde(default)]
    #[schema(max_items = 64)]
    pub work_ids: Vec<String>,
    /// With which tools.
    #[serde(default)]
    #[schema(max_items = 64)]
    pub tools: Vec<String>,
    /// In which namespaces: each with what is below it at `/`.
    #[serde(default)]
    #[schema(max_items = 64)]
    pub namespaces: Vec<String>,
}

/// Amounts of a work budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Budget {
    /// Number of agent runs.
    #[serde(default)]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub episodes: u64,
    /// Number of tool calls.
    #[serde(default)]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub tool_calls: u64,
    /// Number of tokens read and written.
    #[serde(default)]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub tokens: u64,
    /// Running time in milliseconds.
    #[serde(default)]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub duration_ms: u64,
}

/// Limits of a work budget: omitted limits are unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BudgetLimits {
    /// Maximum number of agent runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub episodes: Option<u64>,
    /// Maximum number of tool calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub tool_calls: Option<u64>,
    /// Maximum number of tokens read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub tokens: Option<u64>,
    /// Maximum running time in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub duration_ms: Option<u64>,
}

/// Request to claim work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkClaimRequest {
    /// Work id: the leased resource is `work:` and this id.
    #[schema(min_length = 1, max_length = 123, example = "T-17")]
    pub work_id: String,
    /// Name of the holder.
    #[schema(min_length = 1, max_length = 128, example = "planner")]
    pub actor_id: String,
    /// TTL in milliseconds, from 1000 to 86400000, default 60000.
    #[serde(rename = "ttlMs", default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1_000, maximum = 86_400_000)]
    pub ttl_ms: Option<u64>,
    /// Scope of the lease, default unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<WorkScope>,
    /// Budget limits, default unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetLimits>,
    /// Labels of the lease: at most 32, each part at most 256 bytes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// Request to renew a work lease. It has no `Debug`, because of the token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkRenewalRequest {
    /// Id of the lease.
    pub lease_id: String,
    /// Lease token returned by claim or derive.
    pub token: String,
    /// New TTL in milliseconds, from 1000 to 86400000.
    #[serde(rename = "ttlMs", default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1_000, maximum = 86_400_000)]
    pub ttl_ms: Option<u64>,
}

/// Request to release a work lease. It has no `Debug`, because of the token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkReleaseRequest {
    /// Id of the lease.
    pub lease_id: String,
    /// Lease token returned by claim or derive.
    pub token: String,
    /// Reason: `COMPLETED` (default), `ABORTED` or `VOLUNTARY`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(COMPLETED|ABORTED|VOLUNTARY)$")]
    pub reason: Option<String>,
}

/// Request to derive a work lease. It has no `Debug`, because of the token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkDerivationRequest {
    /// Id of the parent lease.
    pub lease_id: String,
    /// Token of the parent lease.
    pub token: String,
    /// Work id allowed by the parent.
    #[schema(min_length = 1, max_length = 123)]
    pub work_id: String,
    /// Name of the holder.
    #[schema(min_length = 1, max_length = 128)]
    pub actor_id: String,
    /// TTL in milliseconds, from 1000, at most the parent's remaining time.
    #[serde(rename = "ttlMs")]
    #[schema(minimum = 1_000, maximum = 86_400_000)]
    pub ttl_ms: u64,
    /// Scope within the parent's, by default the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<WorkScope>,
    /// Budget taken from the parent permanently; omitted amounts are 0.
    pub budget: Budget,
}

/// Request to spend budget, all amounts or none. It has no `Debug`, because of the token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkSpendRequest {
    /// Id of the lease.
    pub lease_id: String,
    /// Lease token returned by claim or derive.
    pub token: String,
    /// Number of agent runs.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schema(maximum = 9_007_199_254_740_991_u64, required = false)]
    pub episodes: u64,
    /// Number of tool calls.
    #[serde(rename = "toolCalls", default, skip_serializing_if = "is_zero")]
    #[schema(maximum = 9_007_199_254_740_991_u64, required = false)]
    pub tool_calls: u64,
    /// Number of tokens read and written.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schema(maximum = 9_007_199_254_740_991_u64, required = false)]
    pub tokens: u64,
    /// Running time in milliseconds.
    #[serde(rename = "durationMs", default, skip_serializing_if = "is_zero")]
    #[schema(maximum = 9_007_199_254_740_991_u64, required = false)]
    pub duration_ms: u64,
    /// Purpose, checked against the scope.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<SpendPurpose>,
}

/// The purpose of spending: omitted fields are not checked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SpendPurpose {
    /// Id of the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256)]
    pub work_id: Option<String>,
    /// Tool that is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256)]
    pub tool: Option<String>,
    /// Namespace that is accessed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256)]
    pub namespace: Option<String>,
}

/// The result of spending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpendResult {
    /// Id of the lease.
    pub lease_id: String,
    /// Remaining budget after spending.
    pub remaining: Budget,
    /// Whether any amount is 0.
    pub exhausted: bool,
}

/// The scope and budget of a work lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkView {
    /// Id of the work.
    #[serde(rename = "work_id")]
    pub work_id: String,
    /// Scope of the lease, unlimited if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<WorkScope>,
    /// Budget at the grant.
    pub budget: Budget,
    /// Budget spent so far.
    pub spent: Budget,
    /// Budget transferred to derived leases, permanently.
    pub given: Budget,
    /// Remaining budget of the lease.
    pub remaining: Budget,
    /// Whether any remaining amount is 0.
    pub exhausted: bool,
    /// Id of the parent lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Ids of active derived leases, ordered by fence.
    #[serde(default)]
    pub children: Vec<String>,
}

/// A granted work lease with its token. It has no `Debug`, because of the token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkGrant {
    /// Lease that was granted.
    pub lease: Lease,
    /// Scope and budget.
    pub work: WorkView,
    /// Lease token to renew, release, spend and derive.
    pub token: String,
    /// Signed proof of grant and scope, verifiable offline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passport: Option<String>,
    /// Milliseconds of validity, counted from when the client sent the request.
    pub valid_for_ms: u64,
}

/// A work lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkResponse {
    /// Lease, active or ended.
    pub lease: Lease,
    /// Scope and budget of the lease.
    pub work: WorkView,
}

fn is_zero(amount: &u64) -> bool {
    *amount == 0
}
