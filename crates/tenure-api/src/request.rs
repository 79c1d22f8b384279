//! Requests about plain leases.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Request to acquire a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AcquireRequest {
    /// Resource to lease, `domain:name`.
    #[schema(min_length = 1, max_length = 128, example = "deploy:prod")]
    pub resource: String,
    /// Name of the holder.
    #[schema(min_length = 1, max_length = 128, example = "ci-42")]
    pub holder: String,
    /// TTL in milliseconds, from 1000 to 86400000.
    #[schema(minimum = 1_000, maximum = 86_400_000, example = 30_000)]
    pub ttl_ms: u64,
    /// Lease mode: `exclusive` (default) or `shared`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(exclusive|shared)$")]
    pub mode: Option<String>,
    /// Maximum wait in milliseconds, from 0 (no wait) to 86400000.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schema(maximum = 86_400_000)]
    pub wait_ms: u64,
    /// Labels of the lease: at most 32, each part at most 256 bytes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl AcquireRequest {
    /// An exclusive lease, without waiting and without labels.
    pub fn new(resource: impl Into<String>, holder: impl Into<String>, ttl: Duration) -> Self {
        Self {
            resource: resource.into(),
            holder: holder.into(),
            ttl_ms: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX),
            mode: None,
            wait_ms: 0,
            labels: BTreeMap::new(),
        }
    }
}

/// Request to renew a lease. It has no `Debug`, because of the token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RenewalRequest {
    /// Lease token returned by acquire.
    pub token: String,
    /// New TTL in milliseconds, from 1000 to 86400000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1_000, maximum = 86_400_000)]
    pub ttl_ms: Option<u64>,
}

/// Request to release a lease. It has no `Debug`, because of the token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseRequest {
    /// Lease token returned by acquire.
    pub token: String,
    /// Reason: `COMPLETED` (default), `ABORTED` or `VOLUNTARY`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(COMPLETED|ABORTED|VOLUNTARY)$")]
    pub reason: Option<String>,
}

/// Request to acquire several leases atomically.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchAcquireRequest {
    /// From 1 to 256 requests with one holder and one `waitMs`.
    #[schema(min_items = 1, max_items = 256)]
    pub leases: Vec<AcquireRequest>,
}

/// Request to transfer a lease. It has no `Debug`, because of the token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferRequest {
    /// Lease token returned by acquire.
    pub token: String,
    /// Name of the new holder.
    #[schema(min_length = 1, max_length = 128)]
    pub to: String,
}

/// Request to change the mode of a lease. It has no `Debug`, because of the token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ModeChangeRequest {
    /// Lease token returned by acquire.
    pub token: String,
    /// New mode: by default `exclusive` for upgrade, `shared` for downgrade.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(exclusive|shared)$")]
    pub mode: Option<String>,
}

/// Request to revoke a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RevocationRequest {
    /// Reason recorded in the ledger.
    pub reason: String,
}

/// Request to create an API token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApiTokenRequest {
    /// Unique token name, also the principal, from 1 to 128 bytes.
    pub name: String,
    /// API scopes: `leases:read`, `leases:write`, `control:write`, `v3:write`, `admin`.
    pub scopes: Vec<String>,
    /// Permitted resource prefixes, at most 64; empty permits all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Lifetime in milliseconds, from 1 to 3153600000000; default unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// An API token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiTokenView {
    /// Token id for use in requests.
    pub id: String,
    /// Name of the token.
    pub name: String,
    /// Principal of the token.
    pub principal: String,
    /// API scopes granted to the token.
    pub scopes: Vec<String>,
    /// Permitted resource prefixes; empty permits all.
    pub resources: Vec<String>,
    /// Time of creation, RFC 3339 in UTC.
    pub created_at: String,
    /// Time of expiry, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Time of last use since server start, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
}

/// A new API token with its secret, shown only once. It has no `Debug`, because of the secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedApiToken {
    /// Token without its secret.
    pub token: ApiTokenView,
    /// Secret for `Authorization: Bearer …`.
    pub secret: String,
}

/// A list of valid API tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApiTokenList {
    /// Tokens in order of creation.
    pub tokens: Vec<ApiTokenView>,
}

/// A revoked API token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevokedApiToken {
    /// Token without its secret.
    pub token: ApiTokenView,
    /// Number of the principal's leases that were revoked.
    pub revoked_leases: usize,
}
