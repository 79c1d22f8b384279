//! The whole path that a name means to a process.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{OFlags, readlink};
use rustix::io::Errno;

use super::{BaseFolder, PathArgument};

/// The whole path of a name that this thread uses: absolute, as it is spelled, and so that it means the same to us. `None` if
/// it means something that has no path: a pipe, a file without a name, a folder that was removed.
///
/// `/proc/self` means the thread, and not us; so does `/dev/stdout`. What stands behind a descriptor or the working folder is
/// written out, because that can change the next moment.
pub fn absolute_path(thread: u32, name: &PathArgument) -> io::Result<Option<PathBuf>> {
    let text = Path::new(&name.text);
    if !text.is_absolute() {
        let base = match name.folder {
            BaseFolder::Working => format!("/proc/{thread}/cwd"),
            BaseFolder::Descriptor(number) => format!("/proc/{thread}/fd/{number}"),
        };
        return Ok(link_target(Path::new(&base))?.map(|base| joined(&base, text)));
    }
    let Some((link, rest)) = proc_self_link(thread, text) else { return Ok(Some(rooted(thread, text)?)) };
    Ok(link_target(&link)?.map(|base| joined(&base, &rest)))
}

/// Whether a name is nothing but a descriptor of the thread that is open for writing.
pub fn is_own_writable_descriptor(thread: u32, name: &PathArgument) -> bool {
    let text = Path::new(&name.text);
    let Some((link, rest)) = text.is_absolute().then(|| proc_self_link(thread, text)).flatten() else {
        return false;
    };
    let number = link.strip_prefix(format!("/proc/{thread}/fd")).ok().and_then(Path::to_str);
    let Some(number) = number.filter(|_| rest.as_os_str().is_empty() && name.follows) else { return false };
    let about = std::fs::read_to_string(format!("/proc/{thread}/fdinfo/{number}")).unwrap_or_default();
    let flags = about.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).unwrap_or_default();
    let flags = OFlags::from_bits_retain(flags);
    !flags.contains(OFlags::PATH) && flags.intersects(OFlags::WRONLY | OFlags::RDWR)
}

/// A path without the slash that joining nothing would leave.
fn joined(base: &Path, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() { base.to_path_buf() } else { base.join(rest) }
}

