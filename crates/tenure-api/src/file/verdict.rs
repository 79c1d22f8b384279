//! What a hook is told.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::view::FileOwner;

/// Whether an agent may change files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum FileVerdictKind {
    /// It may.
    Granted,
    /// Somebody else has some of them; the one retry is due in `retryInMs`.
    Wait,
    /// The one retry is used up: stop, and wait for an instruction.
    Blocked,
    /// Some of them changed since the session read them: read again first.
    Stale,
}

/// `POST /v1/files/acquire`: the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileVerdict {
    /// Whether it may.
    pub verdict: FileVerdictKind,
    /// The name under which the session holds.
    pub holder: String,
    /// What others have, and who.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<HeldFileView>,
    /// In how many milliseconds the one retry is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_in_ms: Option<u64>,
    /// Which report says that the session is blocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// After how many seconds the one retry was due.
    pub retry_interval_seconds: u64,
    /// Who waits for whom in a circle, the session first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub circle: Vec<String>,
    /// What somebody else let go of without a commit, and is dirty now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_dirty: Vec<UncommittedFile>,
    /// What changed since the session read it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<String>,
    /// Whether some of it is got only now: until then, others could change it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub newly: bool,
    /// For a guard: how long the grant can be relied on without asking again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<GrantGeneration>,
}

/// How long a grant can be relied on without asking again: while the eight bytes at the beginning of a file are this number,
/// the least significant byte first. They change before anybody is told that one of the leases is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrantGeneration {
    /// Which file: absolute.
    pub file: String,
    /// Which number.
    pub mark: u64,
}

/// A file that somebody else has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldFileView {
    /// Which, below its working tree.
    pub path: String,
    /// Its name in the ledger.
    pub resource: String,
    /// Who has it.
    pub owner: FileOwner,
    /// For how long.
    pub held_ms: u64,
    /// For how long nothing was heard from the owner.
    pub idle_ms: u64,
}

/// A file that somebody let go of without a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UncommittedFile {
    /// Which, below its working tree.
    pub path: String,
    /// Who let go of it.
    pub owner: FileOwner,
    /// How long ago.
    pub left_ms: u64,
}

/// What is said to somebody who commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitResult {
    /// What the session let go of.
    pub released: Vec<String>,
    /// What a living owner has who is somebody else.
    pub foreign: Vec<HeldFileView>,
    /// What somebody else let go of without a commit.
    pub left_dirty: Vec<UncommittedFile>,
}
