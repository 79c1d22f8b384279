//! What is mounted where: one file can be seen through several mounts, and has a name in each.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

/// One mount, as `/proc/self/mountinfo` tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    /// Which file system, as `major:minor`.
    device: String,
    /// Which folder of it is seen here. Not `/` where only a part of it is mounted.
    root: PathBuf,
    point: PathBuf,
}

/// All mounts of this process, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Mounts(Vec<Mount>);

impl Mounts {
    /// Reads them. Where the system does not tell, there are none.
    pub fn read() -> Self {
        Self::parse(&read_all("/proc/self/mountinfo").unwrap_or_default())
    }

    fn parse(text: &[u8]) -> Self {
        Self(text.split(|byte| *byte == b'\n').filter_map(mount).collect())
    }

    /// Whether something is mounted below this folder.
    pub fn has_mount_below(&self, folder: &Path) -> bool {
        self.0.iter().any(|mount| mount.point != folder && mount.point.starts_with(folder))
    }

    /// The other names under which the file of this real path can be seen, as far as the table tells. What is really there
    /// must be looked at: another mount may lie over it.
    pub fn path_aliases(&self, path: &Path) -> Vec<PathBuf> {
        let Some((own, mount)) = self.of(path) else { return Vec::new() };
        let Ok(below) = path.strip_prefix(&mount.point) else { return Vec::new() };
        let place = join(&mount.root, below);
        let other_mounts = self.0.iter().enumerate().filter(|(number, other)| {
            *number != own && other.device == mount.device && place.starts_with(&other.root)
        });
        let names = other_mounts.filter_map(|(number, other)| {
            let name = join(&other.point, place.strip_prefix(&other.root).ok()?);
            let is_seen = self.of(&name).is_some_and(|(seen, _)| seen == number);
            (is_seen && name != path).then_some(name)
        });
        names.collect()
    }

    /// The mount through which this path goes: the deepest, and of several at one point the last.
    fn of(&self, path: &Path) -> Option<(usize, &Mount)> {
        let on_the_way = self.0.iter().enumerate().filter(|(_, mount)| path.starts_with(&mount.point));
        on_the_way.max_by_key(|(_, mount)| mount.point.as_os_str().len())
    }
}

/// A path without the slash that joining an empty one would leave: a single file can be a mount.
fn join(base: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { base.to_path_buf() } else { base.join(below) }
}

/// One line: number, parent, device, root, point, and more.
fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ').skip(2);
    let device = str::from_utf8(fields.next()?).ok()?.to_owned();
    Some(Mount { device, root: plain(fields.next()?), point: plain(fields.next()?) })
}

/// A path in which blanks, newlines and backslashes are written as a backslash and three octal digits.
fn plain(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let byte = digits.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[3..] } else { after };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// All of a file whose length is not known before. Few large reads: each line would be a system call otherwise.
fn read_all(path: &str) -> rustix::io::Result<Vec<u8>> {
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut text = vec![0; 16 * 1024];
    let mut length = 0;
    loop {
        let read = rustix::io::read(&file, &mut text[length..])?;
        length += read;
        if read == 0 {
            text.truncate(length);
            return Ok(text);
        }
        text.resize(length + 16 * 1024, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
21 1 254:0 / / rw - ext4 /dev/vda rw
30 21 254:0 /repo/y /repo/x rw - ext4 /dev/vda rw
31 21 254:0 /repo/src /mnt/with\\040blank rw - ext4 /dev/vda rw
32 21 254:0 /repo/one.txt /other/two.txt rw - ext4 /dev/vda rw
33 21 0:5 / /dev rw - devtmpfs devtmpfs rw
34 21 0:6 / /hidden rw - tmpfs tmpfs rw
";

    #[test]
    fn a_file_has_a_name_in_each_mount_that_shows_it() {
        let mounts = Mounts::parse(TABLE.as_bytes());
        let names = |path: &str| mounts.path_aliases(path.as_ref());
        assert_eq!(names("/repo/x/f"), [Path::new("/repo/y/f")]);
        assert_eq!(names("/repo/y/f"), [Path::new("/repo/x/f")]);
        assert_eq!(names("/mnt/with blank/a.rs"), [Path::new("/repo/src/a.rs")]);
        assert_eq!(names("/repo/one.txt"), [Path::new("/other/two.txt")]);
        assert_eq!(names("/other/two.txt"), [Path::new("/repo/one.txt")]);
        assert!(names("/repo/z/f").is_empty() && names("/dev/null").is_empty());
    }

    #[test]
    fn names_hidden_by_another_mount_are_omitted() {
        let table = format!("{TABLE}35 21 0:7 / /repo/y rw - tmpfs tmpfs rw\n");
        let mounts = Mounts::parse(table.as_bytes());
        assert!(mounts.path_aliases("/repo/x/f".as_ref()).is_empty());
    }

    #[test]
    fn mounts_below_a_folder_are_found() {
        let mounts = Mounts::parse(TABLE.as_bytes());
        assert!(mounts.has_mount_below("/repo".as_ref()) && mounts.has_mount_below("/mnt".as_ref()));
        assert!(!mounts.has_mount_below("/repo/x".as_ref()) && !mounts.has_mount_below("/re".as_ref()));
    }

    #[test]
    fn the_mounts_of_this_process_are_read() {
        assert!(Mounts::read().of("/proc/self".as_ref()).is_some());
        assert!(Mounts::parse(b"\n1 2\nnot a mount at all").0.len() <= 1);
    }
}
