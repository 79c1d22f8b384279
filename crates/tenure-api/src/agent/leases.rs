//! The leases of agents, and what becomes of those that they name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A lease as agents see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentLease {
    /// Names it.
    pub id: String,
    /// On what.
    #[schema(example = "FILE:src/lib.rs")]
    pub resource: String,
    /// In which way.
    pub predicate: String,
    /// Whose it is.
    pub agent_id: String,
    /// Since when, RFC 3339 in UTC.
    pub acquired_at: String,
    /// Until when: at that moment it is over.
    pub expires_at: String,
    /// How much a heartbeat gives, in milliseconds.
    pub ttl: u64,
    /// Grows with every grant.
    pub fence: u64,
    /// How long it lasts from the moment of the answer.
    #[serde(rename = "remainingMs")]
    pub remaining_ms: u64,
}

/// The leases that an agent asks about: `POST /v1/leases/heartbeat`, `/release` and `/reconcile`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentLeaseIds {
    /// Who asks.
    #[schema(min_length = 1, max_length = 256)]
    pub agent_id: String,
    /// Which leases.
    #[schema(max_items = 1_024)]
    pub lease_ids: Vec<String>,
}

/// What became of each lease with a heartbeat, in the order asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatResult {
    /// These live.
    pub renewed: Vec<HeartbeatRenewal>,
    /// These do not, or are not this agent's.
    pub rejected: Vec<HeartbeatRejection>,
}

/// A lease that a heartbeat reached in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatRenewal {
    /// Which lease.
    pub id: String,
    /// Until when it lasts.
    pub expires_at: String,
    /// How long that is.
    #[serde(rename = "remainingMs")]
    pub remaining_ms: u64,
}

/// A lease that a heartbeat did not help.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatRejection {
    /// Which lease.
    pub id: String,
    /// `EXPIRED`, `RELEASED`, `REVOKED` or `NOT_FOUND`.
    pub code: String,
}

/// `POST /v1/leases/release`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentReleaseResult {
    /// These are over, by this request or before it.
    pub released: Vec<String>,
    /// These are unknown, or somebody else's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

/// `POST /v1/leases/reconcile`: what is true, whatever the agent remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReconcileResult {
    /// Exactly the leases that were asked for.
    pub leases: BTreeMap<String, ReconciledLease>,
}

/// What is true of one lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReconciledLease {
    /// Whether the agent has it.
    pub held: bool,
    /// `ACTIVE`, `EXPIRED`, `RELEASED`, or `UNKNOWN`: never given out, or over for too long, or somebody else's.
    pub state: String,
    /// How long it lasts; 0 where it is over.
    pub remaining_ms: u64,
    /// On what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// In which way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicate: Option<String>,
    /// Until when it lasts or lasted.
    #[serde(rename = "expires_at", default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    /// How it ended: `EXPIRED`, `COMPLETED`, `ABORTED`, `VOLUNTARY`, `DIED`, `REVOKED`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// When it ended.
    #[serde(rename = "ended_at", default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Who has now what it was on, if somebody does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_by: Vec<String>,
}
