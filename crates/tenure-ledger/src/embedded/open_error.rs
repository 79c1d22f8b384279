//! Why a ledger does not open.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::Damage;
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
