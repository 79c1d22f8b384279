//! What can be asked about plain leases.

use std::collections::BTreeMap;

use serde::Serialize;

/// `POST /v1/leases`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Acquire {
    /// On what: `domain:name`.
    pub resource: String,
    /// Who will hold it.
    pub holder: String,
    /// For how long, unless it is renewed.
    pub ttl_ms: u64,
    /// `exclusive`, which is also what is meant by nothing, or `shared`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// How long to wait for it. 0 is not at all.
    #[serde(skip_serializing_if = "is_zero")]
    pub wait_ms: u64,
    /// What the caller wants to have noted.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// `POST /v1/leases/{id}/renew`. It has no `Debug`, because of the token.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Renew {
    /// What came with the lease.
    pub token: String,
    /// Another length from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}

/// `POST /v1/leases/{id}/release`. It has no `Debug`, because of the token.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Release {
    /// What came with the lease.
    pub token: String,
    /// `COMPLETED`, which is also what is meant by nothing, `ABORTED` or `VOLUNTARY`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks like this")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
