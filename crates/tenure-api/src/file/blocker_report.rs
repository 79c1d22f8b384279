//! What a person reads who has to decide.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::view::FileOwner;

/// A report of a session stopped because its file was still held at the one retry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockerReport {
    /// Report id, such as `R-17`.
    pub id: String,
    /// Path of the file below its working tree.
    pub blocked_file: String,
    /// Working tree, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Resource of the file.
    pub resource: String,
    /// Owner at the retry.
    pub owner: FileOwner,
    /// Milliseconds held by the owner at the retry.
    pub lock_age_ms: u64,
    /// Owner's last activity before the retry, RFC 3339 in UTC.
    pub last_heartbeat_at: String,
    /// Retry interval in seconds.
    pub retry_interval_seconds: u64,
    /// State: `waiting_for_instruction`, `resumed`, `served`, or `gone` if the session ended.
    pub state: String,
    /// Session that was blocked.
    pub blocked: FileOwner,
    /// Time of the first request, RFC 3339 in UTC.
    pub asked_at: String,
    /// Time of the retry, RFC 3339 in UTC.
    pub blocked_at: String,
    /// Wait cycle, starting with the blocked session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub circle: Vec<String>,
    /// Current owner, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_now_by: Option<FileOwner>,
    /// Time when closed, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<String>,
}

/// A list of blocker reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockerReportList {
    /// Reports still recorded, oldest first.
    pub reports: Vec<BlockerReport>,
}
