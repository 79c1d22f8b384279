//! Which files need a lease: those of a working tree that git neither owns nor ignores, and that are not temporary.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tenure_client::boot_microseconds as now;
use tenure_host::git;
use tenure_host::paths::{PathError, WorkTree, is_temporary_name, tree_above};

use super::attribution::CallOwner;
use crate::syscall_effects::PathChange;

/// How long it is believed which tree a folder is in, in microseconds. Who makes a repository out of a folder is quick.
const TREE_CACHE_MICROSECONDS: u64 = 1_000_000;
/// How long it is believed what git ignores. Its rules change seldom, and a lease too many or too few meanwhile harms nobody.
const IGNORED_CACHE_MICROSECONDS: u64 = 10_000_000;
/// How long a temporary file is nobody's. Programs that write one rename it soon.
const TEMPORARY_MICROSECONDS: u64 = 60_000_000;
/// The most that is remembered of each.
const MAX_ENTRIES: usize = 50_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseRequirement {
    NotRequired,
    /// Git ignores it in this tree: it needs no lease, but another session may hold it.
    Ignored(Arc<WorkTree>),
    /// It is in this tree, and asked for.
    Required,
    /// It is in this tree; whether git ignores it is not known.
    Unknown(Arc<WorkTree>),
}

/// What is believed of each path, and since when.
type Cached<T> = HashMap<PathBuf, (T, u64)>;

/// What is known of places. It is the same for all who are watched.
#[derive(Debug, Default)]
pub struct PathClassifier {
    trees: Mutex<Cached<Option<Arc<WorkTree>>>>,
    ignored: Mutex<Cached<bool>>,
    temporary: Mutex<HashMap<PathBuf, u64>>,
    /// Repositories in which nobody else had anything, and since when that is believed.
    free: Mutex<HashMap<(CallOwner, PathBuf), u64>>,
}

impl PathClassifier {
    /// Whether the file at this real path is somebody's. `is_free` if there is none yet.
    pub fn lease_requirement(&self, path: &Path, change: PathChange, is_free: bool) -> LeaseRequirement {
        if self.is_temporary(path, change, is_free) {
            return LeaseRequirement::NotRequired;
        }
        let tree = match path.parent().map(|folder| self.tree(folder)) {
            Some(Ok(Some(tree))) => tree,
            None | Some(Ok(None)) => return LeaseRequirement::NotRequired,
            // The server is asked, and says what is wrong.
            Some(Err(_)) => return LeaseRequirement::Required,
        };
        if tree.is_git_internal(path) {
            return LeaseRequirement::NotRequired;
        }
        match self.is_ignored(&tree.root, path) {
            Some(true) => LeaseRequirement::Ignored(tree),
            Some(false) => LeaseRequirement::Required,
            None => LeaseRequirement::Unknown(tree),
        }
    }

