//! What changes in a working tree, as the system tells it (inotify).
//!
//! ```text
//! meaning   what one event of the system means
//! folders   which folder each number of the system stands for
//! walk      which folders are watched: all but git's own, those that git ignores, and trees of their own
//! moves     what a folder takes along that is moved
//! tree      the shell: places watches, reads events, looks into new folders
//! ```
//!
//! It says that something changed, not who did it. What is mapped into memory and written there is seen when the file is closed,
//! and what another machine does to a shared disk is not seen at all.

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
