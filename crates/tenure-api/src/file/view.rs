//! Views of the files API.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{FileOwner, GrantGeneration, UncommittedFile};

/// A file held by a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileView {
    /// Path below its working tree.
    pub path: String,
    /// Working tree, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Resource of the file.
    pub resource: String,
    /// Owner of the file.
    pub owner: FileOwner,
    /// Time of the grant, RFC 3339 in UTC.
    pub acquired_at: String,
    /// Owner's last activity, RFC 3339 in UTC.
    pub last_heartbeat_at: String,
    /// Lease state: `OWNED`, or `CONTENDED` with waiters.
    pub lease_state: String,
    /// Milliseconds since the grant.
    pub held_ms: u64,
    /// Milliseconds since the owner's last activity.
    pub idle_ms: u64,
    /// Milliseconds until release unless the owner becomes active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released_in_ms: Option<u64>,
    /// Sessions waiting for it.
    pub waiters: Vec<FileWaiter>,
}

/// A session waiting for a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileWaiter {
    /// Agent's name for its session.
    pub session: String,
    /// Agent kind, such as `claude`.
    pub agent: String,
    /// Milliseconds until the retry, 0 once due.
    pub retry_in_ms: u64,
    /// State: `RETRY_PENDING` or `BLOCKED`.
    pub state: String,
    /// Report id, if blocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
}

/// A live file session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileSessionView {
    /// Session and its process.
    pub owner: FileOwner,
    /// Parent session of a subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Milliseconds since its start.
    pub known_ms: u64,
    /// Milliseconds since its last activity.
    pub idle_ms: u64,
    /// Number of files held.
    pub files: usize,
}

/// The held files, live sessions and watched working trees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FilesOverview {
    /// Files that are held.
    pub files: Vec<FileView>,
    /// Sessions that are live.
    pub sessions: Vec<FileSessionView>,
    /// Working trees watched for changes without a lease.
    #[serde(default)]
    pub audit: Vec<AuditedWorktree>,
    /// Validity of this answer, only with `below` over the local socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<GrantGeneration>,
}

/// A working tree watched for changes without a lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditedWorktree {
    /// Path of the tree.
    pub root: String,
    /// Number of watched folders.
    pub folders: u64,
    /// Number of folders that could not be watched.
    pub unwatched: u64,
    /// Reason for unwatched folders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Count of overflows, which lose changes.
    pub missed: u64,
}

/// The state of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileStatus {
    /// Path below its working tree.
    pub path: String,
    /// Current state, if held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileView>,
    /// Last release without a commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<UncommittedFile>,
}

/// The author of each line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Blame {
    /// Path below its working tree.
    pub path: String,
    /// Owner of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<FileOwner>,
    /// Lines of the file.
    pub lines: Vec<BlamedLine>,
}

/// One line with its author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlamedLine {
    /// Line number, from 1.
    pub number: usize,
    /// Text of the line.
    pub text: String,
    /// Kind of author: `committed`, `session` or `unknown`.
    pub by: String,
    /// Agent kind, such as `claude`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Agent's name for its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Time when the change was observed, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// The session and file of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileEventDetails {
    /// Holder name of the session, empty if no longer known.
    pub holder: String,
    /// Agent kind, such as `claude`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Agent's name for its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Resource of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Holder name of the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Ticket number, also its report's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<u64>,
    /// Time of the retry, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<String>,
    /// Holders in a wait cycle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub circle: Vec<String>,
}

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
