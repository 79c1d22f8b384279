//! What a hook is told.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::view::FileOwner;

/// Whether an agent may change files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum FileVerdictKind {
    /// The change is permitted.
    Granted,
    /// Another owner has a file; the one retry is due in `retryInMs`.
    Wait,
    /// The one retry failed: stop and wait for an instruction.
    Blocked,
    /// A file changed since the session read it: read it again.
    Stale,
}

/// The verdict on a request to change files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileVerdict {
    /// Kind of verdict.
    pub verdict: FileVerdictKind,
    /// Holder name of the session.
    pub holder: String,
    /// Files held by other owners.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<HeldFileView>,
    /// Milliseconds until the one retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_in_ms: Option<u64>,
    /// Id of the blocker report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// Retry interval in seconds.
    pub retry_interval_seconds: u64,
    /// Wait cycle, starting with the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub circle: Vec<String>,
    /// Dirty files that other owners released without a commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_dirty: Vec<UncommittedFile>,
    /// Files changed since the session read them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<String>,
    /// Whether other processes could change a file before this grant.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub newly: bool,
    /// For `tenure guard`: validity of the cached grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<GrantGeneration>,
}

/// The validity of a cached answer: it is valid while the first 8 bytes of `file`, little-endian, equal
/// `mark`; they change before the end of a lease is reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrantGeneration {
    /// Absolute path of the file.
    pub file: String,
    /// Number to compare with the first 8 bytes.
    pub mark: u64,
}

/// A file that another session holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldFileView {
    /// Path below its working tree.
    pub path: String,
    /// Resource of the file.
    pub resource: String,
    /// Owner of the file.
    pub owner: FileOwner,
    /// Milliseconds since the grant.
    pub held_ms: u64,
    /// Milliseconds since the owner's last activity.
    pub idle_ms: u64,
}

/// A file released without a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UncommittedFile {
    /// Path below its working tree.
    pub path: String,
    /// Owner before the release.
    pub owner: FileOwner,
    /// Milliseconds since the release.
    pub left_ms: u64,
}

/// The result of a commit or check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitResult {
    /// Paths released by the session.
    pub released: Vec<String>,
    /// Files held by other owners.
    pub foreign: Vec<HeldFileView>,
    /// Files that other owners released without a commit.
    pub left_dirty: Vec<UncommittedFile>,
}
