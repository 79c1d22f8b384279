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
        for identity in open_of(pid, usize::MAX, |identity| files.contains(&identity)) {
            let places = files.iter().zip(&mut open).filter(|(file, _)| **file == identity);
            places.for_each(|(_, open)| *open = true);
        }
    }
    open
}

/// What a process has open for writing of what is wanted, by device and number. So many of its descriptors are looked at, at
/// most.
pub(super) fn open_of(
    pid: u32,
    most: usize,
    mut is_wanted: impl FnMut((u64, u64)) -> bool,
) -> impl Iterator<Item = (u64, u64)> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    descriptors.take(most).filter_map(move |descriptor| {
        // Follows the link to the open file itself, whatever it is called by now; it is not opened.
        let about = fs::metadata(descriptor.path()).ok()?;
        let identity = (about.dev(), about.ino());
        let is_open = is_wanted(identity) && is_for_writing(pid, &descriptor.file_name().to_string_lossy());
        is_open.then_some(identity)
    })
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
