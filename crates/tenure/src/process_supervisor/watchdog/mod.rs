//! The process that ends a command in time, whatever becomes of who keeps its lease: `tenure run`, or the worker.
//!
//! It is the command's parent, in a process group of its own: stopping its keeper or the keeper's job, Ctrl-Z or the end
//! of the terminal do not stop it. It hears each new deadline over a connection; when that ends, the keeper is gone, and
//! the command is ended too.

mod process_tree;
mod termination_plan;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode};

use rustix::process::Signal;
use tenure_core::kernel::TickDuration;
use tokio::signal::unix::{Signal as Caught, SignalKind, signal};

use self::process_tree::ProcessTree;
pub use self::process_tree::all_children as children;
pub use self::termination_plan::TerminationMargins;
use self::termination_plan::{TerminationPlan, TerminationStep};
use super::protocol::{DescendantPolicy, MessageStream, WatchdogCommand, WatchdogReport};
use super::signals::Signals;
use super::timer::{Timer, now};
use crate::exit;
use crate::fd_transfer;
use crate::terminal_message::print_error;

/// How often to look for somebody who lives on, while everybody is being killed: microseconds.
const KILL_ROUND_MICROSECONDS: u64 = 20_000;

/// What its keeper calls it. A name that nobody types.
pub const SUBCOMMAND: &str = "__watchdog";

/// Watches over one command, until it is gone.
pub fn run(command: &[OsString]) -> ExitCode {
    let watch = || -> io::Result<()> {
        let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let standard = fd_transfer::receive(&stream)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async { watch(MessageStream::new(stream)?, standard, command).await })
    };
    match watch() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error("the watchdog of a command failed", &error);
            exit::UNAVAILABLE.into()
        }
    }
}

async fn watch(mut link: MessageStream, standard: [OwnedFd; 3], command: &[OsString]) -> io::Result<()> {
    ProcessTree::become_subreaper()?;
    let changes = signal(SignalKind::child())?;
    let signals = Signals::catch_all()?;
    let timer = Timer::new()?;
    // Without an order nothing was started, and nothing has to be ended.
    let Some(WatchdogCommand::Start { deadline, grace, reserve, leaves, environment }) = link.receive().await
    else {
        return Ok(());
    };
    let plan = TerminationPlan::new(
        TerminationMargins { grace: TickDuration(grace), reserve: TickDuration(reserve) },
        deadline,
    );
    if plan.wake_at().is_none_or(|at| at <= now()) {
        return link.send(&WatchdogReport::TooLate).await;
    }
    let [input, output, errors] = standard;
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments).envs(environment).stdin(input).stdout(output).stderr(errors);
    let processes = match ProcessTree::start(&mut command) {
        Ok(processes) => processes,
        Err(error) => return link.send(&WatchdogReport::NotStarted { error: error.raw_os_error() }).await,
    };
    // It holds the standard descriptors, which somebody may wait to see closed.
    drop(command);
    let (is_connected, is_lost) = (true, false);
    let mut watch =
        Watchdog { link, processes, plan, leaves, signals, changes, timer, is_connected, is_lost };
    watch.send_report(WatchdogReport::Started(watch.processes.group())).await;
    watch.run_until_exit().await
}

struct Watchdog {
    link: MessageStream,
    processes: ProcessTree,
    plan: TerminationPlan,
    leaves: DescendantPolicy,
    signals: Signals,
    changes: Caught,
    timer: Timer,
    is_connected: bool,
    /// Whether the lease is lost, or nobody is left who could keep it.
    is_lost: bool,
}

impl Watchdog {
    async fn run_until_exit(&mut self) -> io::Result<()> {
        loop {
            let at = self.plan.wake_at().unwrap_or_else(|| now().saturating_add(KILL_ROUND_MICROSECONDS));
            tokio::select! {
                order = self.link.receive(), if self.is_connected => self.handle_command(order),
                _ = self.changes.recv() => {}
                () = self.timer.wait_until(Some(at)) => {}
                // What is meant for the command comes through its keeper.
                _ = self.signals.next() => {}
            }
            while let Some(act) = self.plan.next_step(now()) {
                self.act(act);
                // A session whose command has ended by itself lost nothing; whom it left behind has to go, that is all.
                let is_rest = self.leaves == DescendantPolicy::EndAll && self.processes.exit().is_some();
                if !std::mem::replace(&mut self.is_lost, true) && !is_rest {
                    self.send_report(WatchdogReport::Ending).await;
                }
            }
            if self.check_processes().await {
                break;
            }
        }
        // Until the keeper has taken back the terminal, the group's number must not be anybody else's.
        while self.is_connected && self.link.receive::<WatchdogCommand>().await.is_some() {}
        Ok(())
    }

    fn handle_command(&mut self, order: Option<WatchdogCommand>) {
        let act = match order {
            Some(WatchdogCommand::Deadline(deadline)) => {
                self.plan.move_deadline(deadline);
                None
            }
            Some(WatchdogCommand::Signal(number)) => {
                if let Some(signal) = Signal::from_named_raw(number) {
                    self.processes.signal(signal);
                }
                None
            }
            Some(WatchdogCommand::Start { .. }) => None,
            Some(WatchdogCommand::Kill) => {
                self.is_lost = true;
                self.plan.kill(now())
            }
            Some(WatchdogCommand::End) | None => {
                self.is_connected &= order.is_some();
                self.is_lost = true;
                self.plan.terminate(now())
            }
        };
        if let Some(act) = act {
            self.act(act);
        }
    }

    fn act(&self, act: TerminationStep) {
        match act {
            TerminationStep::Terminate => {
                self.processes.signal(Signal::TERM);
                // Who is stopped hears nothing before it goes on.
                self.processes.signal(Signal::CONT);
            }
            TerminationStep::Kill => self.processes.kill(),
        }
    }

    /// Looks at the processes. True: all of them are gone, and the keeper knows.
    async fn check_processes(&mut self) -> bool {
        if let Some(signal) = self.processes.poll() {
            self.send_report(WatchdogReport::Stopped(signal.as_raw())).await;
        }
        if self.plan.is_killed() {
            self.processes.kill();
        }
        let Some(ended) = self.processes.exit() else { return false };
        // What the command left behind must not go on without the lease: neither what stayed in its group nor, when
        // the lease is lost or somebody may hold the same next, what has left it.
        let ends_descendants = self.is_lost || self.leaves == DescendantPolicy::EndAll;
        let act = if self.processes.has_group_members() {
            self.plan.terminate(now())
        } else if ends_descendants && self.processes.has_descendants() {
            self.plan.kill(now())
        } else {
            self.send_report(WatchdogReport::Ended(ended)).await;
            return true;
        };
        if let Some(act) = act {
            self.act(act);
        }
        false
    }

    async fn send_report(&mut self, report: WatchdogReport) {
        if self.is_connected && self.link.send(&report).await.is_err() {
            self.is_connected = false;
        }
    }
}
