//! Why a payload was not understood.

use thiserror::Error;

/// A payload that was not understood. Says what is wrong, and never repeats what was sent: it may hold secrets.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{kind}")]
pub struct PayloadError {
    kind: PayloadErrorKind,
    is_before_call: bool,
}

impl PayloadError {
    pub(super) fn new(kind: PayloadErrorKind, is_before_call: bool) -> Self {
        Self { kind, is_before_call }
    }

    /// Whether a change may follow if nobody objects. True also where nobody can tell.
    pub fn is_pre_tool_use(&self) -> bool {
        self.is_before_call
    }

    pub fn kind(&self) -> &PayloadErrorKind {
        &self.kind
    }
}

/// What is wrong with a payload.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PayloadErrorKind {
    #[error("the hook was given nothing")]
    Empty,
    /// More than [`super::MAX_PAYLOAD_BYTES`], or more values than any agent sends.
    #[error("the hook was given too much: at most 16 MiB and a million values are read")]
    TooLarge,
    /// Bytes that are not UTF-8.
    #[error("the hook was given bytes that are not UTF-8")]
    NotText,
    /// Text that is not JSON, or nested too deeply.
    #[error("the hook was given something that is not JSON (line {line}, column {column})")]
    NotJson {
        /// Where, counted from 1.
        line: usize,
        column: usize,
    },
    /// One name twice in an object: agent and hook might each believe another one.
    #[error("the hook was given an object with one name twice (line {line}, column {column})")]
    DuplicateName {
        /// Where, counted from 1.
        line: usize,
        column: usize,
    },
    #[error("the hook was given JSON that is not an object")]
    NotAnObject,
    /// A field that is needed is not there.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A field is of another type than it should be.
    #[error("`{0}` has the wrong type")]
    WrongType(&'static str),
    /// The id of a session or subagent cannot be one.
    #[error("`{0}` is not an id: 1 to 128 bytes without control characters")]
    BadId(&'static str),
    /// The folder is not an absolute path.
    #[error("`{0}` is not an absolute path")]
    BadFolder(&'static str),
    /// A path that no file can have.
    #[error("a path is empty, holds a NUL byte, or half of a character")]
    BadPath,
    /// A tool that changes files names none.
    #[error("the tool changes files, but it is not said which")]
    NoPath,
    /// More than [`super::MAX_PATHS`].
    #[error("one call names more than 1,000 files")]
    TooManyPaths,
    /// A patch in which no file is named.
    #[error("the patch names no file")]
    EmptyPatch,
    /// A patch in a shell command, where the shell decides which files it is about.
    #[error("the shell decides which files the patch is about")]
    UnclearPatch,
}
