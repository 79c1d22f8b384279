//! Signals that reach the launcher, and which process sent each.

use std::future::pending;
use std::io;

use nix::sys::signal::{SigSet, Signal as Named};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::process::Signal;
use tenure_host::interprocess::{STEERING, without_ignored};
use tokio::io::unix::AsyncFd;

/// Signals wait here until they are looked at. Nobody's handler is changed: what is let through again does what it does to
/// every process.
#[derive(Debug)]
pub struct SignalQueue {
    signals: AsyncFd<SignalFd>,
    /// What waited before, and what waits now.
    masks: [SigSet; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedSignal {
    pub signal: Signal,
    /// Whether the system itself sent it, as it does for a terminal, and not a process.
    pub is_from_kernel: bool,
    /// The process that sent it, if one did.
    pub sender: u32,
}

impl SignalQueue {
    /// From now on what steers a command is heard here. Only for a process that has one thread.
    ///
    /// What was ignored from the start stays so, for the command too: that is how `nohup` works.
    pub fn open() -> io::Result<Self> {
        let before = SigSet::thread_get_mask()?;
        // Where a file may not grow, writing to it fails; it is no reason to end.
        SigSet::from(Named::SIGXFSZ).thread_block()?;
        let mut blocked = SigSet::empty();
        for signal in without_ignored(STEERING.into_iter()) {
            blocked.add(Named::try_from(signal.as_raw())?);
        }
        blocked.thread_block()?;
        let signals = SignalFd::with_flags(&blocked, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Self { signals: register(signals)?, masks: [before, SigSet::thread_get_mask()?] })
    }

    /// Does something as if nothing were heard here. Whoever is started inherits which signals wait; and until it is, a signal may
    /// do to us what it does to everybody.
    pub fn with_original_mask<T>(&self, work: impl FnOnce() -> T) -> T {
        let [before, now] = &self.masks;
        let _ = before.thread_set_mask();
        let done = work();
        let _ = now.thread_set_mask();
        done
    }

    /// The next one. May be given up and asked again.
    pub async fn next(&mut self) -> ReceivedSignal {
        loop {
            if let Some(sent) = self.try_next() {
                return sent;
            }
            match self.signals.readable().await {
                // There was none a moment ago; if there is one now, the system says so again.
                Ok(mut ready) => ready.clear_ready(),
                Err(_) => return pending().await,
            }
        }
    }

    pub fn try_next(&self) -> Option<ReceivedSignal> {
        let about = self.signals.get_ref().read_signal().ok().flatten()?;
        let signal = Signal::from_named_raw(i32::try_from(about.ssi_signo).ok()?)?;
        Some(ReceivedSignal { signal, is_from_kernel: about.ssi_code > 0, sender: about.ssi_pid })
    }
}

#[expect(
    deprecated,
    reason = "what could go wrong is a descriptor that is closed or becomes another; one that we own is neither"
)]
fn register(signals: SignalFd) -> io::Result<AsyncFd<SignalFd>> {
    AsyncFd::new(signals)
}
