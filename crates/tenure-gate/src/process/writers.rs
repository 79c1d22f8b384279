//! Who has a file open for writing, of all processes of this user.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use rustix::process::geteuid;

use super::identity::Process;
use super::open_files::open_of;
use super::table::{Entry, all};

/// The most processes that are looked at, the newest first.
const MOST_PROCESSES: usize = 4_096;
/// The most descriptors of one process that are looked at.
const MOST_DESCRIPTORS: usize = 4_096;

/// A process that has a file open for writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// Which file, by device and number.
    pub file: (u64, u64),
    pub process: Process,
    /// What it calls itself, for people.
    pub name: String,
}

/// Who has one of these files open for writing now, of all processes of this user. Whoever has closed it is not found, nor whoever
/// mapped it into memory and closed it then.
pub fn writers_of(files: &HashSet<(u64, u64)>) -> Vec<Writer> {
    if files.is_empty() {
        return Vec::new();
    }
    let user = geteuid().as_raw();
    let mut pids = all();
    // Pids mostly grow: who writes was mostly started not long ago.
    pids.sort_unstable_by(|one, other| other.cmp(one));
    let is_ours = |pid: &u32| fs::metadata(format!("/proc/{pid}")).is_ok_and(|about| about.uid() == user);
    let ours = pids.into_iter().filter(is_ours).take(MOST_PROCESSES);
    ours.flat_map(|pid| written_by(pid, files)).collect()
}

fn written_by(pid: u32, files: &HashSet<(u64, u64)>) -> Vec<Writer> {
    let open: HashSet<(u64, u64)> =
        open_of(pid, MOST_DESCRIPTORS, |identity| files.contains(&identity)).collect();
    if open.is_empty() {
        return Vec::new();
    }
    let found = Entry::of(pid).and_then(|entry| {
        let line = entry.stat()?;
        Ok((Process::seen(pid, &entry, &line)?, line.name))
    });
    let Ok((process, name)) = found else { return Vec::new() };
    open.into_iter().map(|file| Writer { file, process: process.clone(), name: name.clone() }).collect()
}
