//! The queue, and why a resource is not free.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error_code::Code;
use crate::lease::Lease;

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
