//! Being told when a process ends.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::identity::{Liveness, Process};

/// A descriptor of one process, and of no other, even when its pid is used again. It becomes readable when that ends.
#[derive(Debug)]
pub struct Watch(OwnedFd);

impl Watch {
    /// Watches this process. `None` if it is dead already, or if no descriptor could be had: before anything is taken from
    /// it, [`Process::liveness`] says which.
    pub fn of(process: &Process) -> Option<Watch> {
        let pid = Pid::from_raw(i32::try_from(process.pid).ok()?)?;
        let watch = Watch(pidfd_open(pid, PidfdFlags::empty()).ok()?);
        // Only now: what has this pid and started then is the one that was opened, since it was there before.
        (process.liveness() != Liveness::Dead).then_some(watch)
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
