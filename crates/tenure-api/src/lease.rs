//! Leases as the world sees them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A lease at the time of the response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lease {
    /// Lease id for use in requests.
    pub id: String,
    /// Leased resource, `domain:name`.
    pub resource: String,
    /// Name of the holder.
    pub holder: String,
    /// Lease mode: `exclusive` or `shared`, or an agent's predicate.
    pub mode: String,
    /// State of the lease.
    pub state: LeaseState,
    /// Fence of the lease: increases with every grant.
    pub fence: u64,
    /// TTL in milliseconds.
    pub ttl_ms: u64,
    /// Remaining milliseconds, counted from when the client sent the request; 0 after the end.
    pub remaining_ms: u64,
    /// Time of the grant, RFC 3339 in UTC; times are informative.
    pub acquired_at: String,
    /// Time of expiry unless renewed, RFC 3339 in UTC.
    pub expires_at: String,
    /// Number of renewals.
    pub renewal_count: u32,
    /// Labels set by the caller.
    pub labels: BTreeMap<String, String>,
    /// Time of the end, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Cause of the end: `EXPIRED`, release reason or revocation cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Waiters blocked by this lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recall: Option<Recall>,
}

/// Waiters blocked by a lease, so that its holder can release or transfer it early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Recall {
    /// Holder name of the first waiter.
    pub by: String,
    /// Number of blocked waiters.
    pub waiting: usize,
    /// Milliseconds until the first waiter times out.
    pub remaining_ms: u64,
}

/// State of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum LeaseState {
    /// Held by its holder.
    #[default]
    Active,
    /// Ended by its TTL.
    Expired,
    /// Ended by a release or a revocation.
    Released,
}

/// A granted lease with its token. It has no `Debug`, because of the token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaseGrant {
    /// Lease that was granted.
    pub lease: Lease,
    /// Lease token for renewal and release.
    pub token: String,
    /// Signed proof of the grant, verifiable offline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passport: Option<String>,
    /// Milliseconds of validity, counted from when the client sent the request.
    pub valid_for_ms: u64,
}

/// Leases granted together, in request order. It has no `Debug`, because of the tokens.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseGrants {
    /// Leases with their tokens.
    pub leases: Vec<LeaseGrant>,
}

/// A renewed lease.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaseRenewal {
    /// Lease after the renewal.
    pub lease: Lease,
    /// Signed proof of the new expiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passport: Option<String>,
    /// Milliseconds of validity, counted from when the client sent the request.
    pub valid_for_ms: u64,
}

/// A single lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseResponse {
    /// Lease, active or ended.
    pub lease: Lease,
}

/// One page of a lease list, ordered by fence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeasePage {
    /// Leases of the page.
    pub leases: Vec<Lease>,
    /// Cursor for `after` of the next request, null on the last page.
    pub next: Option<String>,
}

impl fmt::Display for LeaseState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            LeaseState::Active => "ACTIVE",
            LeaseState::Expired => "EXPIRED",
            LeaseState::Released => "RELEASED",
        })
    }
}
