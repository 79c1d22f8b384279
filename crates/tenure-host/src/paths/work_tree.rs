//! Working trees of git, found without running git.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat, lstat};
use rustix::io::Errno;

use super::PathError;
use super::normalized_path::{digest, machine_digest};
use super::resolve::{absolute_path, resolve};

/// The longest `.git` file that is read. It holds one path.
const MAX_GITFILE_BYTES: u64 = 16 * 1024;

/// A working tree of git. A linked worktree and a submodule are working trees of their own; a bare repository has none.
///
/// What only git's settings or environment know (`core.worktree`, `GIT_WORK_TREE`) is not seen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkTree {
    /// Which one it is: sixteen hex digits, of this machine and the root folder itself. So it has one id wherever it is
    /// mounted, and another one on another machine.
    pub id: String,
    /// Its root folder, with all links resolved.
    pub root: PathBuf,
    /// Where git keeps what it knows of this working tree: `.git`, or `.git/worktrees/x` of another one.
    pub git_dir: PathBuf,
}

impl WorkTree {
    /// Whether a real path in this tree is git's own: below a `.git`, or where git keeps what it knows of this tree. That may lie
    /// beside the files, where all working trees of a repository stand around a bare one.
    pub fn is_git_internal(&self, path: &Path) -> bool {
        let is_inside = self.git_dir != self.root && self.git_dir.starts_with(&self.root);
        is_below_git(&self.root, path) || (is_inside && path.starts_with(&self.git_dir))
    }
}

/// The working tree that `start` lies in: a folder, or a file, which need not exist. `None` outside of all of them, and
/// inside a folder of git's own.
pub fn work_tree_of(start: &Path) -> Result<Option<WorkTree>, PathError> {
    let cwd = if start.is_absolute() { PathBuf::new() } else { current_dir(start)? };
    let reached = resolve(&absolute_path(start, &cwd)?)?;
    let folder = if reached.is_folder() { Some(&*reached.path) } else { reached.path.parent() };
    let tree = folder.map(find_tree_above).transpose()?.flatten();
    Ok(tree.filter(|tree| !tree.is_git_internal(&reached.path)))
}

/// The working tree whose root is this real folder or one above it: no part of its path is a link.
pub fn tree_above(folder: &Path) -> Result<Option<WorkTree>, PathError> {
    find_tree_above(folder)
}

/// The same, for those who followed the links.
pub(super) fn find_tree_above(folder: &Path) -> Result<Option<WorkTree>, PathError> {
    for root in folder.ancestors() {
        if let Some(git_dir) = git_dir_of(root)? {
            let about = lstat(root).map_err(|errno| PathError::from_errno(root, errno))?;
            return Ok(Some(WorkTree {
                id: id_of(machine_digest(), file_identity(&about)),
                root: root.to_path_buf(),
                git_dir,
            }));
        }
    }
    Ok(None)
}

/// Whether a path below the root is in a `.git`. Git itself never takes such a name into a commit.
fn is_below_git(root: &Path, path: &Path) -> bool {
    let below = path.strip_prefix(root).unwrap_or(path);
    // In any case, as git does: where names are folded, `.GIT` is the same folder.
    below.components().any(|component| component.as_os_str().eq_ignore_ascii_case(".git"))
}

fn id_of(machine: &str, (device, inode): (u64, u64)) -> String {
    digest("tenure work tree", &[machine.as_bytes(), &device.to_le_bytes(), &inode.to_le_bytes()])
}

/// The device and the number of a file.
pub(super) fn file_identity(about: &Stat) -> (u64, u64) {
    (about.st_dev, about.st_ino)
}

/// What git keeps for the working tree with this root, if it is one.
///
/// One question for most folders: a `.git` folder without a `HEAD` is none for git either. That may be a link that leads
/// nowhere yet, so it is not followed.
fn git_dir_of(root: &Path) -> Result<Option<PathBuf>, PathError> {
    let git = root.join(".git");
    match lstat(git.join("HEAD")) {
        Ok(_) => Ok(Some(git)),
        Err(Errno::NOENT | Errno::NAMETOOLONG | Errno::LOOP) => Ok(None),
        Err(Errno::NOTDIR) => pointer(root, &git),
        // Whoever may not look into it may still write beside it.
        Err(Errno::ACCESS) => Ok(is_folder(&git).then_some(git)),
        Err(errno) => Err(PathError::from_errno(&git, errno)),
    }
}

/// What a `.git` file points to: `gitdir: PATH`.
fn pointer(root: &Path, git: &Path) -> Result<Option<PathBuf>, PathError> {
    let mut text = Vec::new();
    let read = fs::File::open(git).and_then(|file| file.take(MAX_GITFILE_BYTES).read_to_end(&mut text));
    match read {
        Ok(_) => {}
        // The folder above was no folder, or it went away meanwhile.
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(PathError::Other { path: git.to_path_buf(), source }),
    }
    let Some(path) = text.strip_prefix(b"gitdir:") else { return Ok(None) };
    let path = root.join(OsStr::from_bytes(path.trim_ascii()));
    // One that leads nowhere is still a working tree to whoever edits in it, only git is broken there.
    Ok(Some(fs::canonicalize(&path).unwrap_or(path)))
}

fn is_folder(path: &Path) -> bool {
    lstat(path).is_ok_and(|about| FileType::from_raw_mode(about.st_mode).is_dir())
}

fn current_dir(start: &Path) -> Result<PathBuf, PathError> {
    std::env::current_dir().map_err(|source| PathError::Other { path: start.to_path_buf(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    // S4-9
    #[test]
    fn work_tree_ids_differ_between_machines() {
        assert_eq!(id_of("this", (1, 2)), id_of("this", (1, 2)));
        assert_ne!(id_of("this", (1, 2)), id_of("that", (1, 2)));
        assert_ne!(id_of("this", (1, 2)), id_of("this", (2, 1)));
    }
}
