//! Leases as the world sees them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A lease at the moment of answering.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lease {
    /// Names it in requests.
    pub id: String,
    /// On what.
    pub resource: String,
    /// Who holds it.
    pub holder: String,
    /// How: `exclusive` or `shared`.
    pub mode: String,
    /// Whether it lives.
    pub state: LeaseState,
    /// Grows with every grant, so that a resource can refuse a writer that is late.
    pub fence: u64,
    /// Its length.
    pub ttl_ms: u64,
    /// How long it still lives. A client counts it from when it sent the request.
    pub remaining_ms: u64,
    /// When it began, RFC 3339 in UTC. Times are for people; they decide nothing.
    pub acquired_at: String,
    /// When it is over, unless it is renewed.
    pub expires_at: String,
    /// How often it was renewed.
    pub renewal_count: u32,
    /// What the caller noted.
    pub labels: BTreeMap<String, String>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// How it ended: `EXPIRED`, the reason of its release, or the cause for which it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Somebody waits whom this lease keeps out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recall: Option<Recall>,
}

/// Somebody waits: a holder that is done early, or can hand over, need not keep them waiting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Recall {
    /// Who is first among them.
    pub by: String,
    /// How many they are.
    pub waiting: usize,
    /// How long the first one still waits.
    pub remaining_ms: u64,
}

/// Whether a lease lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum LeaseState {
    /// It lives.
    #[default]
    Active,
    /// It ran out.
    Expired,
    /// Its holder gave it back, or it was taken away.
    Released,
}

/// The answer to an acquisition. It has no `Debug`: whoever sees the token has the lease.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaseGrant {
    /// The lease.
    pub lease: Lease,
    /// Renews and releases it.
    pub token: String,
    /// Proves to others, without asking the server, that it was granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passport: Option<String>,
    /// How long it lives from when the request *arrived*. A client counts it from when it sent the request.
    pub valid_for_ms: u64,
}

/// The answer to a request for several leases, in the order asked for. It has no `Debug`, because of the tokens.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseGrants {
    /// What was granted.
    pub leases: Vec<LeaseGrant>,
}

/// The answer to a renewal.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaseRenewal {
    /// The lease.
    pub lease: Lease,
    /// Proves its new end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passport: Option<String>,
    /// How long it lives from when the request *arrived*. A client counts it from when it sent the request.
    pub valid_for_ms: u64,
}

/// The answer to a release, and to a question about one lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseResponse {
    /// The lease.
    pub lease: Lease,
}

/// Part of a list, in the order of the fences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeasePage {
    /// The leases.
    pub leases: Vec<Lease>,
    /// Where the next part begins: goes into `after`. Nothing follows the last part.
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
