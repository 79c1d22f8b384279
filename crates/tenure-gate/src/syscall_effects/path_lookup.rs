//! Places that a call names, and files that only the call itself sees.

use std::ffi::{OsStr, OsString};
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

/// Whether a new file of this name is somebody's temporary one. `beside` says whether there is a file of another name in the same
/// folder: names that end in a random part belong to one that has the rest as its name.
pub fn is_temporary_name(name: &OsStr, beside: impl Fn(&OsStr) -> bool) -> bool {
    let name = name.as_bytes();
    let Ok(name) = str::from_utf8(name.strip_prefix(b".").unwrap_or(name)) else { return false };
    // An editor tries whether it may write in a folder.
    let is_trial = name == "4913";
    // `sedAb3xYz`, `tmpab12cd34`, `.goutputstream-AB12CD`.
    let begins = ["sed", "tmp", "tmp.", "goutputstream-", "perlio"]
        .iter()
        .filter_map(|begin| name.strip_prefix(begin))
        .any(|rest| (6..=12).contains(&rest.len()) && is_random(rest));
    // `file.swp`, `file~`, `#file#`, `.#file`.
    let is_editors = ["~", ".swp", ".swo", ".swx", ".swpx"].iter().any(|end| name.ends_with(end))
        || name.len() > 2 && name.starts_with('#');
    // `file.tmp`, `file.tmp.1234.ab12`, `file.1234567890`, `.file.Ab3xYz`.
    let parts: Vec<&str> = name.split('.').collect();
    let is_marked = parts.iter().enumerate().skip(1).any(|(place, part)| {
        // `nav.partial.html` is somebody's.
        let is_last = parts.get(place + 1).is_none_or(|next| is_random(next) && has_mixture(next));
        matches!(*part, "tmp" | "temp" | "part" | "partial") && is_last
    });
    let last = parts.last().copied().unwrap_or_default();
    let stem = name.strip_suffix(last).and_then(|stem| stem.strip_suffix('.')).unwrap_or_default();
    let is_numbered = !stem.is_empty()
        && last.len() >= 6
        && is_random(last)
        && has_mixture(last)
        && beside(OsStr::new(stem));
    is_trial || begins || is_editors || is_marked || is_numbered
}

fn is_random(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Letters and digits, or large and small letters, or digits alone: an ending like `markdown` has none of that.
fn has_mixture(text: &str) -> bool {
    let has = |is: fn(&u8) -> bool| text.as_bytes().iter().any(is);
    let (digit, small, large) =
        (has(u8::is_ascii_digit), has(u8::is_ascii_lowercase), has(u8::is_ascii_uppercase));
    digit || small && large
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

    #[test]
    fn temporary_file_names_are_recognized() {
        for name in [
            "sedAb3xYz",
            "tmpx1y2z3w4",
            "tmp.Qr5tUv",
            ".a.txt.Ab3xYz",
            "a.txt.tmp",
            "a.txt.tmp.4242.deadbeef",
            ".a.txt.swp",
            "a.txt~",
            "#a.txt#",
            ".#a.txt",
            "4913",
            ".goutputstream-AB12CD",
            "package.json.1234567",
            "a.part",
        ] {
            assert!(is_temporary_name(OsStr::new(name), |_| true), "{name}");
        }
    }

    #[test]
    fn ordinary_file_names_are_not_taken_for_temporary() {
        for name in [
            "a.txt",
            "main.rs",
            "README.markdown",
            "Cargo.lock",
            "sed.md",
            "template.html",
            "tmp",
            "tmpfile.c",
            ".gitignore",
            "x.properties",
            "temporary.rs",
            "sediment",
            "Makefile",
            "a.tar.gz",
            "",
            ".",
            "v1.2.3",
            "nav.partial.html",
            "page.tmp.md",
        ] {
            assert!(!is_temporary_name(OsStr::new(name), |_| true), "{name}");
        }
        for name in ["README.Debian", "sums.sha256", "db.sqlite3", "schema.20240101", "Dockerfile.Production"]
        {
            assert!(
                !is_temporary_name(OsStr::new(name), |_| false),
                "{name}: there is no file of the name before the dot"
            );
        }
    }
}
