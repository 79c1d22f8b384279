//! Hears every call that would change a file, on a thread of its own, and answers those for which nobody has to be asked.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tenure_seccomp::{Notification, Readiness};
use tokio::sync::mpsc::UnboundedSender;

use super::Watched;
use super::judging::{Judgement, judge};

/// A call that waits for somebody else's answer.
#[derive(Debug)]
pub struct Pending {
    pub call: Notification,
    /// What has to be found out.
    pub judgement: Judgement,
}

/// Begins to hear. When nobody is left who could call, `pending` is closed.
pub fn begin(watched: Arc<Watched>, pending: UnboundedSender<Pending>) -> io::Result<()> {
    std::thread::Builder::new().name("tenure-gate".into()).spawn(move || {
        // An error means that nothing can be heard any more: what would be told waits, and ends with us.
        while let Ok(true) = hear(&watched, &pending) {}
    })?;
    Ok(())
}

fn hear(watched: &Watched, pending: &UnboundedSender<Pending>) -> io::Result<bool> {
    let listener = &watched.listener;
    let mut asked = [PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
    match poll(&mut asked, None) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(true),
        Err(error) => return Err(error.into()),
    }
    let readiness = Readiness::of(asked[0].revents());
    if !readiness.waits {
        return Ok(!readiness.is_over);
    }
    let Some(call) = listener.next()? else { return Ok(true) };
    let judgement = judge(watched, &call);
    // What was read was that process's own only if it still waits.
    if !listener.still_waits(call.id) {
        return Ok(true);
    }
    match judgement {
        Judgement::Pass => listener.allow(call.id),
        Judgement::Fail(error) => listener.fail(call.id, error),
        judgement => {
            let id = call.id;
            if pending.send(Pending { call, judgement }).is_err() {
                listener.fail(id, Errno::BUSY);
            }
        }
    }
    Ok(true)
}
