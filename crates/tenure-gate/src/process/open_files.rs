//! Which files a process and those whom it started have open for writing.

use std::fs;
use std::os::unix::fs::MetadataExt;

use rustix::fs::OFlags;

use super::family::descendants;
use super::identity::Process;

/// Which of these files, by device and number, the process or any of its descendants has open for writing now. What cannot be
/// looked at counts as not open.
///
/// A file that was mapped into memory and then closed is not seen.
pub fn open_for_writing(root: &Process, files: &[(u64, u64)]) -> Vec<bool> {
    let mut open = vec![false; files.len()];
    if files.is_empty() || !matches!(root.entry(), Ok(Some(_))) {
        return open;
    }
    for pid in std::iter::once(root.pid).chain(descendants(root)) {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        for descriptor in descriptors {
            // Follows the link to the open file itself, whatever it is called by now; it is not opened.
            let Ok(about) = fs::metadata(descriptor.path()) else { continue };
            let identity = (about.dev(), about.ino());
            let is_wanted = files.iter().zip(&open).any(|(file, open)| *file == identity && !open);
            if is_wanted && is_for_writing(pid, &descriptor.file_name().to_string_lossy()) {
                files
                    .iter()
                    .zip(&mut open)
                    .filter(|(file, _)| **file == identity)
                    .for_each(|(_, open)| *open = true);
            }
        }
    }
    open
}

/// Whether this descriptor can be written to: `flags: 0102001`, in octal.
fn is_for_writing(pid: u32, descriptor: &str) -> bool {
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/fdinfo/{descriptor}")) else { return false };
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).unwrap_or_default();
    let flags = OFlags::from_bits_retain(flags);
    // One that was opened only to be named can do nothing.
    !flags.contains(OFlags::PATH) && flags.intersects(OFlags::WRONLY | OFlags::RDWR)
}
