//! Who waits.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Who waits for a resource, in the order in which they will be served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Queue {
    /// For what.
    pub resource: String,
    /// Who.
    pub waiting: Vec<Waiter>,
}

/// Somebody who waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waiter {
    /// Names the wait; a smaller number came earlier.
    pub ticket: u64,
    /// The place in this queue. 1 is next.
    pub position: usize,
    /// Who waits.
    pub holder: String,
    /// In which mode it wants this resource.
    pub mode: String,
    /// Everything that it waits for: all of it or nothing.
    pub resources: Vec<String>,
    /// Since when, RFC 3339 in UTC.
    pub since: String,
    /// For how long already.
    pub waited_ms: u64,
    /// How long it will still wait.
    pub remaining_ms: u64,
}
