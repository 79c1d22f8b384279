//! Where a name leads: the real path of a file, whether it exists or is still to be created.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, lstat, open, readlink};
use rustix::io::Errno;

use super::PathError;

/// How many links the system follows in one name.
const MAX_LINKS: usize = 40;

pub(super) struct ResolvedPath {
    /// Absolute, and no part of it is a link.
    pub path: PathBuf,
    /// What is there, if anything is.
    pub found: Option<Stat>,
    /// How many parts at the end of the path do not exist yet.
    pub missing: usize,
    /// The name ends as only a folder's can.
    ends_as_folder: bool,
}

impl ResolvedPath {
    /// Whether it is a folder, or can only become one.
    pub fn is_folder(&self) -> bool {
        let is = self.found.as_ref().map(|about| FileType::from_raw_mode(about.st_mode).is_dir());
        is.unwrap_or(self.ends_as_folder)
    }

    /// The deepest folder on the way that exists.
    pub fn deepest_folder(&self) -> &Path {
        let up = self.missing.max(1);
        self.path.ancestors().nth(up).unwrap_or(Path::new("/"))
    }
}

pub(super) fn resolve(whole: &Path) -> Result<ResolvedPath, PathError> {
    let reached = match resolve_with_kernel(whole) {
        Ok(None) => resolve_stepwise(whole),
        Ok(Some(reached)) => Ok(reached),
        Err(errno) => Err(errno),
    };
    reached.map_err(|errno| PathError::from_errno(whole, errno))
}

/// Where this absolute path leads, without following a link that has this very name.
pub(super) fn resolve_nofollow(whole: &Path) -> Result<ResolvedPath, PathError> {
    let (Some(folder), Some(last)) = (whole.parent(), whole.file_name()) else { return resolve(whole) };
    let is_link = lstat(whole).is_ok_and(|about| FileType::from_raw_mode(about.st_mode).is_symlink());
    if !is_link {
        return resolve(whole);
    }
    let folder = resolve(folder)?;
    let path = folder.path.join(last);
    let found = stat_if_present(&path).map_err(|errno| PathError::from_errno(whole, errno))?;
    let missing = if found.is_some() { 0 } else { 1 };
    Ok(ResolvedPath { path, found, missing, ends_as_folder: false })
}

/// The absolute path that is meant, as it was written.
pub(super) fn absolute_path(path: &Path, cwd: &Path) -> Result<PathBuf, PathError> {
    if path.as_os_str().is_empty() {
        return Err(PathError::Empty);
    }
    let whole = cwd.join(path);
    if whole.as_os_str().as_bytes().contains(&0) {
        return Err(PathError::Nul(path.to_path_buf()));
    }
    if whole.is_absolute() {
        return Ok(whole);
    }
    std::path::absolute(&whole).map_err(|source| PathError::Other { path: path.to_path_buf(), source })
}

