//! The command, as who keeps its lease sees it: through the watchdog.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, getpid, kill_process, kill_process_group, set_child_subreaper};

use super::protocol::{DescendantPolicy, MessageStream, WatchdogCommand, WatchdogReport};
use super::reparented;
use super::watchdog::{self, TerminationMargins};
use crate::fd_transfer;

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
        Ok(Self {
            watchdog: reparented::start_watchdog(&mut process)?,
            link: MessageStream::new(ours)?,
            group: None,
        })
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
        reparented::kill_with_reparented(&self.watchdog);
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
        reparented::reap(&mut watchdog);
    }

    /// A watchdog that somebody has stopped hears nothing before it goes on, and nobody else would end the command. It is
    /// not buried while this exists, so the number is its own.
    fn continue_watchdog(&self) {
        if let Some(watchdog) = reparented::pid_of(&self.watchdog) {
            let _ = kill_process(watchdog, Signal::CONT);
        }
    }

    /// A watchdog that does not hear is gone, which is found when its report is read.
    async fn send_command(&mut self, order: &WatchdogCommand) {
        let _ = self.link.send(order).await;
    }
}
