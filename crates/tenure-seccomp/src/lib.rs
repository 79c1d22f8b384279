//! seccomp user notification, without root: system calls of a process tree wait until a supervisor answers them.
//!
//! ```text
//! the supervised process  install()      installs the filter, for itself and its descendants
//! the supervisor          Listener       receives each call, allows it or fails it
//!                         ProcessMemory  reads what its arguments point to
//! ```
//!
//! The filter notifies the calls of [`Syscall`]; all others, above all reads, run as ever. If the supervisor exits, notified
//! calls fail: closed, not open.
//!
//! **This is no boundary against an attacker.** A thread can change the path in its memory after the check. It is for
//! cooperative programs that do not know of each other.

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
