//! Requests and responses of the files API.

mod view;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
pub use view::{
    AuditedWorktree, Blame, BlamedLine, BlockerReport, BlockerReportList, FileEventDetails, FileSessionView,
    FileStatus, FileView, FileWaiter, FilesOverview,
};

/// The agent session of a hook; the server finds the process itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileCaller {
    /// Agent kind, such as `claude`.
    #[schema(pattern = "^(claude|codex|gemini|cursor|opencode|guard)$", example = "claude")]
    pub agent: String,
    /// Agent's name for its session.
    #[schema(min_length = 1, max_length = 128)]
    pub session: String,
    /// Agent's name for the subagent, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128)]
    pub subagent: Option<String>,
    /// Parent subagent or session, by default the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128)]
    pub parent: Option<String>,
    /// Description of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 400)]
    pub task: Option<String>,
}

/// The current or former owner of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileOwner {
    /// Agent kind, empty for other holders.
    pub agent: String,
    /// Agent's name for its session.
    pub session: String,
    /// Holder name of the session.
    pub holder: String,
    /// Process id, 0 if unknown.
    pub pid: u32,
    /// Whether the process is alive.
    pub alive: bool,
    /// Whether it is alive but stopped.
    pub suspended: bool,
    /// Task description, may be empty.
    pub task: String,
}

/// Request to change files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileAcquireRequest {
    /// Session of the agent.
    pub speaker: FileCaller,
    /// Absolute base of relative paths.
    #[schema(min_length = 1, max_length = 4096, example = "/home/me/project")]
    pub cwd: String,
    /// Files, granted all or none, at most 1000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 1000)]
    pub paths: Vec<String>,
    /// Directory entries to rename, remove or link, without following symlinks; required if `paths` is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 1000)]
    pub entries: Vec<String>,
    /// Whether the whole content is replaced: `STALE` if it changed since the session read it.
    #[serde(default)]
    pub whole: bool,
    /// For `tenure guard`: pid of the changing process, a descendant of the guard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub process: Option<u32>,
    /// For `tenure guard`: whether the process that started the changing one is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub orphan: bool,
    /// For `tenure guard`: whether the session was named at its start; otherwise the agent's latest session
    /// is used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named: bool,
}

/// The kind of an agent's event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileEventKind {
    /// The agent is active.
    Active,
    /// The agent read the files.
    Read,
    /// The agent changed the files.
    Wrote,
    /// The agent is about to run a command without `tenure guard`; may be rejected.
    Unguarded,
    /// The turn ended, with nothing in the background.
    TurnEnded,
    /// The subagent ended.
    SubagentEnded,
    /// The session ended.
    Ended,
    /// A `tenure guard` registered for its ancestor agent.
    Guarding,
}

/// A report of an agent's event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileEventReport {
    /// Session of the agent.
    pub speaker: FileCaller,
    /// Kind of event.
    pub event: FileEventKind,
    /// Absolute base of relative paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4096)]
    pub cwd: Option<String>,
    /// Files of the event, at most 1000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 1000)]
    pub paths: Vec<String>,
    /// Detail for the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 400)]
    pub detail: Option<String>,
}

/// A report of a git commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommitReport {
    /// Absolute path of the working tree.
    #[schema(min_length = 1, max_length = 4096)]
    pub root: String,
    /// Committed paths below the root, at most 10000.
    #[schema(max_items = 10_000)]
    pub paths: Vec<String>,
    /// Committed paths that are dirty now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 10_000)]
    pub dirty: Vec<String>,
    /// Session named by the committing process, by default its agent's latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 128)]
    pub session: Option<String>,
}

/// Request to check staged files for other owners.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StagedFilesRequest {
    /// Absolute path of the working tree.
    #[schema(min_length = 1, max_length = 4096)]
    pub root: String,
    /// Staged paths below the root, at most 10000.
    #[schema(max_items = 10_000)]
    pub paths: Vec<String>,
    /// Session named by the committing process, by default its agent's latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 128)]
    pub session: Option<String>,
}

/// Request to give a file to a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileGiveRequest {
    /// Absolute path of the file.
    #[schema(min_length = 1, max_length = 4096)]
    pub path: String,
    /// Session id, or a unique prefix of its id or name.
    #[schema(min_length = 1, max_length = 300)]
    pub to: String,
}

/// Request to force the release of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileForceReleaseRequest {
    /// Absolute path of the file.
    #[schema(min_length = 1, max_length = 4096)]
    pub path: String,
    /// Reason recorded in the ledger.
    #[schema(min_length = 1, max_length = 400)]
    pub reason: String,
}

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
