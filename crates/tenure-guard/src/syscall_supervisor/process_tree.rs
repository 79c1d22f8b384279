//! The supervised processes: reaps those that exit, notices those that stop, and kills those that lost their agent.

use parking_lot::RwLock;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, kill_process, wait, waitid,
};
use tenure_host::process::{self, ProcessStat, descendants};

/// Held for reading by whoever waits for a process of its own; those that were watched are not waited for meanwhile.
pub static OWN_PROCESSES: RwLock<()> = RwLock::new(());

/// Lets go of everybody who ended, and tells each. Says whether all could be looked at.
pub fn reap(mut ended: impl FnMut(Pid, WaitStatus)) -> bool {
    let Some(_alone) = OWN_PROCESSES.try_write() else { return false };
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        ended(pid, status);
    }
    true
}

/// By which signal this child of ours was stopped, if it was since the last look.
pub fn signal_that_stopped(child: Pid) -> Option<i32> {
    let stopped = waitid(WaitId::Pid(child), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG);
    stopped.ok().flatten()?.stopping_signal()
}

/// Whether this process is stopped now.
pub fn is_stopped(process: Pid) -> bool {
    let number = u32::try_from(process.as_raw_nonzero().get()).ok();
    number.and_then(ProcessStat::of).is_some_and(|stat| stat.is_stopped())
}

/// Does something that starts a process and waits for it.
pub fn without_concurrent_reaping<T>(work: impl FnOnce() -> T) -> T {
    let _reading = OWN_PROCESSES.read();
    work()
}

pub fn end_all_descendants() {
    let Ok(own) = process::own() else { return };
    end(descendants(&own));
}

/// Ends these, and whoever is below them.
pub fn end_with_descendants(processes: Vec<u32>) {
    for pid in processes {
        if let Ok(process) = process::of(pid) {
            end(descendants(&process));
        }
        end(vec![pid]);
    }
}

fn end(processes: Vec<u32>) {
    for process in processes {
        if let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) {
            // It may be gone by now.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}
