//! Job control: the launcher stops, continues and ends as the command does, so a shell sees the same job as without it.

use std::process::ExitCode;

use nix::sys::signal::{SigSet, Signal, raise};
use nix::unistd::{Pid, getpgid, getpgrp, getpid, getsid};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tenure_host::interprocess::CommandExit;
use tenure_host::process::ancestors;

/// Whether our group is one that can be named here. It is not if it began outside of our namespace.
pub fn has_visible_process_group() -> bool {
    getpgrp().as_raw() > 0
}

/// Whether this process leads its session: it alone is told when the terminal is gone.
pub fn is_session_leader() -> bool {
    getsid(None) == Ok(getpid())
}

/// Whether somebody above would let our job go on if it stopped: a shell of this session, in another group than ours.
///
/// The system takes the keeper for such a one, because it is in a group of its own; so it would stop jobs that nobody can wake.
pub fn has_job_control_shell() -> bool {
    let (session, group) = (getsid(None), getpgrp());
    let above = ancestors(std::process::id()).into_iter().filter_map(|above| i32::try_from(above.pid).ok());
    let mut ours = above.map(|pid| Some(Pid::from_raw(pid))).take_while(|pid| getsid(*pid) == session);
    ours.any(|pid| getpgid(pid).is_ok_and(|theirs| theirs != group))
}

/// Stops this process by this signal, until somebody lets it go on.
pub fn stop_by_signal(signal: Signal) {
    let one = SigSet::from(signal);
    let is_blocked = SigSet::thread_get_mask().is_ok_and(|waiting| waiting.contains(signal));
    let _ = raise(signal);
    if is_blocked {
        let _ = one.thread_unblock();
        let _ = one.thread_block();
    }
}

/// Ends this process by the signal that ended the command: a shell that runs a loop ends it after Ctrl-C, and says what it says
/// of others. If the signal cannot end us, the code that shells give for it.
pub fn exit_by_signal(number: i32) -> ExitCode {
    // The command has left its memory on the disk, if anybody wants it; ours explains nothing.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    if let Ok(signal) = Signal::try_from(number) {
        // The first one may meet a handler of Rust's own, which goes away with it.
        for _ in 0..2 {
            let _ = raise(signal);
            let _ = SigSet::from(signal).thread_unblock();
        }
    }
    CommandExit::Signal(number).exit_code().into()
}
