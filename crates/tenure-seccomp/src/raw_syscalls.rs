//! The calls that no crate makes for us. Nothing here decides anything.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::{c_int, c_ulong, seccomp_notif, seccomp_notif_resp, sock_filter, sock_fprog};

/// A listener, and calls that wait are interrupted only by what ends the process: else a program with timers would begin the
/// same call again and again.
const KILLABLE_LISTENER_FLAGS: c_ulong = LISTENER_FLAGS | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;

/// A listener; and the processor need not be slowed down as it is, on older systems, for programs that may not be trusted.
const LISTENER_FLAGS: c_ulong = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;

/// Wake whoever waits on the processor that answered it: both have the same things at hand.
const SYNC_WAKE_UP: u64 = 1;

/// Makes this program the filter of this thread, and of all that it starts.
pub(crate) fn install(program: &[sock_filter]) -> io::Result<OwnedFd> {
    match try_install(program, KILLABLE_LISTENER_FLAGS) {
        // Older than Linux 5.19.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => try_install(program, LISTENER_FLAGS),
        other => other,
    }
}

fn try_install(program: &[sock_filter], flags: c_ulong) -> io::Result<OwnedFd> {
    let length = program.len().try_into().map_err(io::Error::other)?;
    let program = sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    // SAFETY: the system reads `len` instructions from `filter`, which the slice keeps alive and which has as many; it writes
    // nothing through the pointer.
    let made =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    let made = c_int::try_from(checked(made)?).map_err(io::Error::other)?;
    // SAFETY: with NEW_LISTENER the system answers a new descriptor, which is nobody else's.
    let listener = unsafe { OwnedFd::from_raw_fd(made) };
    Ok(listener)
}

/// The next call that waits. Blocks until there is one.
pub(crate) fn receive(listener: BorrowedFd<'_>) -> io::Result<seccomp_notif> {
    // SAFETY: all bytes zero is a value of this struct of integers, and the system demands that they are zero.
    let mut notification: seccomp_notif = unsafe { std::mem::zeroed() };
    let request = libc::SECCOMP_IOCTL_NOTIF_RECV;
    // SAFETY: the request has the size of this struct in it, and the system writes no more than that.
    let received = unsafe { libc::ioctl(listener.as_raw_fd(), request, &raw mut notification) };
    checked(received.into())?;
    Ok(notification)
}

pub(crate) fn send(listener: BorrowedFd<'_>, mut answer: seccomp_notif_resp) -> io::Result<()> {
    let request = libc::SECCOMP_IOCTL_NOTIF_SEND;
    // SAFETY: the request has the size of this struct in it, and the system touches no more than that.
    let sent = unsafe { libc::ioctl(listener.as_raw_fd(), request, &raw mut answer) };
    checked(sent.into()).map(drop)
}

/// Whether the call with this number still waits, so that what was read of its process was its own.
pub(crate) fn is_pending(listener: BorrowedFd<'_>, id: u64) -> bool {
    let request = libc::SECCOMP_IOCTL_NOTIF_ID_VALID;
    // SAFETY: the system reads one number of this size through the pointer, and writes nothing.
    let answer = unsafe { libc::ioctl(listener.as_raw_fd(), request, &raw const id) };
    checked(answer.into()).is_ok()
}

/// Asks for quick wake-ups. Before Linux 6.6 there are none, and everything works without.
pub(crate) fn enable_sync_wake_up(listener: BorrowedFd<'_>) {
    let request = libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS;
    // SAFETY: this request takes its number as it is, and no pointer.
    let answer = unsafe { libc::ioctl(listener.as_raw_fd(), request, SYNC_WAKE_UP) };
    let _ = checked(answer.into());
}

fn checked(answer: i64) -> io::Result<i64> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}
