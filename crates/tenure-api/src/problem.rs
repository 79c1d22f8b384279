//! What an error looks like: `application/problem+json`, RFC 9457.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::agent::ResourceAccess;
use crate::error_code::Code;
use crate::work::Budget;

/// Why a request did not get what it wanted. Nothing in it is secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Problem {
    /// Where the code is explained.
    pub r#type: String,
    /// What happened, in the same words for every problem of this code.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What programs decide by.
    pub code: Code,
    /// What happened here, and what to do.
    pub detail: String,
    /// What is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Who is in the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// How long that one has at the most, unless it renews.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining_ms: Option<u64>,
    /// How many wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<usize>,
    /// How long the request waited before it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<u64>,
    /// How a lease ended that is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// From which event on it can be listened to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// The priority that an agent has.
    #[serde(rename = "priority_timestamp", default, skip_serializing_if = "Option::is_none")]
    pub priority_timestamp: Option<u64>,
    /// What an agent touched without a lease for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<Vec<ResourceAccess>>,
    /// What is left of a budget.
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
