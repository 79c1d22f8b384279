//! Who among our children is nobody's any more: its watchdog was killed, so that it fell to us.
//!
//! A watchdog is the one to whom the orphans among its descendants fall. While it lives, none of them is our child. So
//! whichever child of ours is not a watchdog belonged to one that is gone.

use std::collections::HashSet;
use std::io;
use std::process::{Child, Command};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::watchdog::children;

/// The watchdogs that live, or are not buried yet.
static WATCHDOGS: Mutex<Option<HashSet<Pid>>> = Mutex::new(None);

/// Starts a watchdog. Nobody takes it for a stray.
pub fn start_watchdog(command: &mut Command) -> io::Result<Child> {
    // Held while it starts: else somebody could see it before it is known.
    let mut known = WATCHDOGS.lock();
    let child = command.spawn()?;
    known.get_or_insert_default().extend(pid_of(&child));
    Ok(child)
}

/// Waits until a watchdog is gone that has nothing more to do.
pub fn reap(watchdog: &mut Child) {
    let _ = watchdog.wait();
    forget(watchdog);
}

/// Kills a watchdog, whoever fell to us because it is gone, and those who fall to us thereby, and buries them. When this
/// returns, they are gone.
pub fn kill_with_reparented(watchdog: &Child) {
    forget(watchdog);
    loop {
        let reparented: Vec<Pid> = {
            let known = WATCHDOGS.lock();
            let is_known = |child: &Pid| known.as_ref().is_some_and(|known| known.contains(child));
            children().into_iter().filter(|child| !is_known(child)).collect()
        };
        if reparented.is_empty() {
            return;
        }
        for stray in reparented {
            let _ = kill_process(stray, Signal::KILL);
            let _ = waitid(WaitId::Pid(stray), WaitIdOptions::EXITED);
        }
    }
}

fn forget(watchdog: &Child) {
    if let (Some(known), Some(number)) = (WATCHDOGS.lock().as_mut(), pid_of(watchdog)) {
        known.remove(&number);
    }
}

pub fn pid_of(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}
