//! Those whose agent is gone, or whoever started them.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use tenure_gate::process::{Process, ancestors, descendants, started, writers_of};

use super::owners::Owner;
use super::{Watched, family};

/// What was started by an agent below us that is gone has no owner any more, and must not write on: its files are free soon.
pub fn end(watched: &Watched) {
    for owner in watched.owners.below() {
        let Owner::Agent { pid, started: since } = owner else { continue };
        if started(pid) == Some(since) {
            continue;
        }
        family::end_with_descendants(watched.owners.threads_of(owner));
        family::end_with_descendants(left_writing(watched, owner));
        watched.owners.is_over(owner);
    }
}

/// Whoever has open what was granted to an agent that is gone, and belongs to nobody who lives: who opened it may be gone too, and
/// have left it to others.
fn left_writing(watched: &Watched, owner: Owner) -> Vec<u32> {
    let granted = watched.granted.lock().take(owner);
    let files: HashSet<(u64, u64)> = granted
        .iter()
        .filter_map(|path| fs::metadata(path).ok())
        .map(|about| (about.dev(), about.ino()))
        .collect();
    let Ok(own) = Process::own() else { return Vec::new() };
    let below = descendants(&own);
    let writers = writers_of(&files).into_iter().map(|writer| writer.process.pid);
    let is_left =
        |pid: &u32| below.contains(pid) && is_one(watched, *pid) && watched.owners.of(*pid) == Owner::First;
    writers.filter(is_left).collect()
}

/// Whether whoever started this process is gone: it is below us, and not below the command.
pub fn is_one(watched: &Watched, process: u32) -> bool {
    let own = std::process::id();
    let above = ancestors(process).into_iter().map(|above| above.pid).take_while(|above| *above != own);
    above.last().unwrap_or(process) != watched.command
}
