//! What happened, as it is told to those who watch.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::agent::AgentEventDetails;
use crate::file::FileEventDetails;
use crate::intent::IntentSessionView;
use crate::lease::Lease;
use crate::queue::Waiter;
use crate::work::Budget;

/// One event of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerEvent {
    /// Its number in the ledger.
    pub seq: u64,
    /// What happened: `lease.issued`, `lease.expired`, …
    pub r#type: String,
    /// When, RFC 3339 in UTC.
    pub at: String,
    /// The lease that it is about, as it was right after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// The waiter that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiter: Option<Waiter>,
    /// The session that it is about, as it was right after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<IntentSessionView>,
    /// The agent that it is about, as it was right after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentEventDetails>,
    /// The session of a coding agent, and the file, that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileEventDetails>,
    /// What was used up of what the lease allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Budget>,
    /// Why a wait ended, or a lease was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// What was said about it, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}
