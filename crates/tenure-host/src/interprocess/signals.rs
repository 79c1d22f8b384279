//! Signals from other processes.

use std::fs;
use std::future::poll_fn;
use std::io;
use std::task::Poll;

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

/// What a user, a terminal or a service manager sends to end, stop or steer a command.
pub const STEERING: [Signal; 9] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::WINCH,
    Signal::TSTP,
    Signal::CONT,
];

/// What a terminal does to a process in the background that uses it.
const BACKGROUND: [Signal; 2] = [Signal::TTIN, Signal::TTOU];

/// Signals that are caught, and told one by one.
#[derive(Debug)]
pub struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    pub fn catch_forwarded() -> io::Result<Self> {
        Self::catch(STEERING.into_iter())
    }

    /// Catches whatever could end or stop a process that has to outlive such signals.
    pub fn catch_all() -> io::Result<Self> {
        Self::catch(STEERING.into_iter().chain(BACKGROUND))
    }

    /// What was ignored from the start stays so, for the command too: that is how `nohup` works.
    fn catch(signals: impl Iterator<Item = Signal>) -> io::Result<Self> {
        let streams = without_ignored(signals)
            .map(|signal| unix::signal(SignalKind::from_raw(signal.as_raw())).map(|stream| (signal, stream)));
        streams.collect::<io::Result<_>>().map(Self)
    }

    pub async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            for (signal, stream) in &mut self.0 {
                if stream.poll_recv(context).is_ready() {
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Those of these that this process was not told to ignore when it started.
pub fn without_ignored(signals: impl Iterator<Item = Signal>) -> impl Iterator<Item = Signal> {
    let ignored = ignored();
    signals.filter(move |signal| ignored & (1 << (signal.as_raw() - 1)) == 0)
}

/// The signals that this process ignores, one bit each, from the lowest.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
