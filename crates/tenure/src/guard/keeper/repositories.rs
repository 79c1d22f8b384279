//! Repositories that begin or end. A lease is on a file of its repository: without that, or with another one around it, the file
//! would be nobody's.

use std::path::{Path, PathBuf};

use tenure_gate::calls::{Change, Name, Seen};
use tenure_seccomp::Call;

/// What a repository cannot do without, beside its `HEAD`. Git itself takes some of it away when it tidies up.
const NEEDED: [&str; 6] = ["objects", "refs", "packed-refs", "config", "worktrees", "modules"];

/// The folder whose repository begins or ends when this name is changed so, if one does. `is_git` says whether git calls.
///
/// A folder is the top of a repository as long as it has a `.git` that is a file, or has a `HEAD` in it. Whoever else than git
/// removes what git needs begins to remove all of it.
pub fn turned(call: Call, name: &Name, seen: &Seen, is_git: impl Fn() -> bool) -> Option<PathBuf> {
    let (path, is_there) = match seen {
        Seen::File { path, .. } | Seen::Folder { path } => (path, true),
        Seen::Free { path } => (path, false),
        Seen::Nothing => return None,
    };
    let is_removed = matches!(call, Call::Unlink | Call::UnlinkAt);
    let goes = name.change == Change::Moved || is_removed;
    let Some(folder) = top_of(path) else {
        // Few calls remove anything, and each is looked at.
        let needing = if is_removed && is_there { needing(path) } else { None };
        return needing.filter(|_| !is_git()).map(Path::to_path_buf);
    };
    // What is there and is written anew, as with each change of the branch, stays what it is.
    (goes == is_there).then(|| folder.to_path_buf())
}

/// The top of the repository that needs this.
fn needing(path: &Path) -> Option<&Path> {
    let git = path.ancestors().find(|above| above.file_name().is_some_and(|name| name == ".git"))?;
    let first = path.strip_prefix(git).ok()?.components().next()?;
    // Whoever writes into a repository without git makes such names, and takes them away again.
    let last = path.file_name()?.to_str()?;
    if last.ends_with(".lock") || last.starts_with("tmp_") {
        return None;
    }
    git.parent().filter(|_| NEEDED.iter().any(|needed| first.as_os_str() == *needed))
}

fn top_of(path: &Path) -> Option<&Path> {
    let is_git = |path: &&Path| path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"));
    let git = if path.file_name()? == "HEAD" { path.parent()? } else { path };
    Some(git).filter(is_git)?.parent()
}

#[cfg(test)]
mod tests {
    use tenure_gate::calls::Folder;

    use super::*;

    fn change(call: Call, change: Change, seen: &Seen) -> Option<PathBuf> {
        let name = Name { folder: Folder::Working, text: "x".into(), follows: false, change };
        turned(call, &name, seen, || false)
    }

    #[test]
    fn only_git_tidies_up() {
        let name = Name { folder: Folder::Working, text: "x".into(), follows: false, change: Change::Lost };
        let file = |path: &str| Seen::File { path: path.into(), names: 1 };
        let removed = |path: &str, is_git| turned(Call::UnlinkAt, &name, &file(path), || is_git);
        for path in ["/r/.git/objects/ab/cd", "/r/.git/config", "/r/.git/worktrees/x/HEAD"] {
            assert_eq!(removed(path, false), Some("/r".into()), "{path}");
            assert_eq!(removed(path, true), None, "{path}");
        }
        let moved = Name { change: Change::Moved, ..name.clone() };
        let renamed = turned(Call::Rename, &moved, &file("/r/.git/objects/tmp_obj_1"), || false);
        assert_eq!(renamed, None, "other programs write into repositories too");
        for path in [
            "/r/.git/refs/heads/main.lock",
            "/r/.git/index.lock",
            "/r/.git/COMMIT_EDITMSG",
            "/r/objects/a",
            "/r/.git/hooks/x",
        ] {
            assert_eq!(removed(path, false), None, "{path}");
        }
    }

    #[test]
    fn a_repository_ends_with_its_head_and_begins_with_it() {
        let file = |path: &str| Seen::File { path: path.into(), names: 1 };
        let free = |path: &str| Seen::Free { path: path.into() };
        let top = Some(PathBuf::from("/r"));
        assert_eq!(change(Call::Unlink, Change::Lost, &file("/r/.git/HEAD")), top);
        assert_eq!(change(Call::UnlinkAt, Change::Lost, &file("/r/.git")), top);
        assert_eq!(change(Call::Rename, Change::Moved, &Seen::Folder { path: "/r/.git".into() }), top);
        assert_eq!(change(Call::Rename, Change::Lost, &free("/r/.git/HEAD")), top);
        assert_eq!(change(Call::Symlink, Change::Made, &free("/r/.git")), top);
        assert_eq!(change(Call::OpenAt, Change::Lost, &free("/r/.git")), top);
        for (call, how, seen) in [
            (Call::Rename, Change::Lost, file("/r/.git/HEAD")),
            (Call::OpenAt, Change::Lost, file("/r/.git/HEAD")),
            (Call::OpenAt, Change::Made, free("/r/.git/HEAD.lock")),
            (Call::Unlink, Change::Lost, file("/r/.git/index")),
            (Call::Unlink, Change::Lost, file("/r/HEAD")),
            (Call::Unlink, Change::Lost, free("/r/.git/HEAD")),
        ] {
            assert_eq!(change(call, how, &seen), None, "{call:?} {seen:?}");
        }
    }
}
