//! What a person reads who has to decide.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::view::FileOwner;

/// Why a session stopped: the file that it needs was still not free at its one retry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockerReport {
    /// Its name: `R-17`.
    pub id: String,
    /// The file that is needed, below its working tree.
    pub blocked_file: String,
    /// The working tree, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// The file's name in the ledger.
    pub resource: String,
    /// Who had it at the retry.
    pub owner: FileOwner,
    /// How long that one had had it then.
    pub lock_age_ms: u64,
    /// When something had last been heard from the owner then, RFC 3339 in UTC.
    pub last_heartbeat_at: String,
    /// After how many seconds the one retry was due.
    pub retry_interval_seconds: u64,
    /// `waiting_for_instruction`, and once it got on `resumed`, or `served`, or `gone` where the session is over.
    pub state: String,
    /// Who was blocked.
    pub blocked: FileOwner,
    /// When it first asked, RFC 3339 in UTC.
    pub asked_at: String,
    /// When its retry failed, RFC 3339 in UTC.
    pub blocked_at: String,
    /// Who waits for whom in a circle, the blocked one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub circle: Vec<String>,
    /// Who has the file now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_now_by: Option<FileOwner>,
    /// When it was over, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<String>,
}

/// `GET /v1/files/reports`: all of them that are remembered, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockerReportList {
    /// The reports.
    pub reports: Vec<BlockerReport>,
}
