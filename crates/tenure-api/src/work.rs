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

/// Amounts that are used up, or may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Budget {
    /// How many times an agent is run.
    #[serde(default)]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub episodes: u64,
    /// How many tools are called.
    #[serde(default)]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub tool_calls: u64,
    /// How many tokens are read and written.
    #[serde(default)]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub tokens: u64,
    /// For how many milliseconds something runs.
    #[serde(default)]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub duration_ms: u64,
}

/// Bounds on what is used up. What is not named has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BudgetLimits {
    /// How many times an agent may be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub episodes: Option<u64>,
    /// How many tools may be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub tool_calls: Option<u64>,
    /// How many tokens may be read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub tokens: Option<u64>,
    /// For how many milliseconds something may run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub duration_ms: Option<u64>,
}

/// `POST /v1/work/claim`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkClaimRequest {
    /// On which work: the resource is `work:` and this.
    #[schema(min_length = 1, max_length = 123, example = "T-17")]
    pub work_id: String,
    /// Who will hold it.
    #[schema(min_length = 1, max_length = 128, example = "planner")]
    pub actor_id: String,
    /// For how long, unless it is renewed; nothing is a minute.
    #[serde(rename = "ttlMs", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1_000, maximum = 86_400_000)]
    pub ttl_ms: Option<u64>,
    /// What its holder may do; nothing is everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<WorkScope>,
    /// How much of it; nothing is without bounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetLimits>,
    /// What the caller wants to have noted.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// `POST /v1/work/renew`. It has no `Debug`, because of the token.
#[derive(Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkRenewalRequest {
    /// Which lease.
    pub lease_id: String,
    /// What came with the lease.
    pub token: String,
    /// Another length from now on.
    #[serde(rename = "ttlMs", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1_000, maximum = 86_400_000)]
    pub ttl_ms: Option<u64>,
}

/// `POST /v1/work/release`. It has no `Debug`, because of the token.
#[derive(Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkReleaseRequest {
    /// Which lease.
    pub lease_id: String,
    /// What came with the lease.
    pub token: String,
    /// `COMPLETED`, which is also what is meant by nothing, `ABORTED` or `VOLUNTARY`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(COMPLETED|ABORTED|VOLUNTARY)$")]
    pub reason: Option<String>,
}

/// `POST /v1/work/derive`. It has no `Debug`, because of the token.
#[derive(Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkDerivationRequest {
    /// From which lease.
    pub lease_id: String,
    /// What came with that lease.
    pub token: String,
    /// On which work; the lease has to allow it.
    #[schema(min_length = 1, max_length = 123)]
    pub work_id: String,
    /// Who will hold it.
    #[schema(min_length = 1, max_length = 128)]
    pub actor_id: String,
    /// For how long: no longer than the lease lives.
    #[serde(rename = "ttlMs")]
    #[schema(minimum = 1_000, maximum = 86_400_000)]
    pub ttl_ms: u64,
    /// What its holder may do: a part of what the lease allows. Nothing is all of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<WorkScope>,
    /// How much of it. It is taken from the lease, for good. What is not named is nothing.
    pub budget: Budget,
}

/// `POST /v1/work/spend`. It has no `Debug`, because of the token.
#[derive(Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkSpendRequest {
    /// Of which lease.
    pub lease_id: String,
    /// What came with the lease.
    pub token: String,
    /// How many times an agent is run. All amounts are used up, or nothing is.
    #[serde(skip_serializing_if = "is_zero")]
    #[schema(maximum = 9_007_199_254_740_991_u64, required = false)]
    pub episodes: u64,
    /// How many tools are called.
    #[serde(rename = "toolCalls", skip_serializing_if = "is_zero")]
    #[schema(maximum = 9_007_199_254_740_991_u64, required = false)]
    pub tool_calls: u64,
    /// How many tokens are read and written.
    #[serde(skip_serializing_if = "is_zero")]
    #[schema(maximum = 9_007_199_254_740_991_u64, required = false)]
    pub tokens: u64,
    /// For how many milliseconds something runs.
    #[serde(rename = "durationMs", skip_serializing_if = "is_zero")]
    #[schema(maximum = 9_007_199_254_740_991_u64, required = false)]
    pub duration_ms: u64,
    /// What for. The lease has to allow it.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub purpose: Option<SpendPurpose>,
}

/// What something is spent for. What is not named is not asked about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SpendPurpose {
    /// On which work.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256)]
    pub work_id: Option<String>,
    /// With which tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256)]
    pub tool: Option<String>,
    /// In which namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256)]
    pub namespace: Option<String>,
}

/// The answer to a spend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpendResult {
    /// Of which lease.
    pub lease_id: String,
    /// What was left then.
    pub remaining: Budget,
    /// Whether of anything there was nothing left.
    pub exhausted: bool,
}

/// What a lease allows, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkView {
    /// On which work.
    #[serde(rename = "work_id")]
    pub work_id: String,
    /// What its holder may do; nothing is everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<WorkScope>,
    /// How much it had when it began.
    pub budget: Budget,
    /// How much was used up.
    pub spent: Budget,
    /// How much was given to leases that were derived from it, whatever became of them.
    pub given: Budget,
    /// How much is left.
    pub remaining: Budget,
    /// Whether of anything there is nothing left.
    pub exhausted: bool,
    /// The lease that it was derived from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The living leases that were derived from it, in the order of their fences.
    #[serde(default)]
    pub children: Vec<String>,
}

/// The answer to a claim and to a derivation. It has no `Debug`: whoever sees the token has the lease.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkGrant {
    /// The lease.
    pub lease: Lease,
    /// What it allows.
    pub work: WorkView,
    /// Renews and releases it, spends of it, and derives from it.
    pub token: String,
    /// Proves to others, without asking the server, that it was granted, and what it allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passport: Option<String>,
    /// How long it lives from when the request *arrived*. A client counts it from when it sent the request.
    pub valid_for_ms: u64,
}

/// `GET /v1/work/{lease_id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkResponse {
    /// The lease.
    pub lease: Lease,
    /// What it allows, and what became of it.
    pub work: WorkView,
}

fn is_zero(amount: &u64) -> bool {
    *amount == 0
}
