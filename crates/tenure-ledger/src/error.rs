//! Why a ledger does not open or is not copied, or a batch cannot be appended or read.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::ledger::Seq;

/// Why a ledger does not open. Nothing was changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process writes it.
    #[error("another process is using {}; stop it first, or choose another --data", .0.display())]
    Locked(PathBuf),
    /// Its bytes are not what was written.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// It is an older copy of itself.
    #[error(
        "the ledger ends at event {} but had come to {}: this is an older copy, and leases in it may be over or \
         held by others; if you restored it on purpose, run `tenure ledger restored`",
        found.0, witnessed.0
    )]
    OutdatedCopy {
        /// Where it ends.
        found: Seq,
        /// Where it had ended.
        witnessed: Seq,
    },
    /// It was written on another machine.
    #[error(
        "the ledger belongs to another machine; if it was moved here and is no longer used there, run \
         `tenure ledger moved`"
    )]
    OtherMachine,
    /// It was made by `tenure ledger copy`, or `tenure ledger restored` was interrupted.
    #[error(
        "{} is a copy of a ledger, and what the original did after it is unknown; to use the copy in its place, run \
         `tenure ledger restored`", .0.display()
    )]
    Copy(PathBuf),
    /// The same ledger is open in another directory of this machine.
    #[error(
        "this ledger is in use by another process, from another directory: one of the two is a copy; leave this one \
         alone if it is the copy, else stop the other"
    )]
    OpenElsewhere,
    /// The directory cannot be made.
    #[error("cannot keep a ledger in {}", path.display())]
    Directory {
        /// Where.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// There is no room to begin the next file.
    #[error("{} has no room for the next file of the ledger; make room, then start again: nothing is lost", path.display())]
    NoSpace {
        /// Where.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// There is no ledger.
    #[error("there is no ledger in {}", .0.display())]
    NoLedger(PathBuf),
    /// There are segments and nothing says whose.
    #[error(
        "{} holds segments but no file `identity`: part of the ledger is missing; put it back from where this was \
         copied", .0.display()
    )]
    NoIdentity(PathBuf),
    /// A part of it was pruned while it was read. Read again from the beginning.
    #[error("{} was pruned while the ledger was read; try again", .0.display())]
    Pruned(PathBuf),
    /// A newer version wrote it.
    #[error("the ledger is in form {found}, and this version knows forms up to {newest}; use a newer tenure")]
    NewerVersion {
        /// Its form.
        found: u32,
        /// The newest that is known.
        newest: u32,
    },
    /// A segment must hold its head and a record.
    #[error("a segment of {0} bytes is too small; it needs at least 4096, in whole sectors of 512")]
    SegmentSize(u64),
    /// The system said no.
    #[error("the ledger cannot be opened")]
    Io(#[from] io::Error),
}

impl OpenError {
    /// Whether a file was gone by the time it was to be read: whoever reads beside a writer begins again.
    pub fn is_transient(&self) -> bool {
        matches!(self, OpenError::Pruned(_))
            || matches!(self, OpenError::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// Why there is no copy.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CopyError {
    /// Something is there already.
    #[error("{} exists already; choose another place", .0.display())]
    Exists(PathBuf),
    /// The original, or the finished copy, is not in order.
    #[error(transparent)]
    Ledger(#[from] OpenError),
    /// The system said no.
    #[error("the ledger cannot be copied")]
    Io(#[from] io::Error),
}

/// Why a batch was not appended. The variants differ by what the writer does next.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AppendError {
    /// Another writer appended first. Step down and replay; never retry blindly.
    #[error("the ledger ends at event {}, not at {}: another writer was here", found.0, expected.0)]
    Overtaken {
        /// Where the writer thought that it ends.
        expected: Seq,
        /// Where it ends.
        found: Seq,
    },
    /// Nothing was written.
    #[error("the ledger cannot be written; nothing was")]
    Unavailable(#[source] io::Error),
    /// No room is left. Nothing was written; make room and try again.
    #[error("no space is left for the ledger; nothing was written")]
    NoSpace,
    /// The batch is larger than a segment. Nothing was written; the request can never succeed.
    #[error("a batch of {bytes} bytes is over the limit of {max_bytes}")]
    TooLarge {
        /// How large it is.
        bytes: usize,
        /// The limit.
        max_bytes: usize,
    },
    /// Perhaps it was written. Nothing more may be written by this process: what the disk holds is unknown.
    #[error("the write of event {} has an unknown outcome", at.0)]
    OutcomeUnknown {
        /// The first event of the batch.
        at: Seq,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// Why a batch cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be read.
    #[error("the ledger cannot be read")]
    Io(#[from] io::Error),
    /// What was asked for is no longer, or not yet, there.
    #[error("the ledger holds the events after {}, not those after {}", first.0, requested.0)]
    OutOfRange {
        /// After which event was asked.
        requested: Seq,
        /// After which event it begins.
        first: Seq,
    },
    /// The bytes are not what was written. Stop and call a human: `tenure verify` says more.
    #[error(transparent)]
    Damaged(#[from] Damage),
}

/// Bytes that are not what was written. Nothing was changed; a human must look.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{} is damaged at byte {offset}, in the record after event {}: {reason}", file.display(), after.0)]
pub struct Damage {
    /// In which file.
    pub file: PathBuf,
    /// At which byte.
    pub offset: u64,
    /// The last event before it that is whole.
    pub after: Seq,
    /// What is wrong.
    pub reason: &'static str,
}