/// Lets the system follow the name in one step, and asks it how it calls what it found. `None` where that cannot be
/// believed, or nothing is there.
fn resolve_with_kernel(whole: &Path) -> Result<Option<ResolvedPath>, Errno> {
    let file = match open(whole, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    let Ok(name) = readlink(format!("/proc/self/fd/{}", file.as_raw_fd()), Vec::new()) else {
        return Ok(None);
    };
    let name = name.into_bytes();
    // What was renamed over or removed since is called so; so may a file really be. And a pipe has no path at all.
    if !name.starts_with(b"/") || name.ends_with(b" (deleted)") {
        return Ok(None);
    }
    let path = PathBuf::from(OsString::from_vec(name));
    let ends_as_folder = ends_as_folder(whole);
    Ok(Some(ResolvedPath { path, found: Some(fstat(&file)?), missing: 0, ends_as_folder }))
}

/// Follows the name part by part. What does not exist is taken as it is written.
fn resolve_stepwise(whole: &Path) -> Result<ResolvedPath, Errno> {
    let mut path = PathBuf::from("/");
    let mut ahead: VecDeque<OsString> = parts(whole).collect();
    let mut links = 0;
    let mut missing: usize = 0;
    while let Some(part) = ahead.pop_front() {
        if part == ".." {
            // Nothing of what was gone through is a link any more, so this is the folder above.
            path.pop();
            missing = missing.saturating_sub(1);
            continue;
        }
        path.push(&part);
        if missing > 0 {
            missing += 1;
            continue;
        }
        match readlink(&path, Vec::new()) {
            Ok(target) => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::LOOP);
                }
                path.pop();
                let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                if target.is_absolute() {
                    path = PathBuf::from("/");
                }
                parts(&target).collect::<Vec<_>>().into_iter().rev().for_each(|part| ahead.push_front(part));
            }
            // No link.
            Err(Errno::INVAL) => {}
            Err(Errno::NOENT) => missing = 1,
            Err(errno) => return Err(errno),
        }
    }
    let found = if missing > 0 { None } else { stat_if_present(&path)? };
    let missing = if found.is_none() { missing.max(1) } else { 0 };
    Ok(ResolvedPath { path, found, missing, ends_as_folder: ends_as_folder(whole) })
}

/// What is at this path. It may have gone since it was looked for.
fn stat_if_present(path: &Path) -> Result<Option<Stat>, Errno> {
    match lstat(path) {
        Ok(about) => Ok(Some(about)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// The parts of a path, without those that mean nothing.
fn parts(path: &Path) -> impl Iterator<Item = OsString> {
    let parts = path.components().filter_map(|component| match component {
        Component::Normal(part) => Some(part),
        Component::ParentDir => Some(OsStr::new("..")),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    parts.map(OsStr::to_owned)
}

/// Whether a name ends with a slash, or with a dot or two: no file's name does.
fn ends_as_folder(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    bytes.ends_with(b"/") || bytes.ends_with(b"/.") || bytes.ends_with(b"/..")
}

/// The path with each `..` and the part before it removed, as many tools do before they open a file. It leads elsewhere
/// than the system would go where the part before is a link. `None` where there is nothing to remove, or no file is meant.
pub(super) fn without_dot_dot(whole: &Path) -> Option<PathBuf> {
    if ends_as_folder(whole) || !whole.components().any(|component| component == Component::ParentDir) {
        return None;
    }
    let mut path = PathBuf::from("/");
    for part in parts(whole) {
        if part == ".." {
            path.pop();
        } else {
            path.push(part);
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_and_stepwise_resolution_agree() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at("a/b/file (deleted)"), "").unwrap();
        std::fs::write(at("a/b/file"), "").unwrap();
        std::os::unix::fs::symlink("../a/b/file", at("a/link")).unwrap();
        std::os::unix::fs::symlink(at("a/link"), at("again")).unwrap();
        for name in ["a/b/file", "a/link", "again", "a/b/../link", "a//./b/file"] {
            let quick = resolve_with_kernel(&at(name)).unwrap().unwrap();
            let slow = resolve_stepwise(&at(name)).unwrap();
            assert_eq!((&quick.path, quick.missing), (&slow.path, slow.missing), "{name}");
            assert_eq!(quick.found.unwrap().st_ino, slow.found.unwrap().st_ino);
        }
        assert!(
            resolve_with_kernel(&at("a/b/file (deleted)")).unwrap().is_none(),
            "a name that cannot be believed"
        );
        let reached = resolve(&at("a/b/file (deleted)")).unwrap();
        assert!(reached.path.ends_with("a/b/file (deleted)") && reached.missing == 0);
    }

    #[test]
    fn only_paths_with_dot_dot_are_shortened() {
        assert_eq!(without_dot_dot(Path::new("/a/b")), None);
        assert_eq!(without_dot_dot(Path::new("/a/b/../../../c/./d")), Some(PathBuf::from("/c/d")));
    }
}
