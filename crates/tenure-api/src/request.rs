//! What can be asked about plain leases.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use utoipa::ToSchema;

/// `POST /v1/leases`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AcquireRequest {
    /// On what: `domain:name`.
    #[schema(min_length = 1, max_length = 128, example = "deploy:prod")]
    pub resource: String,
    /// Who will hold it.
    #[schema(min_length = 1, max_length = 128, example = "ci-42")]
    pub holder: String,
    /// For how long, unless it is renewed.
    #[schema(minimum = 1_000, maximum = 86_400_000, example = 30_000)]
    pub ttl_ms: u64,
    /// `exclusive`, which is also what is meant by nothing, or `shared`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(exclusive|shared)$")]
    pub mode: Option<String>,
    /// How long to wait for it. 0 is not at all.
    #[serde(skip_serializing_if = "is_zero")]
    #[schema(maximum = 86_400_000)]
    pub wait_ms: u64,
    /// What the caller wants to have noted.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
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

/// `POST /v1/leases/{id}/renew`. It has no `Debug`, because of the token.
#[derive(Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RenewalRequest {
    /// What came with the lease.
    pub token: String,
    /// Another length from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1_000, maximum = 86_400_000)]
    pub ttl_ms: Option<u64>,
}

/// `POST /v1/leases/{id}/release`. It has no `Debug`, because of the token.
#[derive(Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseRequest {
    /// What came with the lease.
    pub token: String,
    /// `COMPLETED`, which is also what is meant by nothing, `ABORTED` or `VOLUNTARY`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(COMPLETED|ABORTED|VOLUNTARY)$")]
    pub reason: Option<String>,
}

/// `POST /v1/leases/batch`: all of these, or none. One holder and one `waitMs` for all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchAcquireRequest {
    /// What is wanted.
    #[schema(min_items = 1, max_items = 256)]
    pub leases: Vec<AcquireRequest>,
}

/// `POST /v1/leases/{id}/transfer`. It has no `Debug`, because of the token.
#[derive(Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferRequest {
    /// What came with the lease.
    pub token: String,
    /// Who holds it from now on.
    #[schema(min_length = 1, max_length = 128)]
    pub to: String,
}

/// `POST /v1/leases/{id}/upgrade` and `/downgrade`. It has no `Debug`, because of the token.
#[derive(Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ModeChangeRequest {
    /// What came with the lease.
    pub token: String,
    /// The mode from now on; nothing is `exclusive` for an upgrade and `shared` for a downgrade.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(exclusive|shared)$")]
    pub mode: Option<String>,
}

/// `POST /v1/leases/{id}/revoke`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RevocationRequest {
    /// Why, for people; it stands in the ledger.
    pub reason: String,
}

/// `POST /v1/tokens`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApiTokenRequest {
    /// Who speaks with it: the principal. No two living tokens have the same.
    pub name: String,
    /// What it may do: `leases:read`, `leases:write`, `control:write`, `v3:write`, `admin`.
    pub scopes: Vec<String>,
    /// On what: resources that begin with one of these. None is all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// How long it is good for; nothing is until it is revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_ms: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
