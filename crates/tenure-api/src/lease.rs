//! Leases in responses.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error_code::Code;

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

/// The queue of a resource, in order of service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Queue {
    /// Resource of the queue.
    pub resource: String,
    /// Waiters in queue order.
    pub waiting: Vec<Waiter>,
}

/// A request waiting in a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waiter {
    /// Ticket number: increases with every wait.
    pub ticket: u64,
    /// Position in this queue, from 1.
    pub position: usize,
    /// Name of the waiting holder.
    pub holder: String,
    /// Requested mode of this resource.
    pub mode: String,
    /// All requested resources, granted together.
    pub resources: Vec<String>,
    /// Start of the wait, RFC 3339 in UTC.
    pub since: String,
    /// Milliseconds waited so far.
    pub waited_ms: u64,
    /// Milliseconds until the wait times out.
    pub remaining_ms: u64,
}

/// The leases, queue and last denial of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Resource that is explained.
    pub resource: String,
    /// Active leases on it or overlapping it.
    pub held: Vec<Lease>,
    /// Waiters in queue order.
    pub waiting: Vec<Waiter>,
    /// Last denial, if still recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_refusal: Option<DenialView>,
    /// Lease that ended last, if still recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_end: Option<Lease>,
    /// Sentences with the same content.
    pub words: Vec<String>,
}

/// A request that was denied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DenialView {
    /// Time of the denial, RFC 3339 in UTC.
    pub at: String,
    /// Milliseconds since the denial.
    pub ago_ms: u64,
    /// Error code of the denial.
    pub code: Code,
    /// Explanation of the denial.
    pub detail: String,
    /// Name of the requesting holder.
    pub holder: String,
    /// Principal that sent the request.
    pub principal: String,
}

/// The control lease, as `control.status` and `GET /api/v1/control/status` return it, and as part of what `control.acquire`
/// returns and of `control.stateChanged`. The token is nowhere in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControlStatus {
    /// Whether a control lease is active.
    pub active: bool,
    /// Names the lease.
    pub lease_id: String,
    /// What it is about: `global`.
    pub scope: String,
    /// How its owner calls itself.
    pub owner_client_name: String,
    /// Which instance of it.
    pub owner_instance_id: String,
    /// The number of its connection.
    pub owner_ws_client_id: u32,
    /// How long it still lasts, unless a heartbeat comes.
    pub remaining_ms: u32,
    /// How long it lasts from each heartbeat.
    pub ttl_ms: u32,
    /// Interval in milliseconds at which the server requests heartbeats.
    pub heartbeat_interval_ms: u32,
    /// Whether another client can take it over: never.
    pub takeover_allowed: bool,
}
