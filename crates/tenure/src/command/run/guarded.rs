//! The command, as `tenure run` sees it: through the watchdog.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, getpid, kill_process_group, set_child_subreaper};

use super::link::{Link, Order, Report, send_standard};
use super::watchdog::{self, Margins, kill_children};

/// A command that is watched.
#[derive(Debug)]
pub struct Guarded {
    watchdog: Child,
    link: Link,
    group: Option<Pid>,
}

impl Guarded {
    /// Starts the watchdog. The command itself waits for [`Guarded::start`].
    pub fn prepare(command: &[OsString]) -> io::Result<Self> {
        // If somebody kills the watchdog, the command falls to us.
        set_child_subreaper(Some(getpid()))?;
        let (ours, theirs) = UnixStream::pair()?;
        send_standard(&ours)?;
        let mut process = Command::new("/proc/self/exe");
        process.arg0("tenure").arg(watchdog::NAME).args(command);
        process.process_group(0).stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
        Ok(Self { watchdog: process.spawn()?, link: Link::new(ours)?, group: None })
    }

    /// Starts the command.
    pub async fn start(&mut self, deadline: u64, margins: Margins, environment: Vec<(String, String)>) {
        let Margins { grace, reserve } = margins;
        self.order(&Order::Start { deadline, grace: grace.0, reserve: reserve.0, environment }).await;
    }

    /// The lease was renewed.
    pub async fn move_deadline(&mut self, deadline: u64) {
        self.order(&Order::Deadline(deadline)).await;
    }

    /// Sends a signal to everybody in the command's group.
    pub async fn signal(&mut self, signal: Signal) {
        self.order(&Order::Signal(signal.as_raw())).await;
    }

    /// The lease is lost: ends the command.
    pub async fn end(&mut self) {
        self.order(&Order::End).await;
    }

    /// What happened to the command. Nothing: the watchdog is gone, and the command was killed.
    pub async fn report(&mut self) -> Option<Report> {
        let report = self.link.receive().await;
        match report {
            Some(Report::Started(group)) => self.group = Pid::from_raw(group),
            Some(_) => {}
            // The command is our child now, so its number is still its own; so is whoever left its group.
            None => {
                if let Some(group) = self.group {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                kill_children();
            }
        }
        report
    }

    /// The command's group.
    pub fn group(&self) -> Option<Pid> {
        self.group
    }

    /// Lets the watchdog go, and waits until it is gone.
    pub fn dismiss(self) {
        let Self { mut watchdog, link, .. } = self;
        drop(link);
        let _ = watchdog.wait();
    }

    /// A watchdog that does not hear is gone, which is found when its report is read.
    async fn order(&mut self, order: &Order) {
        let _ = self.link.send(order).await;
    }
}
