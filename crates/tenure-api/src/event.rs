//! Events, as subscribers receive them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::agent::AgentEventDetails;
use crate::file::FileEventDetails;
use crate::intent::IntentSessionView;
use crate::lease::{Lease, Waiter};
use crate::work::Budget;

/// One event of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerEvent {
    /// Sequence number in the ledger.
    pub seq: u64,
    /// Event type: `lease.issued`, `lease.expired`, ….
    pub r#type: String,
    /// Time of the event, RFC 3339 in UTC.
    pub at: String,
    /// Lease right after the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// Waiter of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiter: Option<Waiter>,
    /// Stream session right after the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<IntentSessionView>,
    /// Agent right after the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentEventDetails>,
    /// File session and file of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileEventDetails>,
    /// Budget spent by the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Budget>,
    /// Cause of the end of a wait, lease or session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Detail for the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}
