//! Exit codes, and what ends the program.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use tenure_core::kernel::ProcessId;
use tenure_gate::process::ProcessExitWatch;
use tokio::io::unix::AsyncFd;

/// The answer is no: damage was found, a passport is not genuine, nobody holds it, what was asked for makes no sense
/// here.
pub const NO: u8 = 1;
/// The command line itself is wrong.
pub const USAGE: u8 = 64;
/// The server cannot be reached, or cannot serve.
pub const UNAVAILABLE: u8 = 69;
pub const DISK: u8 = 74;
/// Somebody else has it, or the wait for it was over. Later it may be free.
pub const HELD: u8 = 75;
/// The lease was lost before its holder was done.
pub const LOST: u8 = 76;
/// The server does not let this caller do it.
pub const DENIED: u8 = 77;
pub const CONFIGURATION: u8 = 78;
/// `tenure run`: the command is there, and cannot be executed.
pub const CANNOT_EXECUTE: u8 = 126;
/// `tenure run`: there is no such command.
pub const NO_SUCH_COMMAND: u8 = 127;

/// The code that shells give a process that a signal has ended.
pub fn code_for_signal(signal: i32) -> u8 {
    u8::try_from(128_i32.saturating_add(signal)).unwrap_or(u8::MAX)
}

#[derive(Debug)]
pub struct AsyncExitWatch(Option<AsyncFd<OwnedFd>>);

impl AsyncExitWatch {
    /// Watches this process, if there is one and it can be watched.
    pub fn new(process: Option<&ProcessId>) -> Self {
        Self(process.and_then(|process| watch(process).ok().flatten()))
    }

    /// Returns when it has ended; never, if it cannot be watched.
    pub async fn wait(&self) {
        match &self.0 {
            Some(process) if process.readable().await.is_ok() => {}
            _ => std::future::pending().await,
        }
    }
}

#[expect(
    deprecated,
    reason = "what could go wrong is a descriptor that is closed or becomes another; one that we own is neither"
)]
fn watch(process: &ProcessId) -> io::Result<Option<AsyncFd<OwnedFd>>> {
    let watch = ProcessExitWatch::of(process).map(|watch| watch.as_fd().try_clone_to_owned());
    watch.transpose()?.map(AsyncFd::new).transpose()
}
