//! Whether a file changed after its writer started: then the writer may be about to write what it read before.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};
use tenure_host::process::{ancestors, foreground_process_group, start_time};

use super::attribution::CallOwner;

/// Times of processes are as coarse as this.
const PROCESS_CLOCK_ERROR: i128 = 10_000_000;
const SECOND: i128 = 1_000_000_000;

/// The wall clock by which the times of files are taken, in nanoseconds: whatever changes from now on has no earlier time.
pub fn wall_clock_nanoseconds() -> i128 {
    nanoseconds(ClockId::RealtimeCoarse)
}

/// When this file last changed in any way, on the same clock; nothing if it is not there.
pub fn last_changed_at(path: &Path) -> Option<i128> {
    let about = std::fs::symlink_metadata(path).ok()?;
    Some(i128::from(about.ctime()) * SECOND + i128::from(about.ctime_nsec()))
}

/// Whether something that changed then may have changed after this began.
pub fn may_have_changed_after(changed: i128, began: i128) -> bool {
    changed >= began
}

/// When that began which the owner started and which makes the call: whatever it read, it read since then. Nothing if the owner
/// itself calls: what an agent knows is known by its hooks.
pub fn started_at(owner: CallOwner, process: u32, first: i128) -> Option<i128> {
    let CallOwner::Agent { pid, .. } = owner else {
        return Some(job(process).map_or(first, |job| job.max(first)));
    };
    if process == pid {
        return None;
    }
    let below = ancestors(process).into_iter().map(|above| above.pid).take_while(|above| *above != pid);
    on_the_wall(below.last().unwrap_or(process))
}

/// When the command began to which a process belongs that somebody typed at a terminal: what the shell there knows, the person
/// has seen. Nothing for all else: a program may have read before what it has others write.
fn job(process: u32) -> Option<i128> {
    on_the_wall(foreground_process_group(process)?)
}

/// When a process began, on the wall clock; rather too early than too late.
fn on_the_wall(process: u32) -> Option<i128> {
    let ticks = i128::from(start_time(process)?);
    let per_second = i128::from(rustix::param::clock_ticks_per_second());
    Some(
        wall_clock_nanoseconds() - nanoseconds(ClockId::Boottime) + ticks * SECOND / per_second
            - PROCESS_CLOCK_ERROR,
    )
}

fn nanoseconds(clock: ClockId) -> i128 {
    let time = clock_gettime(clock);
    i128::from(time.tv_sec) * SECOND + i128::from(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_start_time_is_on_the_wall_clock() {
        let before = wall_clock_nanoseconds();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let after = wall_clock_nanoseconds();
        let owner = CallOwner::Agent { pid: std::process::id(), started: 0 };
        let began = started_at(owner, child.id(), 0).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(began >= before - 3 * PROCESS_CLOCK_ERROR && began <= after, "{before} {began} {after}");
        assert_eq!(super::started_at(owner, std::process::id(), 0), None);
        assert_eq!(
            super::started_at(CallOwner::Root, 1, i128::MAX),
            Some(i128::MAX),
            "nothing was read before the guard began"
        );
        assert!(super::started_at(CallOwner::Root, child.id(), 7).is_some_and(|began| began >= 7));
        assert!(
            may_have_changed_after(8, 7) && may_have_changed_after(7, 7) && !may_have_changed_after(6, 7)
        );
    }
}
