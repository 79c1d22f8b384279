//! Changes in a working tree, from inotify.
//!
//! ```text
//! inotify_event  meaning of one event
//! folders        folder of each watch descriptor; which folders are watched; moved folders
//! tree_watch     places watches, reads events, scans new folders
//! ```
//!
//! It reports that something changed, not by which process. A write through a memory mapping is seen when the file is closed,
//! and a write of another machine to a shared disk is not seen at all.

mod folders;
mod inotify_event;
mod tree_watch;

use std::path::PathBuf;

pub use tree_watch::TreeWatch;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeChange {
    pub path: PathBuf,
    pub kind: ChangeKind,
    /// Whether git was at work for the whole tree: it had locked its index.
    pub by_git: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// It is there, and was not before: a file, a link, a pipe.
    Created,
    /// Something was moved to it, perhaps over what was there.
    MovedIn,
    /// It was written, cut, or closed by somebody who could write.
    Written,
    /// It may be used by others, or has another time.
    Attributes,
    /// It was removed or moved away.
    Removed,
    /// It was a folder, and was moved out of what is watched, with all that is in it.
    FolderMovedOut,
}

#[derive(Debug, Default)]
pub struct WatchBatch {
    /// What changed, in its order. What is in a new folder may be told twice.
    pub changes: Vec<TreeChange>,
    /// Whether nothing more was there to be read.
    pub is_drained: bool,
    /// Whether the root is gone: there is nothing more to come.
    pub is_root_gone: bool,
}

/// How much of a tree is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WatchCoverage {
    pub folders: usize,
    /// So many are not, because there are more than may be watched, by this program or by the system.
    pub beyond_limit: usize,
    /// So many are not, because they may not be read.
    pub unreadable: usize,
    /// So often something was missed, because too much happened at once.
    pub missed: u64,
}
