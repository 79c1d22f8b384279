//! What is asked about files. All of it over the local socket: the system says which process asks.

use serde::Serialize;
use utoipa::ToSchema;

/// For whom a hook speaks. Which process that is, the server finds out by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileCaller {
    /// Which agent.
    #[schema(pattern = "^(claude|codex|gemini|cursor|opencode|guard)$", example = "claude")]
    pub agent: String,
    /// What the agent calls its session.
    #[schema(min_length = 1, max_length = 128)]
    pub session: String,
    /// What it calls the subagent that speaks; nothing if none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128)]
    pub subagent: Option<String>,
    /// The subagent or session above that; the session itself where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128)]
    pub parent: Option<String>,
    /// What it is at, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 400)]
    pub task: Option<String>,
}

/// `POST /v1/files/acquire`: an agent is about to change files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileAcquireRequest {
    /// For whom.
    pub speaker: FileCaller,
    /// From where relative paths are meant: absolute.
    #[schema(min_length = 1, max_length = 4096, example = "/home/me/project")]
    pub cwd: String,
    /// Which files: all of them, or none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 1000)]
    pub paths: Vec<String>,
    /// Names that are changed themselves, and not what a link of that name leads to: what is renamed, removed or linked.
    /// Together with `paths` at least one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 1000)]
    pub entries: Vec<String>,
    /// Whether the whole content is replaced: what changed since it was read would be lost.
    #[serde(default)]
    pub whole: bool,
    /// For a guard: the process that is about to change them. It is below the one that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub process: Option<u32>,
    /// For a guard: whether whoever started that process is gone, so that nobody above it says whose it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub orphan: bool,
    /// For a guard: whether the session was named by whoever started it. Else it speaks for the session that was last heard of
    /// from the agent's process.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub named: bool,
}

/// What was heard from an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileEventKind {
    /// It does something.
    Active,
    /// It has read these files.
    Read,
    /// It has changed these files.
    Wrote,
    /// It is about to run a command, and nobody will ask about the files that the command changes. This may be refused.
    Unguarded,
    /// Its turn is over, and nothing goes on in the background.
    TurnEnded,
    /// Its subagent is done.
    SubagentEnded,
    /// The session is over.
    Ended,
    /// For a guard: it speaks for the agent above it from now on, also when whoever started it is gone.
    Guarding,
}

/// `POST /v1/files/events`: something was heard from an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileEventReport {
    /// From whom.
    pub speaker: FileCaller,
    /// What.
    pub event: FileEventKind,
    /// From where relative paths are meant: absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4096)]
    pub cwd: Option<String>,
    /// Which files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 1000)]
    pub paths: Vec<String>,
    /// More about it, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 400)]
    pub detail: Option<String>,
}

/// `POST /v1/files/commit`: something was committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommitReport {
    /// The working tree: absolute.
    #[schema(min_length = 1, max_length = 4096)]
    pub root: String,
    /// What was committed, below the root.
    #[schema(max_items = 10_000)]
    pub paths: Vec<String>,
    /// Which of that is not clean now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 10_000)]
    pub dirty: Vec<String>,
    /// The session that the committing process names; else the one last heard from its agent's process.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 128)]
    pub session: Option<String>,
}

/// `POST /v1/files/staged`: whether somebody else has what is about to be committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StagedFilesRequest {
    /// The working tree: absolute.
    #[schema(min_length = 1, max_length = 4096)]
    pub root: String,
    /// What is staged, below the root.
    #[schema(max_items = 10_000)]
    pub paths: Vec<String>,
    /// The session that the committing process names; else the one last heard from its agent's process.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 128)]
    pub session: Option<String>,
}

/// `POST /v1/files/give`: a person hands a file to a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileGiveRequest {
    /// The path: absolute.
    #[schema(min_length = 1, max_length = 4096)]
    pub path: String,
    /// To which session: its name, or enough of its beginning.
    #[schema(min_length = 1, max_length = 300)]
    pub to: String,
}

/// `POST /v1/files/force-release`: a person takes a file from whoever has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileForceReleaseRequest {
    /// The path: absolute.
    #[schema(min_length = 1, max_length = 4096)]
    pub path: String,
    /// Why, for the record.
    #[schema(min_length = 1, max_length = 400)]
    pub reason: String,
}
