//! Repositories that are created or removed. A lease is on a file of its repository: without that repository, or below
//! another repository, the lease would protect nothing.

use std::path::{Path, PathBuf};

use tenure_seccomp::Syscall;

use crate::syscall_effects::{PathArgument, PathChange, PathState};

/// What a repository cannot do without, beside its `HEAD`, and what cannot be restored once it is gone: the staged state, the
/// hooks and the reflog. Git itself removes some of it when it tidies up.
const REQUIRED_ENTRIES: [&str; 9] =
    ["objects", "refs", "packed-refs", "config", "worktrees", "modules", "index", "hooks", "logs"];

/// The folders without which git takes nothing for a repository, even where they are empty.
const REQUIRED_FOLDERS: [&str; 2] = ["objects", "refs"];

/// The folder whose repository begins or ends when this name is changed so, if one does. `is_git` says whether git calls.
///
/// A folder is the top of a repository as long as it has a `.git` that is a file, or has a `HEAD` in it. A program other than git
/// that removes what git needs begins to remove all of it.
pub fn created_or_removed_repository(
    call: Syscall,
    name: &PathArgument,
    seen: &PathState,
    is_git: impl Fn() -> bool,
) -> Option<PathBuf> {
    let (path, is_there) = match seen {
        PathState::File { path, .. } | PathState::Folder { path } => (path, true),
        PathState::Missing { path } => (path, false),
        PathState::NotLeasable => return None,
    };
    let is_folder = matches!(seen, PathState::Folder { .. });
    let is_removed = matches!(call, Syscall::Unlink | Syscall::UnlinkAt | Syscall::RemoveFolder);
    let is_moved = name.change == PathChange::Moved;
    let needed = |of: fn(&Path, &Path) -> bool| {
        let needing = repository_requiring(path, of).filter(|_| is_there);
        needing.filter(|_| !is_git()).map(Path::to_path_buf)
    };
    match top_of(path) {
        // Only an empty folder is removed: then it has no `HEAD`, and is no repository.
        Some(_) if is_removed && is_folder => None,
        // What is there and is written anew, as with each change of the branch, stays what it is.
        Some(folder) => ((is_moved || is_removed) == is_there).then(|| folder.to_path_buf()),
        // Few calls remove or rename anything, and each is looked at.
        None if is_removed && is_folder => needed(is_required_folder),
        None if is_removed => needed(is_required_file),
        None if is_moved => needed(is_required_name),
        None => None,
    }
}

/// The top of the repository whose `.git` needs this path.
fn repository_requiring(path: &Path, is_needed: fn(git: &Path, below: &Path) -> bool) -> Option<&Path> {
    let git = path.ancestors().find(|above| above.file_name().is_some_and(|name| name == ".git"))?;
    let below = path.strip_prefix(git).ok()?;
    git.parent().filter(|_| is_needed(git, below))
}

/// Every file below one of the names is needed.
fn is_required_file(_: &Path, below: &Path) -> bool {
    // Programs that write into a repository without git make such names, and remove them again.
    let is_own = below
        .file_name()
        .and_then(|last| last.to_str())
        .is_none_or(|last| last.ends_with(".lock") || last.starts_with("tmp_"));
    !is_own && first(below).is_some_and(|first| REQUIRED_ENTRIES.iter().any(|needed| first == *needed))
}

/// Of folders, which are empty when they are removed, only a few are needed: those of the repository, and of the ones of its
/// submodules.
fn is_required_folder(git: &Path, below: &Path) -> bool {
    let Some(last) = below.file_name() else { return false };
    let is_needed = |names: &[&str]| names.iter().any(|needed| last == *needed);
    match below.components().count() {
        1 => is_needed(&REQUIRED_ENTRIES),
        _ if below.starts_with("modules") => {
            is_needed(&REQUIRED_FOLDERS) && git.join(below).with_file_name("HEAD").exists()
        }
        _ => false,
    }
}

/// Programs that write into a repository rename files in it, and editors rename a `config` before they write it anew. But the
/// names themselves stay.
fn is_required_name(git: &Path, below: &Path) -> bool {
    below != Path::new("config")
        && (below.components().count() == 1 && is_required_file(git, below) || is_required_folder(git, below))
}

fn first(path: &Path) -> Option<&std::ffi::OsStr> {
    path.components().next().map(|first| first.as_os_str())
}

/// The linked working trees of the repository in this folder: without it, they are none.
pub fn linked_worktrees(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.join(".git/worktrees")).into_iter().flatten().flatten();
    let gits = entries.filter_map(|entry| {
        let text = std::fs::read_to_string(entry.path().join("gitdir")).ok()?;
        // Since git 2.48 it may be relative to the folder that it is in.
        entry.path().join(text.trim_end()).parent()?.canonicalize().ok()
    });
    gits.collect()
}

fn top_of(path: &Path) -> Option<&Path> {
    let is_git = |path: &&Path| path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"));
    let git = if path.file_name()? == "HEAD" { path.parent()? } else { path };
    Some(git).filter(is_git)?.parent()
}

#[cfg(test)]
mod tests {
    use crate::syscall_effects::BaseFolder;

    use super::*;

    fn change(call: Syscall, change: PathChange, seen: &PathState) -> Option<PathBuf> {
        let name = PathArgument { folder: BaseFolder::Working, text: "x".into(), follows: false, change };
        created_or_removed_repository(call, &name, seen, || false)
    }

