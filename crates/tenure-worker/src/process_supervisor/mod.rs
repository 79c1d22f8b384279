//! Runs a command under a lease: a watchdog is its parent and ends it in time, even if the process that keeps the lease
//! fails. `tenure run` has one such command, the worker one for each session.

mod protocol;
mod watchdog;

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use parking_lot::Mutex;
use protocol::WatchdogCommand;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, kill_process_group, set_child_subreaper, waitid,
};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
pub use tenure_client::boot_microseconds as now;
use tenure_host::interprocess::{MessageStream, fd_transfer};
use tokio::io::unix::AsyncFd;
use watchdog::all_children;

pub use self::protocol::{DescendantPolicy, WatchdogReport};
pub use self::watchdog::{SUBCOMMAND, TerminationMargins, run};

/// What a command has as standard input, output and error.
#[derive(Debug, Clone, Copy)]
pub struct StandardStreams<'a>(pub [BorrowedFd<'a>; 3]);

#[derive(Debug)]
pub struct SupervisedProcess {
    watchdog: Child,
    link: MessageStream,
    group: Option<Pid>,
}

impl SupervisedProcess {
    /// Starts the watchdog, for a command with our own input and output. The command itself waits for
    /// [`SupervisedProcess::start`].
    pub fn prepare(command: &[OsString]) -> io::Result<Self> {
        let (input, output, errors) = (io::stdin(), io::stdout(), io::stderr());
        let standard = StandardStreams([input.as_fd(), output.as_fd(), errors.as_fd()]);
        Self::prepare_with(command, standard, |_| {})
    }

    /// The same with another input and output. What `change` does to the environment of the watchdog counts for the
    /// command too.
    pub fn prepare_with(
        command: &[OsString],
        standard: StandardStreams<'_>,
        change: impl FnOnce(&mut Command),
    ) -> io::Result<Self> {
        // If somebody kills the watchdog, the command falls to us.
        set_child_subreaper(Some(getpid()))?;
        let (ours, theirs) = UnixStream::pair()?;
        // The watchdog's own input is the connection.
        fd_transfer::send(&ours, &standard.0)?;
        let mut process = Command::new("/proc/self/exe");
        process.arg0("tenure").arg(watchdog::SUBCOMMAND).args(command);
        process.process_group(0).stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
        change(&mut process);
        Ok(Self { watchdog: start_watchdog(&mut process)?, link: MessageStream::new(ours)?, group: None })
    }

    pub async fn start(
        &mut self,
        deadline: u64,
        margins: TerminationMargins,
        leaves: DescendantPolicy,
        environment: Vec<(String, String)>,
    ) {
        let TerminationMargins { grace, reserve } = margins;
        self.send_command(&WatchdogCommand::Start {
            deadline,
            grace: grace.0,
            reserve: reserve.0,
            leaves,
            environment,
        })
        .await;
    }

    pub async fn move_deadline(&mut self, deadline: u64) {
        self.send_command(&WatchdogCommand::Deadline(deadline)).await;
    }

    /// Sends a signal to everybody in the command's group.
    pub async fn send_signal(&mut self, signal: Signal) {
        self.send_command(&WatchdogCommand::Signal(signal.as_raw())).await;
    }

    pub async fn terminate(&mut self) {
        self.send_command(&WatchdogCommand::End).await;
        self.continue_watchdog();
    }

    /// The command has to be gone at once.
    pub async fn kill(&mut self) {
        self.send_command(&WatchdogCommand::Kill).await;
        self.continue_watchdog();
    }

    /// What happened to the command. Nothing: the watchdog is gone, and [`SupervisedProcess::kill_without_watchdog`] has to follow.
    pub async fn next_report(&mut self) -> Option<WatchdogReport> {
        let report = self.link.receive().await;
        if let Some(WatchdogReport::Started(group)) = report {
            self.group = Pid::from_raw(group);
        }
        report
    }

    /// Ends a command whose watchdog is gone: it is our child now, so its number is still its own; so is whoever left
    /// its group. When this returns, all of them are gone.
    pub fn kill_without_watchdog(&self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        kill_with_reparented(&self.watchdog);
    }

    pub fn group(&self) -> Option<Pid> {
        self.group
    }

    pub fn watchdog_id(&self) -> u32 {
        self.watchdog.id()
    }

    /// Lets the watchdog go, and waits until it is gone.
    pub fn close(self) {
        let Self { mut watchdog, link, .. } = self;
        drop(link);
        reap(&mut watchdog);
    }

    /// A watchdog that somebody has stopped hears nothing before it goes on, and nobody else would end the command. It is
    /// not buried while this exists, so the number is its own.
    fn continue_watchdog(&self) {
        if let Some(watchdog) = pid_of(&self.watchdog) {
            let _ = kill_process(watchdog, Signal::CONT);
        }
    }

    /// A watchdog that does not hear is gone, which is found when its report is read.
    async fn send_command(&mut self, order: &WatchdogCommand) {
        let _ = self.link.send(order).await;
    }
}

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
            all_children().into_iter().filter(|child| !is_known(child)).collect()
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

/// Wakes at an instant of that clock.
#[derive(Debug)]
pub struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    /// A timer that is not set.
    #[expect(
        deprecated,
        reason = "what could go wrong is a descriptor that is closed or becomes another; one that we own is neither"
    )]
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self(AsyncFd::new(timerfd_create(TimerfdClockId::Boottime, flags)?)?))
    }

    /// Waits until it is `at`; for ever, if there is no such time.
    pub async fn wait_until(&self, at: Option<u64>) {
        let Some(at) = at else { return std::future::pending().await };
        // Zero would turn the timer off.
        let at = at.max(1);
        let nanoseconds = i64::try_from(at % 1_000_000 * 1_000).expect("less than a second");
        let value =
            Timespec { tv_sec: i64::try_from(at / 1_000_000).unwrap_or(i64::MAX), tv_nsec: nanoseconds };
        let once = Itimerspec { it_interval: Timespec::default(), it_value: value };
        while now() < at {
            if timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::ABSTIME, &once).is_err() {
                return;
            }
            match self.0.readable().await {
                // It stays readable until it is set anew, and whoever waits again sets it anew.
                Ok(mut guard) => guard.clear_ready(),
                Err(_) => return,
            }
        }
    }
}
