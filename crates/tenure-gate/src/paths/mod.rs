//! Which file a name reaches, and the resource under which that file is leased.
//!
//! Any two names that reach one file have a resource in common, and names of different files have none. Names are followed
//! as the system follows them; nothing is opened for writing and nothing is created.

mod error;
mod escape;
mod fold;
mod key;
mod mounts;
mod names;
mod resolve;
mod tree;

use std::path::{Path, PathBuf};

pub use error::PathError;
pub use escape::unescape;
pub use fold::fold;
pub use tree::{WorkTree, tree_above, work_tree_of};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
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
pub fn target_of(path: &Path, cwd: &Path) -> Result<Target, PathError> {
    let whole = resolve::whole(path, cwd)?;
    let target = key::target(&whole);
    let Some(shortened) = resolve::shortened(&whole) else { return target };
    // The system follows a link before it goes up from there. Many tools remove `link/..` before they ask the system. Who
    // will do which is not known here, so both files are meant.
    match (target, key::target(&shortened)) {
        (Ok(Target::File(mut file)), Ok(Target::File(other))) => {
            file.also(other.resources());
            Ok(Target::File(file))
        }
        (Ok(Target::Outside) | Err(_), Ok(Target::File(other))) => Ok(Target::File(other)),
        (target, _) => target,
    }
}

/// What is at `path` itself, and not what a link of that name leads to: what is renamed, removed or linked. Links before the
/// last part are followed.
pub fn entry_of(path: &Path) -> Result<Target, PathError> {
    key::entry(&resolve::whole(path, Path::new("/"))?)
}

/// The resource of a name itself, whatever it leads to: `relative` is below the root of the tree, need not exist, and goes through
/// no link.
pub fn name_in(tree: &WorkTree, relative: &Path) -> String {
    key::name_in(tree, relative)
}

impl FileKey {
    /// Adds resources that must be held too.
    fn also<'a>(&mut self, resources: impl Iterator<Item = &'a str>) {
        for resource in resources {
            if !self.resources().any(|known| known == resource) {
                self.aliases.push(resource.to_owned());
            }
        }
    }
}