    #[test]
    fn removal_of_repository_files_counts_unless_git_removes_them() {
        let name = PathArgument {
            folder: BaseFolder::Working,
            text: "x".into(),
            follows: false,
            change: PathChange::Lost,
        };
        let file = |path: &str| PathState::File { path: path.into(), link_count: 1 };
        let removed = |path: &str, is_git| {
            created_or_removed_repository(Syscall::UnlinkAt, &name, &file(path), || is_git)
        };
        for path in ["/r/.git/objects/ab/cd", "/r/.git/config", "/r/.git/worktrees/x/HEAD"] {
            assert_eq!(removed(path, false), Some("/r".into()), "{path}");
            assert_eq!(removed(path, true), None, "{path}");
        }
        let moved = PathArgument { change: PathChange::Moved, ..name.clone() };
        let renamed = created_or_removed_repository(
            Syscall::Rename,
            &moved,
            &file("/r/.git/objects/tmp_obj_1"),
            || false,
        );
        assert_eq!(renamed, None, "other programs write into repositories too");
        for path in ["/r/.git/index", "/r/.git/hooks/x", "/r/.git/logs/HEAD"] {
            assert_eq!((removed(path, false), removed(path, true)), (Some("/r".into()), None), "{path}");
        }
        for path in
            ["/r/.git/refs/heads/main.lock", "/r/.git/index.lock", "/r/.git/COMMIT_EDITMSG", "/r/objects/a"]
        {
            assert_eq!(removed(path, false), None, "{path}");
        }
    }

    // H1
    #[test]
    fn removal_of_a_required_repository_folder_counts() {
        let folder = tempfile::tempdir().unwrap();
        let module = folder.path().join(".git/modules/m");
        std::fs::create_dir_all(&module).unwrap();
        std::fs::write(module.join("HEAD"), "").unwrap();
        let name = PathArgument {
            folder: BaseFolder::Working,
            text: "x".into(),
            follows: false,
            change: PathChange::Lost,
        };
        let moved = PathArgument { change: PathChange::Moved, ..name.clone() };
        let at = |path: &str| PathState::Folder { path: folder.path().join(path) };
        let top = Some(folder.path().to_path_buf());
        for path in [".git/refs", ".git/objects", ".git/hooks", ".git/logs", ".git/modules/m/refs"] {
            for call in [Syscall::RemoveFolder, Syscall::UnlinkAt] {
                assert_eq!(created_or_removed_repository(call, &name, &at(path), || false), top, "{path}");
                assert_eq!(created_or_removed_repository(call, &name, &at(path), || true), None, "{path}");
            }
            assert_eq!(
                created_or_removed_repository(Syscall::Rename, &moved, &at(path), || false),
                top,
                "{path}"
            );
        }
        for path in [
            ".git/refs/heads/feature",
            ".git/refs/heads",
            ".git/objects/ab",
            ".git/logs/refs/heads/feature",
            ".git/modules/m/logs/refs",
            ".git/modules/refs",
            ".git",
            "refs",
            "d/objects",
        ] {
            assert_eq!(
                created_or_removed_repository(Syscall::RemoveFolder, &name, &at(path), || false),
                None,
                "{path}"
            );
        }
        let file = |path: &str| PathState::File { path: folder.path().join(path), link_count: 1 };
        assert_eq!(
            created_or_removed_repository(Syscall::Rename, &moved, &file(".git/index"), || false),
            top
        );
        for path in [".git/config", ".git/index.lock", ".git/objects/pack/x", ".git/refs/heads/x"] {
            assert_eq!(
                created_or_removed_repository(Syscall::Rename, &moved, &file(path), || false),
                None,
                "{path}"
            );
        }
    }

    #[test]
    fn repository_begins_and_ends_with_its_head() {
        let file = |path: &str| PathState::File { path: path.into(), link_count: 1 };
        let free = |path: &str| PathState::Missing { path: path.into() };
        let top = Some(PathBuf::from("/r"));
        assert_eq!(change(Syscall::Unlink, PathChange::Lost, &file("/r/.git/HEAD")), top);
        assert_eq!(change(Syscall::UnlinkAt, PathChange::Lost, &file("/r/.git")), top);
        assert_eq!(
            change(Syscall::Rename, PathChange::Moved, &PathState::Folder { path: "/r/.git".into() }),
            top
        );
        assert_eq!(change(Syscall::Rename, PathChange::Lost, &free("/r/.git/HEAD")), top);
        assert_eq!(change(Syscall::Symlink, PathChange::Made, &free("/r/.git")), top);
        assert_eq!(change(Syscall::OpenAt, PathChange::Lost, &free("/r/.git")), top);
        for (call, how, seen) in [
            (Syscall::Rename, PathChange::Lost, file("/r/.git/HEAD")),
            (Syscall::OpenAt, PathChange::Lost, file("/r/.git/HEAD")),
            (Syscall::OpenAt, PathChange::Made, free("/r/.git/HEAD.lock")),
            (Syscall::Unlink, PathChange::Lost, file("/r/.git/FETCH_HEAD")),
            (Syscall::Unlink, PathChange::Lost, file("/r/HEAD")),
            (Syscall::Unlink, PathChange::Lost, free("/r/.git/HEAD")),
        ] {
            assert_eq!(change(call, how, &seen), None, "{call:?} {seen:?}");
        }
    }
}
