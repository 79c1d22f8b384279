//! What is said on the command's standard error: why a change did not happen, and what to do.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{ErrorKind, IsTerminal as _};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use tenure_client::boot_microseconds as now;

use super::timed_write::write_with_timeout;

/// Within this time, in microseconds, the same is said once: programs try again by themselves.
const REPEAT_MICROSECONDS: u64 = 2_000_000;
/// How long somebody may take to read what was said before, so that there is room: a call waits meanwhile.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_RECENT: usize = 1_000;

/// Where a text goes, by device and number.
type Reader = Option<(u64, u64)>;

#[derive(Debug)]
pub struct StderrReporter {
    /// The command's standard error, until it ends: whoever waits for the end of a pipe must not wait for us.
    errors: Mutex<Option<Arc<File>>>,
    recent: Mutex<HashMap<(Reader, String), u64>>,
    /// Where nobody read in time. Nobody is waited for there again before there is room.
    blocked: Mutex<HashSet<Reader>>,
}

impl StderrReporter {
    pub fn new(errors: File) -> Self {
        Self {
            errors: Mutex::new(Some(Arc::new(errors))),
            recent: Mutex::default(),
            blocked: Mutex::default(),
        }
    }

    /// The command is over. What goes on in the background has its own standard error, if any.
    pub fn command_ended(&self) {
        self.errors.lock().take();
    }

    /// Says why a change of this process did not happen: where its own standard error goes, if somebody reads there what it says
    /// (an agent whose model is told it); else where the command's goes. Where nobody reads, it is not said.
    pub fn report(&self, process: u32, text: &str) {
        let text = format!("tenure: {}\n", text.trim_end());
        let commands = self.errors.lock().clone();
        let own = errors_of(process).filter(is_read).map(Arc::new);
        let Some(errors) = own.or(commands) else { return };
        let reader = identity(&errors);
        if self.is_repeated(reader, &text) {
            return;
        }
        let unread = || self.blocked.lock();
        let patience = if unread().contains(&reader) { Duration::ZERO } else { WRITE_TIMEOUT };
        // A closed pipe is no reason to let anything happen, or not to.
        match write_with_timeout(&errors, text.as_bytes(), patience) {
            Err(error) if error.kind() == ErrorKind::TimedOut => unread().insert(reader),
            _ => unread().remove(&reader),
        };
    }

    fn is_repeated(&self, reader: Reader, text: &str) -> bool {
        let (mut recent, at) = (self.recent.lock(), now());
        recent.retain(|_, since| at.saturating_sub(*since) < REPEAT_MICROSECONDS);
        recent.len() >= MAX_RECENT || recent.insert((reader, text.to_owned()), at).is_some()
    }
}

/// What another process has as its standard error, be it a pipe, a socket or a file.
fn errors_of(process: u32) -> Option<File> {
    let process = pidfd_open(pid_of(process)?, PidfdFlags::empty()).ok()?;
    pidfd_getfd(&process, 2, PidfdGetfdFlags::empty()).ok().map(File::from)
}

fn pid_of(process: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(process).ok()?)
}

/// Whether what is written there is read as a text: a pipe, a socket, a terminal, or a file to which is only added. Where somebody
/// closed it, anything may have its number.
fn is_read(errors: &File) -> bool {
    let kind = fstat(errors).map(|about| FileType::from_raw_mode(about.st_mode));
    let appends = fcntl_getfl(errors).is_ok_and(|flags| flags.contains(OFlags::APPEND));
    match kind {
        Ok(FileType::Fifo | FileType::Socket) => true,
        Ok(FileType::CharacterDevice) => errors.is_terminal(),
        Ok(FileType::RegularFile) => appends,
        _ => false,
    }
}

fn identity(errors: &File) -> Reader {
    fstat(errors).ok().map(|about| (about.st_dev, about.st_ino))
}
