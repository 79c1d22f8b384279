//! Ancestors and descendants of a process, and the files that they have open.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::OFlags;
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};
use tenure_core::kernel::ProcessId;

use super::identity::{Liveness, find_entry, from_entry, liveness};
use super::proc_table::{ProcEntry, ProcessStat, all_pids};

/// Deeper than any real chain of processes. A table that changes while it is read must not lead in a circle.
const MAX_DEPTH: usize = 1024;

/// Who started this process, who started that one, and so on: nearest first, itself not among them.
///
/// Whoever's parent has ended was given to another one. So this is who is above it now.
pub fn ancestors(pid: u32) -> Vec<ProcessId> {
    ancestors_with_stat(pid).into_iter().map(|(process, ..)| process).collect()
}

/// The same, with what the table says of each.
pub(super) fn ancestors_with_stat(pid: u32) -> Vec<(ProcessId, ProcEntry, ProcessStat)> {
    let mut found = Vec::new();
    let mut below = ProcEntry::of(pid).and_then(|entry| entry.stat()).ok();
    while let Some(child) = below.take().filter(|child| child.parent != 0 && found.len() < MAX_DEPTH) {
        let Ok(entry) = ProcEntry::of(child.parent) else { break };
        let Ok(line) = entry.stat() else { break };
        // Nobody is older than its parent: this pid was used again since the child was looked at.
        if line.started > child.started {
            break;
        }
        let Ok(process) = from_entry(child.parent, &entry, &line) else { break };
        below = Some(line.clone());
        found.push((process, entry, line));
    }
    found
}

/// The pids of all whom this process started, whom those started, and so on. Itself is not among them.
pub fn descendants(process: &ProcessId) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<(u32, u64)>> = HashMap::new();
    for pid in all_pids() {
        if let Ok(line) = ProcEntry::of(pid).and_then(|entry| entry.stat()) {
            children.entry(line.parent).or_default().push((pid, line.started));
        }
    }
    // Looked at last: as long as it is there, its pid was its own all the while.
    if !matches!(find_entry(process), Ok(Some(_))) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut ahead = vec![(process.pid, process.started)];
    while let Some((pid, started)) = ahead.pop() {
        let younger =
            children.remove(&pid).unwrap_or_default().into_iter().filter(|(_, since)| *since >= started);
        for child in younger {
            found.push(child.0);
            ahead.push(child);
        }
    }
    found
}

/// The most processes that are looked at, the newest first.
const MAX_PROCESSES: usize = 4_096;
/// The most descriptors of one process that are looked at.
const MAX_DESCRIPTORS: usize = 4_096;

/// A process that has a file open for writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriterProcess {
    /// Which file, by device and number.
    pub file: (u64, u64),
    pub process: ProcessId,
    /// What it calls itself, for people.
    pub name: String,
}

/// Who has one of these files open for writing now, of all processes of this user. Whoever has closed it is not found, nor whoever
/// mapped it into memory and closed it then.
pub fn writers_of(files: &HashSet<(u64, u64)>) -> Vec<WriterProcess> {
    if files.is_empty() {
        return Vec::new();
    }
    let user = geteuid().as_raw();
    let mut pids = all_pids();
    // Pids mostly grow: who writes was mostly started not long ago.
    pids.sort_unstable_by(|one, other| other.cmp(one));
    let is_ours = |pid: &u32| fs::metadata(format!("/proc/{pid}")).is_ok_and(|about| about.uid() == user);
    let ours = pids.into_iter().filter(is_ours).take(MAX_PROCESSES);
    ours.flat_map(|pid| files_written_by(pid, files)).collect()
}

fn files_written_by(pid: u32, files: &HashSet<(u64, u64)>) -> Vec<WriterProcess> {
    let open: HashSet<(u64, u64)> =
        open_files(pid, MAX_DESCRIPTORS, |identity| files.contains(&identity)).collect();
    if open.is_empty() {
        return Vec::new();
    }
    let found = ProcEntry::of(pid).and_then(|entry| {
        let line = entry.stat()?;
        Ok((from_entry(pid, &entry, &line)?, line.name))
    });
    let Ok((process, name)) = found else { return Vec::new() };
    open.into_iter().map(|file| WriterProcess { file, process, name: name.clone() }).collect()
}

/// Which of these files, by device and number, the process or any of its descendants has open for writing now. What cannot be
/// looked at counts as not open.
///
/// A file that was mapped into memory and then closed is not seen.
pub fn open_for_writing(root: &ProcessId, files: &[(u64, u64)]) -> Vec<bool> {
    let mut open = vec![false; files.len()];
    if files.is_empty() || !matches!(find_entry(root), Ok(Some(_))) {
        return open;
    }
    for pid in std::iter::once(root.pid).chain(descendants(root)) {
        for identity in open_files(pid, usize::MAX, |identity| files.contains(&identity)) {
            let places = files.iter().zip(&mut open).filter(|(file, _)| **file == identity);
            places.for_each(|(_, open)| *open = true);
        }
    }
    open
}

/// What a process has open for writing of what is wanted, by device and number. So many of its descriptors are looked at, at
/// most.
pub(super) fn open_files(
    pid: u32,
    max_descriptors: usize,
    mut matches: impl FnMut((u64, u64)) -> bool,
) -> impl Iterator<Item = (u64, u64)> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    descriptors.take(max_descriptors).filter_map(move |descriptor| {
        // Follows the link to the open file itself, whatever it is called by now; it is not opened.
        let about = fs::metadata(descriptor.path()).ok()?;
        let identity = (about.dev(), about.ino());
        let is_open = matches(identity) && is_for_writing(pid, &descriptor.file_name().to_string_lossy());
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

/// A descriptor of one process, and of no other, even when its pid is used again. It becomes readable when that ends.
#[derive(Debug)]
pub struct ProcessExitWatch(OwnedFd);

impl ProcessExitWatch {
    /// Watches this process. `None` if it is dead already, or if no descriptor could be had: before anything is taken from
    /// it, [`liveness`] says which.
    pub fn of(process: &ProcessId) -> Option<ProcessExitWatch> {
        let pid = Pid::from_raw(i32::try_from(process.pid).ok()?)?;
        let watch = ProcessExitWatch(pidfd_open(pid, PidfdFlags::empty()).ok()?);
        // Only now: what has this pid and started then is the one that was opened, since it was there before.
        (liveness(process) != Liveness::Dead).then_some(watch)
    }
}

impl AsFd for ProcessExitWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
