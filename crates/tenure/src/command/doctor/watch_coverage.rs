//! The audit: whether what nobody asked for would at least be seen.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use tenure_api::FilesOverview;
use tenure_gate::{git, kernel_limits};

use super::check::Check;

/// No more folders are counted: whoever has that many has been told enough.
const MAX_COUNTED_FOLDERS: u64 = 2_000_000;

/// The server takes no more than this part of all watches for one tree: others want to watch too.
const WATCH_LIMIT_SHARE: u64 = 8;

/// What the server says about how it watches the tree that we are in. One that it is still walking through is no gap.
pub fn check_watch_coverage(files: &FilesOverview, root: &Path) -> Vec<Check> {
    let ours = files.audit.iter().filter(|tree| tree.root == root.to_string_lossy());
    let gaps = ours.filter(|tree| tree.unwatched > 0 || tree.missed > 0);
    gaps.map(|tree| {
        let what = format!(
            "in {}, {} folders are not watched and {} times something was missed: changes there may not be seen",
            tree.root, tree.unwatched, tree.missed
        );
        Check::gap("audit.tree", what, "tenure files --audit".to_owned())
    })
    .collect()
}

/// Whether as many folders can be watched as the tree has.
pub fn check_watch_limit(root: &Path) -> Check {
    let name = "audit.watches";
    let Some(limit) = kernel_limits::max_inotify_watches().map(|max| max / WATCH_LIMIT_SHARE) else {
        return Check::unknown(name, "the system does not say how many folders can be watched");
    };
    let count = folders(root);
    if count < limit {
        return Check::ok(name, format!("{count} folders, and {limit} can be watched"));
    }
    let what = format!(
        "the tree has {count} folders, and {limit} can be watched: changes in the others are not seen"
    );
    Check::gap(
        name,
        what,
        format!("sudo sysctl fs.inotify.max_user_watches={}", count.saturating_mul(2 * WATCH_LIMIT_SHARE)),
    )
}

/// How many folders a tree has that are neither git's own nor ignored.
fn folders(root: &Path) -> u64 {
    let mut count = 1;
    let mut level = vec![PathBuf::new()];
    while !level.is_empty() && count < MAX_COUNTED_FOLDERS {
        let mut below: Vec<PathBuf> = level.iter().flat_map(|folder| inside(root, folder)).collect();
        // So many at once as fit on a command line.
        let ignored: HashSet<PathBuf> =
            below.chunks(500).flat_map(|part| git::ignored_paths(root, part).unwrap_or_default()).collect();
        below.retain(|folder| !ignored.contains(folder));
        count += u64::try_from(below.len()).unwrap_or(MAX_COUNTED_FOLDERS);
        level = below;
    }
    count
}

/// The folders in a folder, below the root. Links are none.
fn inside(root: &Path, folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let folders = entries.filter(is_folder).filter(|entry| entry.file_name() != ".git");
    folders.map(|entry| folder.join(entry.file_name())).collect()
}

#[cfg(test)]
mod tests {
    use tenure_api::AuditedWorktree;

    use super::*;

    #[test]
    fn only_the_current_work_tree_is_checked() {
        let tree = |root: &str, missed| AuditedWorktree {
            root: root.to_owned(),
            folders: 1,
            unwatched: 0,
            why: None,
            missed,
        };
        let audit = vec![tree("/a", 1), tree("/b", 0)];
        let files = FilesOverview { files: Vec::new(), sessions: Vec::new(), audit, standing: None };
        assert_eq!(check_watch_coverage(&files, Path::new("/b")), []);
        let found = check_watch_coverage(&files, Path::new("/a"));
        assert!(matches!(found.as_slice(), [check] if check.is_gap()), "{found:?}");
    }

    #[test]
    fn folder_count_excludes_the_git_directory_and_symlinks() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for path in ["a/b/c", "d", ".git/objects/aa"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        std::os::unix::fs::symlink(root, root.join("d/link")).unwrap();
        assert_eq!(folders(root), 5, "itself, a, b, c, d");
    }
}
