//! Which file a name reaches, and the resource under which that file is leased.
//!
//! Any two names that reach one file have a resource in common, and names of different files have none. Names are followed
//! as the system follows them; nothing is opened for writing and nothing is created.

mod case_folding;
mod error;
mod escape;
mod file_key;
mod mounts;
mod normalized_path;
mod resolve;
mod work_tree;

use std::path::{Path, PathBuf};

pub use case_folding::fold_case;
pub use error::PathError;
pub use escape::unescape;
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
