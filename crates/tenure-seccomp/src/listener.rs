//! Receives calls, and answers them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libc::c_int;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::raw_syscalls;
use crate::syscalls::{Syscall, syscall_by_number};

/// One end of what [`crate::install`] makes. Whoever has it answers.
#[derive(Debug)]
pub struct Listener(OwnedFd);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    pub id: u64,
    /// The thread that made it, as this process sees it. 0 if it is in a namespace that cannot be seen.
    pub thread: u32,
    /// What it calls. `None` for a number that the filter does not tell.
    pub call: Option<Syscall>,
    pub arguments: [u64; 6],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Readiness {
    pub has_notification: bool,
    /// Nobody is left who could make one.
    pub is_closed: bool,
}

impl Listener {
    pub fn new(descriptor: OwnedFd) -> Self {
        raw_syscalls::enable_sync_wake_up(descriptor.as_fd());
        Self(descriptor)
    }

    /// The next call. Blocks until there is one; `None` if it was given up before it could be told.
    pub fn next(&self) -> io::Result<Option<Notification>> {
        let notification = match raw_syscalls::receive(self.0.as_fd()) {
            Ok(notification) => notification,
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        Ok(Some(Notification {
            id: notification.id,
            thread: notification.pid,
            call: syscall_by_number(notification.data.nr),
            arguments: notification.data.args,
        }))
    }

    /// Lets a call happen. What it points to is read once more, by the system.
    pub fn allow(&self, id: u64) {
        self.answer(id, 0, u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE).unwrap_or(1));
    }

    pub fn fail(&self, id: u64, error: Errno) {
        self.answer(id, -error.raw_os_error(), 0);
    }

    /// Whether a call still waits. If so, what was read of its process before was its own.
    pub fn is_pending(&self, id: u64) -> bool {
        raw_syscalls::is_pending(self.0.as_fd(), id)
    }

    fn answer(&self, id: u64, error: c_int, flags: u32) {
        // Whoever is not there any more needs no answer. Another error cannot happen; if it did, the call would wait on,
        // which is closed too.
        let _ = raw_syscalls::send(self.0.as_fd(), libc::seccomp_notif_resp { id, val: 0, error, flags });
    }

    /// What there is to do now, without waiting for it.
    pub fn readiness(&self) -> io::Result<Readiness> {
        let mut descriptors = [PollFd::new(&self.0, PollFlags::IN)];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut descriptors, Some(&now))?;
        Ok(Readiness::from_poll_flags(descriptors[0].revents()))
    }
}

impl Readiness {
    /// What a poll says of the listener.
    pub fn from_poll_flags(flags: PollFlags) -> Self {
        Self {
            has_notification: flags.contains(PollFlags::IN),
            is_closed: flags.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
