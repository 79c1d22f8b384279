//! Kills the remaining processes of an agent that has exited, also those that were reparented.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use tenure_host::process::{self, ancestors, descendants, start_time, writers_of};

use super::attribution::CallOwner;
use super::{SupervisorState, process_tree};

/// What was started by an agent below us that is gone has no owner any more, and must not write on: its files are free soon.
pub fn terminate_orphan_processes(watched: &SupervisorState) {
    for owner in watched.attribution.descendant_agents() {
        let CallOwner::Agent { pid, started: since } = owner else { continue };
        if start_time(pid) == Some(since) {
            continue;
        }
        process_tree::end_with_descendants(watched.attribution.threads_of(owner));
        process_tree::end_with_descendants(remaining_writers(watched, owner));
        watched.attribution.remove_owner(owner);
    }
}

/// Whoever has open what was granted to an agent that is gone, and belongs to nobody who lives: who opened it may be gone too, and
/// have left it to others.
fn remaining_writers(watched: &SupervisorState, owner: CallOwner) -> Vec<u32> {
    let granted = watched.grants.lock().remove_owner(owner);
    let files: HashSet<(u64, u64)> = granted
        .iter()
        .filter_map(|path| fs::metadata(path).ok())
        .map(|about| (about.dev(), about.ino()))
        .collect();
    let Ok(own) = process::own() else { return Vec::new() };
    let below = descendants(&own);
    let writers = writers_of(&files).into_iter().map(|writer| writer.process.pid);
    let is_remaining = |pid: &u32| {
        below.contains(pid)
            && is_orphan(watched, *pid)
            && watched.attribution.owner_of(*pid) == CallOwner::Root
    };
    writers.filter(is_remaining).collect()
}

/// Whether whoever started this process is gone: it is below us, and not below the command.
pub fn is_orphan(watched: &SupervisorState, process: u32) -> bool {
    let own = std::process::id();
    let above = ancestors(process).into_iter().map(|above| above.pid).take_while(|above| *above != own);
    above.last().unwrap_or(process) != watched.command
}
