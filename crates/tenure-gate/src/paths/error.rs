//! Why it cannot be said which file a name reaches.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use thiserror::Error;

/// Why it cannot be said which file a name reaches. Each differs by what whoever wrote the name does next.
///
/// Names are shown with their odd characters escaped: one with a newline in it must not look like two lines.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PathError {
    #[error("the path is empty, so no file is meant; name the file")]
    Empty,
    /// A name ends at a zero byte; what stands behind it would be ignored.
    #[error("the path {0:?} holds a zero byte, which no file name can; write it without")]
    Nul(PathBuf),
    /// A folder, or a name that only a folder can have. Leases are for files.
    #[error("{0:?} is a folder, and only files are leased; name the file in it")]
    NotAFile(PathBuf),
    /// What stands before a slash is a file.
    #[error(
        "{0:?} leads through something that is a file and no folder, so nothing can be below it; correct the path"
    )]
    NotAFolder(PathBuf),
    /// Links that lead to each other, or too many of them.
    #[error(
        "{0:?} leads through links that never end; see where they point with `readlink`, or name the file itself"
    )]
    Loop(PathBuf),
    #[error(
        "{0:?} is longer than this system allows; use a shorter name, or one relative to a folder further down"
    )]
    TooLong(PathBuf),
    /// A folder on the way may not be searched.
    #[error(
        "may not look where {0:?} leads: a folder on the way denies it; ask for the right to search it, or use another file"
    )]
    NoPermission(PathBuf),
    #[error(
        "cannot find out where {path:?} leads: {source}; the same would befall a write, so mend that first"
    )]
    Other { path: PathBuf, source: io::Error },
}

impl PathError {
    /// What the system said about this path.
    pub(super) fn from_errno(path: &Path, errno: Errno) -> Self {
        let path = path.to_path_buf();
        match errno {
            Errno::LOOP => PathError::Loop(path),
            Errno::NAMETOOLONG => PathError::TooLong(path),
            Errno::NOTDIR => PathError::NotAFolder(path),
            Errno::ACCESS | Errno::PERM => PathError::NoPermission(path),
            other => PathError::Other { path, source: other.into() },
        }
    }
}
