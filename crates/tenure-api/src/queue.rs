//! The queue, and why a resource is not free.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error_code::Code;
use crate::lease::Lease;

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

/// Who holds a resource, who waits, what would free it, and why the last request was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Of what.
    pub resource: String,
    /// Who holds it.
    pub held: Vec<Lease>,
    /// Who waits for it, in the order in which they will be served.
    pub waiting: Vec<Waiter>,
    /// The last request for it that was refused, if it is still remembered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_refusal: Option<DenialView>,
    /// The lease on it that ended last, if it is still remembered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_end: Option<Lease>,
    /// The same for people: one sentence each.
    pub words: Vec<String>,
}

/// A request that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DenialView {
    /// When, RFC 3339 in UTC.
    pub at: String,
    /// How long ago.
    pub ago_ms: u64,
    /// Why.
    pub code: Code,
    /// Why, for people.
    pub detail: String,
    /// Who would have held it.
    pub holder: String,
    /// Who asked.
    pub principal: String,
}
