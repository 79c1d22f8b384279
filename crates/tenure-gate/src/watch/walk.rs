//! Which folders are watched, and what is in them.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::lstat;

use crate::git;

/// What is in one folder, below the root.
#[derive(Debug, Default)]
pub(super) struct FolderListing {
    pub folders: Vec<PathBuf>,
    pub files: Vec<PathBuf>,
}

/// What is in a folder; nothing if it may not be read.
pub(super) fn list_folder(root: &Path, folder: &Path) -> Option<FolderListing> {
    let mut listed = FolderListing::default();
    for entry in fs::read_dir(root.join(folder)).ok()?.flatten() {
        let path = folder.join(entry.file_name());
        if is_git_internal(&path) {
            continue;
        }
        // A link to a folder is a link.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder { listed.folders.push(path) } else { listed.files.push(path) }
    }
    Some(listed)
}

/// Those of these folders that are to be watched: not git's own, not ignored, no trees of their own. Where git does not say,
/// nothing is ignored.
pub(super) fn watchable_folders(root: &Path, mut folders: Vec<PathBuf>) -> Vec<PathBuf> {
    let is_own_tree =
        |folder: &Path| !folder.as_os_str().is_empty() && lstat(root.join(folder).join(".git")).is_ok();
    folders.retain(|folder| !is_git_internal(folder) && !is_own_tree(folder));
    let candidates: Vec<PathBuf> =
        folders.iter().filter(|folder| !folder.as_os_str().is_empty()).cloned().collect();
    if !candidates.is_empty() {
        let ignored: HashSet<PathBuf> =
            git::ignored_paths(root, &candidates).unwrap_or_default().into_iter().collect();
        folders.retain(|folder| !ignored.contains(folder));
    }
    folders
}

/// Whether this path below the root is git's own, in any case: where names are folded, `.GIT` is the same folder.
pub(super) fn is_git_internal(path: &Path) -> bool {
    path.iter().any(|part| part.eq_ignore_ascii_case(".git"))
}
