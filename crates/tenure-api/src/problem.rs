//! What an error looks like: `application/problem+json`, RFC 9457.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::agent::ResourceAccess;
use crate::error_code::Code;
use crate::work::Budget;

/// An error response without secrets, as `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Problem {
    /// Path of the error's documentation.
    pub r#type: String,
    /// Summary, the same for every problem of this code.
    pub title: String,
    /// HTTP status code.
    pub status: u16,
    /// Error code for programs.
    pub code: Code,
    /// Explanation of this problem and its remedy.
    pub detail: String,
    /// Resource that is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Name of the conflicting holder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// Remaining milliseconds of the conflicting lease, parent or hold-back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining_ms: Option<u64>,
    /// Number of waiters in the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<usize>,
    /// Milliseconds waited before the denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<u64>,
    /// Cause of the lease's end, such as `EXPIRED`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// First event number that is still stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// Priority timestamp of the agent.
    #[serde(rename = "priority_timestamp", default, skip_serializing_if = "Option::is_none")]
    pub priority_timestamp: Option<u64>,
    /// Resources touched without a lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<Vec<ResourceAccess>>,
    /// Remaining budget of the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<Budget>,
}

impl Problem {
    /// The media type of a problem.
    pub const MEDIA_TYPE: &str = "application/problem+json";

    /// A problem without further fields.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            r#type: format!("/errors/{}", code.as_str()),
            title: code.title().to_owned(),
            status: code.status(),
            code,
            detail: detail.into(),
            resource: None,
            holder: None,
            remaining_ms: None,
            waiting: None,
            waited_ms: None,
            end: None,
            from: None,
            priority_timestamp: None,
            outside: None,
            remaining: None,
        }
    }
}