    /// Asks git which of these it ignores, all at once. It runs a process, so not where somebody waits.
    pub fn load_ignored<'a>(&self, root: &Path, paths: impl Iterator<Item = &'a Path>) {
        // Each folder on the way: below one that is ignored everything is, and git is asked only once.
        let relative = paths.filter_map(|path| path.strip_prefix(root).ok());
        let mut parts: BTreeSet<PathBuf> =
            relative.flat_map(|path| path.ancestors().map(Path::to_path_buf)).collect();
        parts.remove(Path::new(""));
        let parts: Vec<PathBuf> = parts.into_iter().collect();
        // Where git does not answer, nothing is taken for ignored.
        let found: HashSet<PathBuf> =
            git::ignored_paths(root, &parts).unwrap_or_default().into_iter().collect();
        let mut ignored = self.ignored.lock();
        if ignored.len() >= MAX_ENTRIES {
            ignored.clear();
        }
        let at = now();
        for part in parts {
            let is_ignored = found.contains(&part);
            ignored.insert(root.join(part), (is_ignored, at));
        }
    }

    fn is_ignored(&self, root: &Path, path: &Path) -> Option<bool> {
        let (ignored, at) = (self.ignored.lock(), now());
        let known = |path: &Path| {
            ignored.get(path).filter(|(_, since)| at.saturating_sub(*since) < IGNORED_CACHE_MICROSECONDS)
        };
        let above = path.ancestors().skip(1).take_while(|folder| *folder != root);
        if above.into_iter().any(|folder| known(folder).is_some_and(|(is, _)| *is)) {
            return Some(true);
        }
        known(path).map(|(is, _)| *is)
    }

    /// Nobody else has anything in this repository. That is believed for a moment: who removes one removes thousands of files.
    pub fn mark_repository_uncontended(&self, owner: CallOwner, folder: &Path) {
        let mut free = self.free.lock();
        if free.len() >= MAX_ENTRIES {
            free.clear();
        }
        free.insert((owner, folder.to_path_buf()), now());
    }

    /// Whether a repository may begin or end there without asking anybody.
    pub fn can_change_repository(&self, owner: CallOwner, folder: &Path) -> bool {
        self.free
            .lock()
            .get(&(owner, folder.to_path_buf()))
            .is_some_and(|since| now().saturating_sub(*since) < TREE_CACHE_MICROSECONDS)
    }

    /// A file that is there is opened by its name. Whoever wrote a temporary one has it open, or renames it: from now on this is
    /// a file as others are.
    pub fn unmark_temporary(&self, path: &Path) {
        let mut temporary = self.temporary.lock();
        if !temporary.is_empty() {
            temporary.remove(path);
        }
    }

    /// A new file with such a name is nobody's, for a while and until it gets another name. What it is renamed to is not.
    fn is_temporary(&self, path: &Path, change: PathChange, is_free: bool) -> bool {
        let (mut temporary, at) = (self.temporary.lock(), now());
        if is_free {
            temporary.remove(path);
        }
        let beside = |other: &OsStr| path.with_file_name(other).symlink_metadata().is_ok();
        if change == PathChange::Made
            && is_free
            && path.file_name().is_some_and(|name| is_temporary_name(name, beside))
        {
            if temporary.len() >= MAX_ENTRIES {
                temporary.clear();
            }
            temporary.insert(path.to_path_buf(), at);
            return true;
        }
        !temporary.is_empty()
            && temporary.get(path).is_some_and(|since| at.saturating_sub(*since) < TEMPORARY_MICROSECONDS)
    }

    fn tree(&self, folder: &Path) -> Result<Option<Arc<WorkTree>>, PathError> {
        let (mut trees, at) = (self.trees.lock(), now());
        if let Some((tree, _)) =
            trees.get(folder).filter(|(_, since)| at.saturating_sub(*since) < TREE_CACHE_MICROSECONDS)
        {
            return Ok(tree.clone());
        }
        if trees.len() >= MAX_ENTRIES {
            trees.clear();
        }
        let tree = tree_above(folder)?.map(Arc::new);
        trees.insert(folder.to_path_buf(), (tree.clone(), at));
        Ok(tree)
    }

    /// Whether everything below this folder is nobody's: outside of every tree, or ignored. Git may be asked.
    pub fn is_exempt_folder(&self, folder: &Path) -> bool {
        // As if something were in it.
        let inside = folder.join("x");
        match self.lease_requirement(&inside, PathChange::Lost, false) {
            LeaseRequirement::NotRequired | LeaseRequirement::Ignored(_) => true,
            LeaseRequirement::Required => false,
            LeaseRequirement::Unknown(tree) => {
                self.load_ignored(&tree.root, std::iter::once(folder));
                self.ignored.lock().get(folder).is_some_and(|(is, _)| *is)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| {
            let status =
                std::process::Command::new("git").args(arguments).current_dir(folder.path()).status();
            assert!(status.unwrap().success());
        };
        git(&["init", "--quiet"]);
        std::fs::create_dir_all(folder.path().join("target/deep")).unwrap();
        std::fs::write(folder.path().join(".gitignore"), "target/\n*.log\n").unwrap();
        folder
    }

    #[test]
    fn files_of_git_and_files_outside_of_trees_require_no_lease() {
        let folder = repository();
        let root = folder.path().canonicalize().unwrap();
        let scope = PathClassifier::default();
        let belongs = |name: &str| scope.lease_requirement(&root.join(name), PathChange::Lost, false);
        assert_eq!(belongs(".git/config"), LeaseRequirement::NotRequired);
        assert_eq!(
            scope.lease_requirement(Path::new("/etc/passwd"), PathChange::Lost, false),
            LeaseRequirement::NotRequired
        );
        assert!(matches!(belongs("a"), LeaseRequirement::Unknown(tree) if tree.root == root));
        let paths: Vec<PathBuf> =
            ["a", "x.log", "target/deep/b"].iter().map(|name| root.join(name)).collect();
        scope.load_ignored(&root, paths.iter().map(PathBuf::as_path));
        assert_eq!(belongs("a"), LeaseRequirement::Required);
        let is_ignored =
            |name: &str| matches!(belongs(name), LeaseRequirement::Ignored(tree) if tree.root == root);
        assert!(is_ignored("x.log") && is_ignored("target/deep/b"));
        assert!(is_ignored("target/never-seen"), "below what is ignored, git is not asked again");
    }

    #[test]
    fn temporary_file_requires_no_lease_until_it_is_opened_again() {
        let folder = repository();
        let root = folder.path().canonicalize().unwrap();
        let scope = PathClassifier::default();
        let temporary = root.join("sedAb3xYz");
        let belongs = |change, is_free| scope.lease_requirement(&temporary, change, is_free);
        assert_ne!(
            belongs(PathChange::Made, false),
            LeaseRequirement::NotRequired,
            "it was there before: the call fails"
        );
        assert_eq!(belongs(PathChange::Made, true), LeaseRequirement::NotRequired);
        assert_eq!(belongs(PathChange::Moved, false), LeaseRequirement::NotRequired);
        scope.unmark_temporary(&temporary);
        assert_ne!(
            belongs(PathChange::Lost, false),
            LeaseRequirement::NotRequired,
            "somebody else may know it by now"
        );
        assert_ne!(
            scope.lease_requirement(&root.join("a"), PathChange::Lost, false),
            LeaseRequirement::NotRequired
        );
        assert_ne!(
            belongs(PathChange::Lost, true),
            LeaseRequirement::NotRequired,
            "it was renamed, and this is another one"
        );
    }
}
