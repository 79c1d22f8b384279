//! Which folder each number of the system stands for.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::lstat;

use crate::git;

/// The folders that are watched, below their root: the root itself is the empty path.
#[derive(Debug, Default)]
pub(super) struct WatchedFolders {
    by_number: HashMap<i32, PathBuf>,
    by_path: BTreeMap<PathBuf, i32>,
}

impl WatchedFolders {
    /// This number stands for this folder from now on. A folder that can be reached in two ways has one number: the last counts.
    pub fn insert(&mut self, number: i32, path: &Path) {
        if let Some(before) = self.by_number.insert(number, path.to_owned()) {
            self.by_path.remove(&before);
        }
        if let Some(before) = self.by_path.insert(path.to_owned(), number)
            && before != number
        {
            self.by_number.remove(&before);
        }
    }

    pub fn path(&self, number: i32) -> Option<&Path> {
        self.by_number.get(&number).map(PathBuf::as_path)
    }

    pub fn contains(&self, path: &Path) -> bool {
        self.by_path.contains_key(path)
    }

    pub fn len(&self) -> usize {
        self.by_path.len()
    }

    /// The system watches this one no longer.
    pub fn remove(&mut self, number: i32) {
        if let Some(path) = self.by_number.remove(&number) {
            self.by_path.remove(&path);
        }
    }

    /// A folder has another name now, and so has all below it.
    pub fn rename(&mut self, from: &Path, to: &Path) {
        let below = self.by_path.range(from.to_owned()..).take_while(|(known, _)| known.starts_with(from));
        let moved: Vec<(PathBuf, i32)> = below.map(|(path, number)| (path.clone(), *number)).collect();
        for (path, number) in moved {
            let Ok(rest) = path.strip_prefix(from) else { continue };
            let new = if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) };
            self.insert(number, &new);
        }
    }

    /// Forgets a folder and all below it, and says their numbers.
    pub fn remove_below(&mut self, path: &Path) -> Vec<i32> {
        let below = self.by_path.range(path.to_owned()..).take_while(|(known, _)| known.starts_with(path));
        let numbers: Vec<i32> = below.map(|(_, number)| *number).collect();
        numbers.iter().for_each(|number| self.remove(*number));
        numbers
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(names: &[&str]) -> WatchedFolders {
        let mut folders = WatchedFolders::default();
        for (number, name) in (1..).zip(names) {
            folders.insert(number, Path::new(name));
        }
        folders
    }

    #[test]
    fn removing_a_folder_removes_only_it_and_its_descendants() {
        let mut folders = folders(&["", "a", "a/b", "a/b/c", "a-b", "ab", "b"]);
        assert_eq!(folders.remove_below(Path::new("a")), [2, 3, 4]);
        assert!(!folders.contains(Path::new("a/b/c")) && folders.path(3).is_none());
        assert!(
            folders.contains(Path::new("a-b")) && folders.contains(Path::new("ab")) && folders.len() == 4
        );
    }

    #[test]
    fn renaming_a_folder_renames_its_descendants() {
        let mut folders = folders(&["", "a", "a/b", "a-b"]);
        folders.rename(Path::new("a"), Path::new("z/y"));
        assert_eq!((folders.path(2), folders.path(3)), (Some(Path::new("z/y")), Some(Path::new("z/y/b"))));
        assert!(
            folders.contains(Path::new("a-b")) && !folders.contains(Path::new("a")) && folders.len() == 4
        );
    }

    #[test]
    fn a_reinserted_folder_is_known_only_under_its_new_name() {
        let mut folders = folders(&["", "a"]);
        folders.insert(2, Path::new("z"));
        assert!(!folders.contains(Path::new("a")));
        assert_eq!(folders.path(2), Some(Path::new("z")));
        // And a name that means another folder now leads to that one.
        folders.insert(7, Path::new("z"));
        assert_eq!((folders.path(2), folders.path(7), folders.len()), (None, Some(Path::new("z")), 2));
    }
}
