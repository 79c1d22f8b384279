//! System calls of a process tree that wait until somebody answers them: seccomp user notification, without root.
//!
//! ```text
//! the process that will be watched      install()   a filter for itself and for all that it starts
//! whoever watches                       Listener    hears each call, looks at it, lets it happen or fails it
//!                                       Memory      what its arguments point to
//! ```
//!
//! The filter names what is told ([`Syscall`]); everything else happens as ever, above all reading. If whoever watches ends, what
//! would be told fails from then on: closed, not open.
//!
//! **This is no wall against an attacker.** A thread can change the path in its memory after it was looked at. It is for
//! programs that would be careful if they knew whom they disturb.

mod filter;
mod listener;
mod memory;
#[expect(
    unsafe_code,
    reason = "the one module that calls the system by itself; each block says why it is sound"
)]
mod raw_syscalls;
mod syscalls;

pub use listener::{Listener, Notification, Readiness};
pub use memory::ProcessMemory;
pub use syscalls::Syscall;

use std::io;
use std::os::fd::OwnedFd;

/// From now on this process, and all that it starts, has its calls told to whoever has the descriptor. It can gain no rights
/// that it does not have: programs like `sudo` do not work.
///
/// Only for a process that has one thread. `EBUSY` if somebody listens already: there can be only one in a chain of
/// processes.
pub fn install() -> io::Result<OwnedFd> {
    rustix::thread::set_no_new_privs(true)?;
    raw_syscalls::install(&filter::build_filter())
}
