//! The thread that receives every call that would change a file, and answers those that need no request to the server.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tenure_seccomp::{Notification, Readiness};
use tokio::sync::mpsc::UnboundedSender;

use super::SupervisorState;
use super::syscall_policy::{SyscallVerdict, evaluate};

/// A call that waits for somebody else's answer.
#[derive(Debug)]
pub struct PendingCall {
    pub call: Notification,
    /// What has to be found out.
    pub verdict: SyscallVerdict,
}

/// Begins to hear. When nobody is left who could call, `pending` is closed.
pub fn spawn(watched: Arc<SupervisorState>, pending: UnboundedSender<PendingCall>) -> io::Result<()> {
    std::thread::Builder::new().name("tenure-gate".into()).spawn(move || {
        // An error means that nothing can be heard any more: what would be told waits, and ends with us.
        while let Ok(true) = handle_next(&watched, &pending) {}
    })?;
    Ok(())
}

fn handle_next(watched: &SupervisorState, pending: &UnboundedSender<PendingCall>) -> io::Result<bool> {
    let listener = &watched.listener;
    let mut descriptors = [PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
    match poll(&mut descriptors, None) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(true),
        Err(error) => return Err(error.into()),
    }
    let readiness = Readiness::from_poll_flags(descriptors[0].revents());
    if !readiness.has_notification {
        return Ok(!readiness.is_closed);
    }
    let Some(call) = listener.next()? else { return Ok(true) };
    let judgement = evaluate(watched, &call);
    // What was read was that process's own only if it still waits.
    if !listener.is_pending(call.id) {
        return Ok(true);
    }
    match judgement {
        SyscallVerdict::Allow => listener.allow(call.id),
        SyscallVerdict::Fail(error) => listener.fail(call.id, error),
        judgement => {
            let id = call.id;
            if pending.send(PendingCall { call, verdict: judgement }).is_err() {
                listener.fail(id, Errno::BUSY);
            }
        }
    }
    Ok(true)
}
