//! Who was started by whom.

use std::collections::HashMap;

use super::identity::Process;
use super::table::{Entry, Stat, all};

/// Deeper than any real chain of processes. A table that changes while it is read must not lead in a circle.
const DEEPEST: usize = 1024;

/// Who started this process, who started that one, and so on: nearest first, itself not among them.
///
/// Whoever's parent has ended was given to another one. So this is who is above it now.
pub fn ancestors(pid: u32) -> Vec<Process> {
    above(pid).into_iter().map(|(process, ..)| process).collect()
}

/// The same, with what the table says of each.
pub(super) fn above(pid: u32) -> Vec<(Process, Entry, Stat)> {
    let mut found = Vec::new();
    let mut below = Entry::of(pid).and_then(|entry| entry.stat()).ok();
    while let Some(child) = below.take().filter(|child| child.parent != 0 && found.len() < DEEPEST) {
        let Ok(entry) = Entry::of(child.parent) else { break };
        let Ok(line) = entry.stat() else { break };
        // Nobody is older than its parent: this pid was used again since the child was looked at.
        if line.started > child.started {
            break;
        }
        let Ok(process) = Process::seen(child.parent, &entry, &line) else { break };
        below = Some(line.clone());
        found.push((process, entry, line));
    }
    found
}

/// The pids of all whom this process started, whom those started, and so on. Itself is not among them.
pub fn descendants(process: &Process) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<(u32, u64)>> = HashMap::new();
    for pid in all() {
        if let Ok(line) = Entry::of(pid).and_then(|entry| entry.stat()) {
            children.entry(line.parent).or_default().push((pid, line.started));
        }
    }
    // Looked at last: as long as it is there, its pid was its own all the while.
    if !matches!(process.entry(), Ok(Some(_))) {
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