/// What a link of `/proc` leads to. It is followed by the system alone, so its text is only a hint, but the only one.
fn link_target(link: &Path) -> io::Result<Option<PathBuf>> {
    let text = match readlink(link, Vec::new()) {
        Ok(text) => text.into_bytes(),
        // A descriptor that is not open: the call will fail by itself.
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    // What was removed is called so; so may something really be that was not.
    let is_gone = || std::fs::metadata(link).is_ok_and(|about| about.nlink() == 0);
    let is_path = text.starts_with(b"/") && !(text.ends_with(b" (deleted)") && is_gone());
    Ok(is_path.then(|| PathBuf::from(OsString::from_vec(text))))
}

/// The part of the path that leads through the thread's own entry in `/proc`, as a link that can be read, and the rest.
fn proc_self_link(thread: u32, text: &Path) -> Option<(PathBuf, PathBuf)> {
    let parts: Vec<&OsStr> = text
        .components()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .map(Component::as_os_str)
        .collect();
    let named: Vec<&str> = parts.iter().take(5).map(|part| part.to_str().unwrap_or_default()).collect();
    let own = |link: &str, used: usize| {
        let rest: PathBuf = parts[used..].iter().collect();
        Some((PathBuf::from(format!("/proc/{thread}/{link}")), rest))
    };
    match named.as_slice() {
        ["dev", "fd", number, ..] => own(&format!("fd/{number}"), 3),
        ["dev", "stdin", ..] => own("fd/0", 2),
        ["dev", "stdout", ..] => own("fd/1", 2),
        ["dev", "stderr", ..] => own("fd/2", 2),
        ["proc", "self" | "thread-self", "fd", number, ..] => own(&format!("fd/{number}"), 4),
        ["proc", "self" | "thread-self", link @ ("cwd" | "root" | "exe"), ..] => own(link, 3),
        ["proc", "self", "task", _, "fd"] => {
            let number = parts.get(5)?.to_str()?.to_owned();
            own(&format!("fd/{number}"), 6)
        }
        // By its number it may be anybody; what is behind it is the same for us.
        ["proc", process, "fd", number, ..] if is_number(process) => {
            Some((PathBuf::from(format!("/proc/{process}/fd/{number}")), parts[4..].iter().collect()))
        }
        ["proc", process, link @ ("cwd" | "root" | "exe"), ..] if is_number(process) => {
            Some((PathBuf::from(format!("/proc/{process}/{link}")), parts[3..].iter().collect()))
        }
        _ => None,
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The path below the thread's root, which is ours unless it was changed.
fn rooted(thread: u32, text: &Path) -> io::Result<PathBuf> {
    let root = readlink(format!("/proc/{thread}/root"), Vec::new())?.into_bytes();
    if root == b"/" {
        return Ok(text.to_path_buf());
    }
    let below = OsStr::from_bytes(text.as_os_str().as_bytes().trim_ascii_start());
    Ok(Path::new(OsStr::from_bytes(&root)).join(Path::new(below).strip_prefix("/").unwrap_or(text)))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::super::PathChange;
    use super::*;

    fn name(folder: BaseFolder, text: &str) -> PathArgument {
        PathArgument { folder, text: text.into(), follows: true, change: PathChange::Touched }
    }

    // S4-15
    #[test]
    fn paths_are_resolved_as_the_calling_process_sees_them() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("in")).unwrap();
        std::fs::write(root.join("in/file"), "").unwrap();
        // Another process, whose working folder and descriptors are not ours.
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "exec 9<in 8<in/file; echo ready; read end"]).current_dir(&root);
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut other = command.spawn().unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(other.stdout.as_mut().unwrap()), &mut line)
            .unwrap();
        let means = |name: PathArgument| absolute_path(other.id(), &name).unwrap();
        let file = Some(root.join("in/file"));
        assert_eq!(means(name(BaseFolder::Working, "in/file")), file);
        assert_eq!(means(name(BaseFolder::Descriptor(9), "file")), file);
        assert_eq!(means(name(BaseFolder::Descriptor(8), "")), file);
        for text in ["/proc/self/fd/9/file", "/proc/thread-self/fd/8", "/dev/fd/8", "/proc/self/cwd/in/file"]
        {
            assert_eq!(means(name(BaseFolder::Working, text)), file, "{text}");
        }
        assert_eq!(means(name(BaseFolder::Working, &format!("/proc/{}/fd/8", other.id()))), file);
        assert_eq!(means(name(BaseFolder::Working, "//proc/./self/fd/8")), file);
        for text in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/77"] {
            assert_eq!(means(name(BaseFolder::Working, text)), None, "{text}: a pipe, or not open");
        }
        assert_eq!(
            means(name(BaseFolder::Working, "/a/../b")),
            Some("/a/../b".into()),
            "nothing is shortened"
        );
        assert!(is_own_writable_descriptor(other.id(), &name(BaseFolder::Working, "/dev/stdout")));
        assert!(
            !is_own_writable_descriptor(other.id(), &name(BaseFolder::Working, "/dev/fd/8")),
            "it only reads"
        );
        assert!(!is_own_writable_descriptor(other.id(), &name(BaseFolder::Working, "/proc/self/fd/9/file")));
        drop(other.stdin.take());
        other.wait().unwrap();
    }

    #[test]
    fn an_unlinked_file_has_no_path() {
        let file = tempfile::tempfile().unwrap();
        let own = name(BaseFolder::Descriptor(file.as_raw_fd()), "");
        assert_eq!(absolute_path(std::process::id(), &own).unwrap(), None);
    }
}
