//! From a path to its file, and to the resource under which that file is leased.
//!
//! Any two names of one file have a resource in common, and names of different files have none. Names are resolved as the
//! system resolves them; nothing is opened for writing and nothing is created.

mod file_key;
mod mounts;
mod normalized_path;
mod resolve;
mod temporary_name;
mod work_tree;

use std::io;
use std::path::{Path, PathBuf};

pub use file_key::unescape;
pub use normalized_path::fold_case;
use rustix::io::Errno;
pub use temporary_name::is_temporary_name;
use thiserror::Error;
pub use work_tree::{WorkTree, tree_above, work_tree_of};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathTarget {
    /// A file in a working tree, which is there or would be created.
    File(FileKey),
    /// Something outside of every working tree, or git's own. It is not leased.
    Outside,
}

/// One file of a working tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileKey {
    pub tree: WorkTree,
    /// The path below the root, for people and git: as it is spelled in its folder, where it exists.
    pub relative: PathBuf,
    /// The whole path, with all links resolved.
    pub absolute: PathBuf,
    /// What is leased: `FILE:`, the tree's id, and the path, escaped, and folded where its folder folds names.
    pub resource: String,
    /// Further resources that must be held too, because the file can be reached under another name: through a hard link
    /// or a second mount, or by a tool that removes `..` itself.
    pub aliases: Vec<String>,
    /// Device and number of the file, if it exists.
    pub identity: Option<(u64, u64)>,
}

impl FileKey {
    /// Everything that must be held to change this file.
    pub fn resources(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&*self.resource).chain(self.aliases.iter().map(|alias| &**alias))
    }
}

/// What `path` reaches, as an agent wrote it, relative to `cwd`.
///
/// All links are resolved, also the last one and one that leads nowhere: what counts is where the file would be created.
/// Folders that do not exist yet are no error.
pub fn target_of(path: &Path, cwd: &Path) -> Result<PathTarget, PathError> {
    let whole = resolve::absolute_path(path, cwd)?;
    let target = file_key::target_of_path(&whole);
    let Some(shortened) = resolve::without_dot_dot(&whole) else { return target };
    // The system follows a link before it goes up from there. Many tools remove `link/..` before they ask the system. Who
    // will do which is not known here, so both files are meant.
    match (target, file_key::target_of_path(&shortened)) {
        (Ok(PathTarget::File(mut file)), Ok(PathTarget::File(other))) => {
            file.add_aliases(other.resources());
            Ok(PathTarget::File(file))
        }
        (Ok(PathTarget::Outside) | Err(_), Ok(PathTarget::File(other))) => Ok(PathTarget::File(other)),
        (target, _) => target,
    }
}

/// What is at `path` itself, and not what a link of that name leads to: what is renamed, removed or linked. Links before the
/// last part are followed.
pub fn target_of_nofollow(path: &Path) -> Result<PathTarget, PathError> {
    file_key::entry_of_path(&resolve::absolute_path(path, Path::new("/"))?)
}

/// The resource of a name itself, whatever it leads to: `relative` is below the root of the tree, need not exist, and goes through
/// no link.
pub fn resource_of_name(tree: &WorkTree, relative: &Path) -> String {
    file_key::resource_of_name(tree, relative)
}

impl FileKey {
    /// Adds resources that must be held too.
    fn add_aliases<'a>(&mut self, resources: impl Iterator<Item = &'a str>) {
        for resource in resources {
            if !self.resources().any(|known| known == resource) {
                self.aliases.push(resource.to_owned());
            }
        }
    }
}

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
    fn from_errno(path: &Path, errno: Errno) -> Self {
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
