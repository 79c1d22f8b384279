//! Places that a call names, and files that only the call itself sees.

use std::ffi::OsString;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, open, openat2, readlink};
use rustix::io::Errno;

/// What is at a place. Paths are real: no part of them but the last one of a link itself is a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathState {
    /// A plain file, or a link if it is not to be followed.
    File {
        path: PathBuf,
        link_count: u64,
    },
    Folder {
        path: PathBuf,
    },
    /// Nothing yet, in a folder that is there.
    Missing {
        path: PathBuf,
    },
    /// Nothing that can be leased: a device, a pipe, a place that does not exist at all.
    NotLeasable,
}

/// What is at this absolute path. An error if it leads where only its process can follow.
pub fn look_up(path: &Path, follows: bool) -> Result<PathState, Errno> {
    let mut flags = OFlags::PATH | OFlags::CLOEXEC;
    flags.set(OFlags::NOFOLLOW, !follows);
    let mut file = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS);
    if matches!(file, Err(Errno::NOSYS)) {
        file = open(path, flags, Mode::empty());
    }
    let file = match file {
        Ok(file) => file,
        Err(Errno::NOENT) => return missing_entry(path, follows),
        Err(Errno::LOOP) => return resolve_loop(path, flags),
        // Whoever may not look there cannot change anything there; we are the same user.
        Err(Errno::NOTDIR | Errno::NAMETOOLONG | Errno::ACCESS) => return Ok(PathState::NotLeasable),
        Err(error) => return Err(error),
    };
    let about = fstat(&file)?;
    let kind = FileType::from_raw_mode(about.st_mode);
    if !matches!(kind, FileType::RegularFile | FileType::Directory | FileType::Symlink) {
        return Ok(PathState::NotLeasable);
    }
    let path = readlink(format!("/proc/self/fd/{}", file.as_raw_fd()), Vec::new())?.into_bytes();
    if about.st_nlink == 0 || !path.starts_with(b"/") {
        return Ok(PathState::NotLeasable);
    }
    let path = PathBuf::from(OsString::from_vec(path));
    if kind == FileType::Directory {
        return Ok(PathState::Folder { path });
    }
    Ok(PathState::File { path, link_count: about.st_nlink })
}

/// A link in a circle fails for whoever calls, too. One that leads through somebody's own entry in `/proc` does not.
fn resolve_loop(path: &Path, flags: OFlags) -> Result<PathState, Errno> {
    match open(path, flags, Mode::empty()) {
        Err(Errno::LOOP) => Ok(PathState::NotLeasable),
        // Whether something is there for us says nothing.
        _ => Err(Errno::LOOP),
    }
}

/// Nothing has this name. What would be made is in the folder before it, or where a link leads that leads nowhere.
fn missing_entry(path: &Path, follows: bool) -> Result<PathState, Errno> {
    let (Some(folder), Some(last)) = (path.parent(), path.file_name()) else {
        return Ok(PathState::NotLeasable);
    };
    // `name/` and `name/.` can only be made as folders.
    if !path.as_os_str().as_bytes().ends_with(last.as_bytes()) {
        return Ok(PathState::NotLeasable);
    }
    let PathState::Folder { path: folder } = look_up(folder, true)? else {
        return Ok(PathState::NotLeasable);
    };
    let place = folder.join(last);
    if follows && let Ok(target) = readlink(&place, Vec::new()) {
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        // The system follows forty of them; one that leads to the next is followed by the next look.
        return if target == place { Ok(PathState::NotLeasable) } else { dangling(&folder.join(target)) };
    }
    Ok(PathState::Missing { path: place })
}

/// Where a link leads that leads nowhere: one more step, then it is as if it were in a circle.
fn dangling(target: &Path) -> Result<PathState, Errno> {
    match look_up(target, false)? {
        // A link that leads to another one that leads nowhere. Nobody needs this; and whoever does is refused.
        PathState::File { .. } => Err(Errno::LOOP),
        other => Ok(other),
    }
}

/// Flags of an `open`, of which only the lower half is ever used. What has no name here does not matter.
pub(super) fn open_flags(number: u64) -> OFlags {
    OFlags::from_bits_retain(u32::try_from(number & 0xffff_ffff).unwrap_or_default())
}

/// Whether an `open` with these flags can change anything.
pub(super) fn opens_for_change(flags: OFlags) -> bool {
    let is_only_a_place = flags.contains(OFlags::PATH);
    !is_only_a_place && flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC)
}

/// Whether it makes a file that has no name.
pub(super) fn is_unnamed(flags: OFlags) -> bool {
    flags.contains(OFlags::TMPFILE)
}

/// The number of a descriptor. Those below zero mean the working folder, or nothing at all.
pub(super) fn descriptor(number: u64) -> i32 {
    // The system looks at the lower half alone.
    u32::try_from(number & 0xffff_ffff).unwrap_or_default().cast_signed()
}

pub(super) fn has_flag(number: u64, bit: rustix::fs::AtFlags) -> bool {
    number & u64::from(bit.bits()) != 0
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    // S4-15
    #[test]
    fn lookup_follows_links_like_the_kernel() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at("a/b/file"), "").unwrap();
        symlink("a/b/file", at("link")).unwrap();
        symlink("a/new", at("nowhere")).unwrap();
        symlink("circle", at("circle")).unwrap();
        symlink("/proc/self/cwd", at("own")).unwrap();
        let path_of = |name: &str, follows| match look_up(&at(name), follows).unwrap() {
            PathState::File { path, .. } => path,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(path_of("link", true), at("a/b/file"));
        assert_eq!(path_of("link", false), at("link"));
        assert_eq!(path_of("a/b/../b/file", true), at("a/b/file"));
        assert_eq!(look_up(&at("a/b/"), true), Ok(PathState::Folder { path: at("a/b") }));
        assert_eq!(look_up(&at("a/new"), true), Ok(PathState::Missing { path: at("a/new") }));
        assert_eq!(look_up(&at("nowhere"), true), Ok(PathState::Missing { path: at("a/new") }));
        for name in ["circle", "missing/file", "a/b/file/x", "a/new/"] {
            assert_eq!(look_up(&at(name), true), Ok(PathState::NotLeasable), "{name}");
        }
        assert_eq!(look_up(Path::new("/dev/null"), true), Ok(PathState::NotLeasable));
        assert_eq!(look_up(&at("own/file"), true), Err(Errno::LOOP), "where only its process can follow");
        let PathState::File { link_count: names, .. } = look_up(&at("link"), true).unwrap() else { panic!() };
        assert_eq!(names, 1);
        std::fs::hard_link(at("a/b/file"), at("second")).unwrap();
        let PathState::File { link_count: names, .. } = look_up(&at("second"), true).unwrap() else {
            panic!()
        };
        assert_eq!(names, 2);
    }
}
