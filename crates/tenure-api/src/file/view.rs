//! What people see of files.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::verdict::{GrantGeneration, UncommittedFile};

/// Who has or had a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileOwner {
    /// Which agent; empty for a holder that is none.
    pub agent: String,
    /// What the agent calls its session.
    pub session: String,
    /// The name under which it holds.
    pub holder: String,
    /// Its process; 0 where that is not known.
    pub pid: u32,
    /// Whether that lives.
    pub alive: bool,
    /// Whether it lives but is stopped.
    pub suspended: bool,
    /// What it is at; may be empty.
    pub task: String,
}

/// A file that somebody has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileView {
    /// Which, below its working tree.
    pub path: String,
    /// The working tree, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Its name in the ledger.
    pub resource: String,
    /// Who has it.
    pub owner: FileOwner,
    /// Since when, RFC 3339 in UTC.
    pub acquired_at: String,
    /// When something was last heard from the owner, RFC 3339 in UTC.
    pub last_heartbeat_at: String,
    /// How the lease stands: `OWNED`, or `CONTENDED` where somebody wants it.
    pub lease_state: String,
    /// For how long it is held.
    pub held_ms: u64,
    /// For how long nothing was heard from the owner.
    pub idle_ms: u64,
    /// In how long it is let go of, if nothing is heard from the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released_in_ms: Option<u64>,
    /// Who wants it.
    pub waiters: Vec<FileWaiter>,
}

/// Somebody who wants a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileWaiter {
    /// What its agent calls the session.
    pub session: String,
    /// Which agent.
    pub agent: String,
    /// In how long its one retry is due; 0 where it is.
    pub retry_in_ms: u64,
    /// `RETRY_PENDING` or `BLOCKED`.
    pub state: String,
    /// The report, where it is blocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
}

/// A session that lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileSessionView {
    /// Who.
    pub owner: FileOwner,
    /// Of whom it is a subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// For how long it is known.
    pub known_ms: u64,
    /// For how long nothing was heard.
    pub idle_ms: u64,
    /// How many files it has.
    pub files: usize,
}

/// `GET /v1/files`: everything that somebody has, and everybody who lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FilesOverview {
    /// What somebody has.
    pub files: Vec<FileView>,
    /// Who lives.
    pub sessions: Vec<FileSessionView>,
    /// Where agents are at work, and how much of that is watched for changes that no lease explains.
    #[serde(default)]
    pub audit: Vec<AuditedWorktree>,
    /// For how long no session holds more than this. Only with `below`, over the local socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<GrantGeneration>,
}

/// A working tree that is watched for changes that no lease explains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditedWorktree {
    /// Where it is.
    pub root: String,
    /// How many of its folders are watched.
    pub folders: u64,
    /// How many are not, though they should be.
    pub unwatched: u64,
    /// Why some are not, or none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How often changes were missed, because too many came at once.
    pub missed: u64,
}

/// `GET /v1/files/one`: one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileStatus {
    /// Which, below its working tree.
    pub path: String,
    /// Who has it; nothing if nobody has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileView>,
    /// Who let go of it without a commit, last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<UncommittedFile>,
}

/// `GET /v1/files/blame`: who wrote which line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Blame {
    /// Which file, below its working tree.
    pub path: String,
    /// Who has it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<FileOwner>,
    /// Its lines.
    pub lines: Vec<BlamedLine>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlamedLine {
    /// Its number, from 1.
    pub number: usize,
    /// What it says.
    pub text: String,
    /// `committed`, `session` or `unknown`.
    pub by: String,
    /// Which agent wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// In which session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// When that was seen, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// What an event about files is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileEventDetails {
    /// The name under which the session holds; empty where it is not known any more.
    pub holder: String,
    /// Which agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What the agent calls its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Which file, by its name in the ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Who has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The ticket, which is the number of its report as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<u64>,
    /// When the one retry is due, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<String>,
    /// Who waits for whom in a circle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub circle: Vec<String>,
}
